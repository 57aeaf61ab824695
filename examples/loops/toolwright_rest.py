"""The four requests of a loop: session, prompt, tools, and the calls of a model's message. Standard library only."""

import json
import os
import urllib.request

URL = os.environ.get("TOOLWRIGHT_URL", "http://127.0.0.1:7300")
KEY = os.environ.get("TOOLWRIGHT_KEY")


def request(method, path, body=None):
    headers = {"content-type": "application/json"}
    if KEY:
        headers["authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(URL + path, data, headers, method=method)
    with urllib.request.urlopen(sent) as response:
        return json.loads(response.read() or "null")


class Session:
    """One conversation: its tools keep their version, its calls spend the budget of their turn."""

    def __init__(self, provider, mode="text"):
        self.provider = provider
        self.id = request("POST", "/v1/sessions", {"mode": mode})["sessionId"]
        self.prompt = request("GET", f"/v1/prompt?sessionId={self.id}")["prompt"]
        self.tools = request("GET", f"/v1/tools?provider={provider}&sessionId={self.id}")["tools"]

    def begin_turn(self):
        request("POST", f"/v1/sessions/{self.id}/turn", {})

    def run_calls(self, message, ask):
        """The provider's messages with the results of a message's calls; none if it has no calls.

        `ask(question)` decides on a call that needs approval. Sending the message again after that runs nothing twice: a
        call that ran is answered from the record.
        """
        path = f"/v1/sessions/{self.id}/messages?provider={self.provider}"
        answer = request("POST", path, message)
        if answer["questions"]:
            for question in answer["questions"]:
                decision = "approve" if ask(question) else "reject"
                request("POST", f"/v1/confirmations/{question['token']}/{decision}", {})
            answer = request("POST", path, message)
        return answer["messages"]


def ask_at_terminal(question):
    return input(f"{question['preview']} [yes/no] ").strip() == "yes"
