"""One service on a loopback address that stands for the outside world: it counts the effects of tools, and it is the
model of the agent, which fails as the message of the user tells it to."""
import collections
import http.server
import itertools
import json
import re
import threading
import time
import urllib.parse


class Service:
    def __init__(self):
        self.lock, self.nonces = threading.Lock(), itertools.count(1)
        # By key: what the tool sent, with the nonce that it got and the time.
        self.effects = collections.defaultdict(list)
        self.model_requests = collections.Counter()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                key = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["key"][0]
                self.reply(200, {"nonce": service.count({"key": key, "tool": "look"})})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path == "/effect":
                    self.reply(200, {"nonce": service.count(body)})
                else:
                    service.answer_as_model(self, body)

            def reply(self, status, value):
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True  # The server was killed, or has cancelled the call.

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, effect):
        with self.lock:
            nonce = next(self.nonces)
            self.effects[effect["key"]].append({**effect, "nonce": nonce, "time": time.monotonic()})
        return nonce

    def answer_as_model(self, handler, body):
        """The user says `note KEY FAULT,FAULT,…`: the first requests about the key fail like this. Then the model
        calls `note`, and says that it is done when it has the result."""
        messages = body["messages"]
        last = max(i for i, message in enumerate(messages) if message["role"] == "user")
        said = messages[last]["content"]
        said = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
        _, key, faults = re.match(r"(note) (\S+) (\S*)$", said).groups()
        faults = faults.strip(".").split(",")
        with self.lock:
            number = self.model_requests[key]
            self.model_requests[key] += 1
        fault = faults[number] if number < len(faults) else ""
        if fault in ("500", "429"):
            return handler.reply(int(fault), {"error": {"message": "scripted", "code": "scripted"}})
        handler.close_connection = True
        if fault == "drop":
            return None
        if fault == "slow":
            time.sleep(1.5)
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        if fault == "garbage":
            handler.wfile.write(b"data: {\"choices\": [\n\n")
        elif fault != "empty":
            has_result = any(message["role"] == "tool" for message in messages[last:])
            self.stream(handler, key, number, has_result, fault == "cut")
        return None

    @staticmethod
    def stream(handler, key, number, has_result, is_cut):
        def chunk(delta, finish=None):
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices}
            handler.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
            handler.wfile.flush()

        if has_result:
            chunk({"content": "It is "})
        else:
            arguments = json.dumps({"key": key, "value": 7})
            function = {"name": "note", "arguments": arguments[:-4] if is_cut else arguments}
            call = {"index": 0, "id": f"call_{key}_{number}", "type": "function", "function": function}
            chunk({"tool_calls": [call]})
        if is_cut:
            return
        if has_result:
            chunk({"content": "done."})
        chunk({}, "stop" if has_result else "tool_calls")
        handler.wfile.write(b"data: [DONE]\n\n")
