#!/usr/bin/env python3
"""A model server with OpenAI's Chat Completions API that follows a script, for scripts/chat-clients and
scripts/browser-tests.

  scripted_model.py [PORT]      prints its port; 0 chooses one

What the last user message says decides the answer; results of tools after it decide the next step. `GET /run` counts a run
of a handler, `GET /runs` returns their number.
"""
import json, re, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
runs, lock = 0, threading.Lock()


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def booking(results):
    """Looks a person up, finds a time and books it."""
    if not results:
        return "kb_search", {"query": "Ines Halloran, founder", "top_k": 2}
    if len(results) == 1:
        return "calendar_propose_event", {"attendees": ["ines@lanternfield.example"], "duration_minutes": 30,
                                          "title": "Meeting with Ines Halloran", "timezone": "Europe/Berlin"}
    if len(results) == 2:
        draft = results[1]["data"]
        return "calendar_create_event", {"event_draft_id": draft["event_draft_id"], "slot_index": 0,
                                         "expected_title": draft["title"]}
    if not results[2].get("ok"):
        return "I have booked nothing. Shall I look for another time?"
    return (f"The meeting is booked: **{results[2]['data']['title']}**.\n\n- {results[2]['data']['start']}\n"
            "- Ines leads the studio [person:ines_halloran]\n\nShall I also send her an agenda?")


def answer(body):
    """(text or call, seconds between words)"""
    messages = body["messages"]
    start = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
    said = text_of(messages[start]["content"]) if messages else ""
    results = [json.loads(m["content"]) for m in messages[start:] if m["role"] == "tool"]
    tools = [tool["function"]["name"] for tool in body.get("tools") or []]
    if said.startswith("### Task:"):
        # A server that declares its tools here would have to run one.
        return (("get_weather", {"city": "Oslo"}), 0) if tools and not results else ('{"title": "Weather in Oslo"}', 0)
    if said.startswith("weather"):
        return (("get_weather", {"city": "Oslo"}), 0) if not results else ("It is 5 degrees.", 0)
    if said.startswith("break"):
        return (("flaky", {}), 0) if not results else ("That failed.", 0)
    if said.startswith("use the client tool"):
        return (("client_tool", {"x": 1}), 0) if not results else ("The client says " + json.dumps(results[-1]), 0)
    if said.startswith("delete"):
        number = int(re.search(r"\d+", said)[0])
        if not results:
            return ("delete_item", {"id": number}), 0
        if not results[-1].get("ok"):
            return "Not deleted.", 0
        return (" ".join(NUMBERS), 0.1) if "slowly" in said else ("Deleted.", 0)
    if said.startswith("count"):
        return (" ".join(NUMBERS[:6] if "six" in said else NUMBERS), 0.1)
    if said.startswith("book"):
        return booking(results), 0
    if said.startswith("say "):
        return said[4:], 0
    if said.startswith("think"):
        return {"reasoning": "First I think about it.", "text": "I have thought about it."}, 0
    if said.startswith("run "):
        name, _, args = said[4:].partition(" ")
        return ((name, json.loads(args or "{}")), 0) if not results else ("The tool has answered.", 0)
    if said.startswith("what is my name"):
        names = [re.search(r"my name is (\w+)", text_of(m["content"])) for m in messages if m["role"] == "user"]
        return "Your name is " + next((name[1] for name in names if name), "unknown") + ".", 0
    return "Hello there.", 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        global runs
        with lock:
            runs += self.path == "/run"
        self.whole(200, {"runs": runs})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if text_of(body["messages"][-1].get("content")).startswith("crash"):
            return self.whole(400, {"error": {"message": "secret detail of the provider", "code": "bad"}})
        what, delay = answer(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            self.stream(what, delay)
        except OSError:
            pass  # The turn was stopped.

    def stream(self, what, delay):
        def chunk(delta=None, finish=None, **more):
            choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
            data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices, **more}
            self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()

        if isinstance(what, dict):
            chunk({"reasoning_content": what["reasoning"]})
            what = what["text"]
        if isinstance(what, str):
            for word in re.split(r"(?<= )", what):
                chunk({"content": word})
                time.sleep(delay)
            chunk({}, "stop")
        else:
            name, args = what
            call = {"index": 0, "id": f"call_{time.time_ns()}", "type": "function",
                    "function": {"name": name, "arguments": json.dumps(args)}}
            chunk({"tool_calls": [call]})
            chunk({}, "tool_calls")
        chunk(None, None, usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
        self.wfile.write(b"data: [DONE]\n\n")


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
