"""A model that follows a script, over the wires of OpenAI Chat Completions (whole and streamed) and Anthropic Messages.

It looks the order up, asks for the refund, and says what came of it. It refuses a request whose tools or results are not in
the provider's form, so that an example that passes has sent what a provider would accept.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def next_step(results, system):
    """The next call, or the last words, after these results of earlier calls."""
    if "Since then the user has answered" in system:
        return "Order 7 is refunded." if '"refunded":true' in system else "Nothing was refunded."
    if not results:
        return ("find_order", {"number": 7})
    if len(results) == 1:
        assert results[0]["data"] == {"status": "shipped", "total": 90}, results
        return ("refund", {"number": 7})
    last = results[-1]
    if last["ok"]:
        return "Order 7 is refunded."
    if last["type"] == "CONFIRMATION_REQUIRED":
        return "The refund needs your approval."
    return "Nothing was refunded."


def chat_completion(body):
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["find_order", "refund", "reg_describe"], names
    results = [json.loads(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or []]
    answered = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert calls == answered, "every call has its result"
    system = "".join(message["content"] for message in body["messages"] if message["role"] == "system")
    assert "**find_order**" in system and "**reg_describe**" in system, system
    step = next_step(results, system)
    if isinstance(step, str):
        return {"role": "assistant", "content": step}, "stop"
    name, arguments = step
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{len(results)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def anthropic_message(body):
    names = [tool["name"] for tool in body["tools"]]
    assert names == ["find_order", "refund", "reg_describe"] and "input_schema" in body["tools"][0], names
    blocks = [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]]
    results = []
    for block in blocks:
        if block["type"] == "tool_result":
            content = block["content"]
            text = content if isinstance(content, str) else "".join(part["text"] for part in content)
            results.append(read_result(json.loads(text), block.get("is_error", False)))
    step = next_step(results, body["system"])
    if isinstance(step, str):
        return [{"type": "text", "text": step}], "end_turn"
    name, arguments = step
    return [{"type": "tool_use", "id": f"toolu_{len(results)}", "name": name, "input": arguments}], "tool_use"


def read_result(value, is_error):
    """Results in Anthropic's form may be the data alone, with `is_error` beside it."""
    if "ok" in value:
        return value
    return {"ok": False, **value} if is_error else {"ok": True, "data": value}


def chunks(message, reason):
    head = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    delta = {"role": "assistant", "content": message["content"]}
    for index, call in enumerate(message.get("tool_calls", [])):
        delta.setdefault("tool_calls", []).append({"index": index, **call})
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            if self.path.endswith("/chat/completions"):
                self.answer_chat(body)
            else:
                content, reason = anthropic_message(body)
                usage = {"input_tokens": 1, "output_tokens": 1}
                self.answer(200, {"id": "m", "type": "message", "role": "assistant", "model": "scripted",
                                  "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage})
        except (AssertionError, KeyError, TypeError, ValueError) as error:
            self.answer(400, {"error": {"type": "invalid_request_error", "message": f"{type(error).__name__}: {error}"}})

    def answer_chat(self, body):
        message, reason = chat_completion(body)
        if body.get("stream"):
            events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(message, reason))
            return self.answer(200, events + "data: [DONE]\n\n", "text/event-stream")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        self.answer(200, {"id": "c", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice],
                          "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})

    def answer(self, status, body, media_type="application/json"):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
