#!/usr/bin/env python3
"""Drives OpenAI-shaped endpoints of an agent that runs its tools itself, with the official openai SDK.

  python openai_surface.py BASE_URL [openai_surface.json] [-v]     e.g. http://127.0.0.1:7300

GET {prefix}/models, POST {prefix}/responses (whole, streamed, through the SDK's strict accumulator, previous_response_id,
server-run calls, client-declared tools, approvals), POST {prefix}/chat/completions (whole, streamed, title requests), errors.
Every object and event is also validated with the SDK's types. Exit status 1 when a check failed.
"""
import json, os, sys, time, typing
from urllib.parse import urljoin
for k in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
    os.environ.pop(k, None)
import httpx, openai
from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

HERE = os.path.dirname(os.path.abspath(__file__))
# keys that every Open Responses response object carries, null or not
KEYS = """id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice
truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens
max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key""".split()
EVENTS = {typing.get_args(m.model_fields["type"].annotation)[0]: m for m in typing.get_args(typing.get_args(ResponseStreamEvent)[0])}
fails, verbose, here = [], "-v" in sys.argv, ""


def ok(what, cond, extra=""):
    if not cond:
        fails.append(f"{here}: {what}")
    if not cond or verbose:
        print(f"{'ok  ' if cond else 'FAIL'} {here}: {what}", "" if cond else str(extra)[:500], flush=True)
    return cond


def valid(what, model, obj):
    try:
        TypeAdapter(model).validate_python(obj)
        return True
    except Exception as e:
        return ok(f"{what} fits the SDK's types", False, str(e)[:400])


def sse(raw):
    """(event line, data) of each frame"""
    for block in raw.split("\n\n"):
        ev = data = None
        for line in block.split("\n"):
            if line.startswith("event:"): ev = line[6:].strip()
            if line.startswith("data:"): data = line[5:].strip()
        if data is not None:
            yield ev, data


def message_text(r):
    return "".join(c.get("text", "") for o in r["output"] if o["type"] == "message" for c in o["content"])


class Drive:
    def __init__(self, base, conf):
        self.base, self.c = base.rstrip("/"), conf
        self.url, self.model = self.base + conf.get("prefix", "/v1"), conf["model"]
        self.o = OpenAI(base_url=self.url, api_key=conf.get("api_key", "k"), max_retries=0, timeout=conf.get("timeout", 20))
        self.h = httpx.Client(headers={"authorization": f"Bearer {conf.get('api_key', 'k')}"}, timeout=conf.get("timeout", 20))

    def runs(self):
        return self.h.get(urljoin(self.base, self.c["runs"])).json() if self.c.get("runs") else None

    def raw(self, path, body, **kw):
        """a stream as it is on the wire, with the time of each frame"""
        out, times, t0 = "", [], time.time()
        with self.h.stream("POST", self.url + path, json=body, **kw) as r:
            st, ct = r.status_code, r.headers.get("content-type", "")
            for piece in r.iter_text():
                out += piece
                times.append(time.time() - t0)
        return st, ct, out, times

    # ---- Responses
    def whole(self, **kw):
        r = self.h.post(self.url + "/responses", json={"model": self.model, **kw})
        ok("200", r.status_code == 200, r.text)
        j = r.json()
        if r.status_code == 200:
            valid("response object", Response, j)
            ok("all keys that Open Responses requires are present (null allowed)", set(KEYS) <= set(j), sorted(set(KEYS) - set(j)))
            u = j.get("usage") or {}
            ok("usage with both details objects", {"input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"} <= set(u), u)
            ok("status completed, error null", j["status"] == "completed" and j["error"] is None, [j["status"], j["error"]])
        return j

    def stream(self, **kw):
        st, ct, raw, times = self.raw("/responses", {"model": self.model, "stream": True, **kw})
        ok("stream: 200 text/event-stream", st == 200 and ct.startswith("text/event-stream"), [st, ct, raw[:200]])
        fr = list(sse(raw))
        evs = [(e, json.loads(d)) for e, d in fr if d != "[DONE]"]
        for e, d in evs:
            d["type"] in EVENTS and valid(f"event {d['type']}", EVENTS[d["type"]], d)
        ok("stream: known event types only", all(d["type"] in EVENTS for _, d in evs), [d["type"] for _, d in evs if d["type"] not in EVENTS])
        ok("stream: event: line equals data.type", all(e == d["type"] for e, d in evs), evs[0][0] if evs else "")
        seq = [d.get("sequence_number") for _, d in evs]
        ok("stream: sequence_number 0,1,2,…", seq == list(range(len(seq))), seq)
        t = [d["type"] for _, d in evs]
        ok("stream: created, in_progress, …, completed", t[:2] == ["response.created", "response.in_progress"] and t[-1] == "response.completed", t)
        final = evs[-1][1].get("response") or {"output": []}
        done = {d["output_index"]: d["item"] for _, d in evs if d["type"] == "response.output_item.done"}
        added = {d["output_index"]: d["item"] for _, d in evs if d["type"] == "response.output_item.added"}
        ok("stream: every item added and done, and the same as in the final output", [done.get(i) for i in range(len(done))] == final["output"] and set(done) == set(added), [list(added), list(done)])
        ok("stream: item ids stay", all(added[i]["id"] == done[i]["id"] for i in done if i in added), [added, done])
        text = "".join(d["delta"] for _, d in evs if d["type"] == "response.output_text.delta")
        ok("stream: text deltas make the final text", text == message_text(final), [text, message_text(final)])
        try:                                              # the SDK's accumulator refuses duplicate, changed or unfinished items
            with self.o.responses.stream(model=self.model, **{k: v for k, v in kw.items()}) as s:
                for _ in s:
                    pass
                acc = s.get_final_response()
            ok("stream: SDK accumulator ends with the same item types", [o.type for o in acc.output] == [o["type"] for o in final["output"]])
        except Exception as e:
            ok("stream: SDK accumulator accepts it", False, repr(e))
        return final, times

    def calls(self, r, tool):
        """a server-run call is followed by its output, both under one call_id"""
        kinds = [o["type"] for o in r["output"]]
        fc = [o for o in r["output"] if o["type"] == "function_call" and o["name"] == tool]
        if not ok(f"function_call {tool} in the output", len(fc) == 1, kinds):
            return None
        out = [o for o in r["output"] if o["type"] == "function_call_output" and o["call_id"] == fc[0]["call_id"]]
        if not ok("its function_call_output too (else Open WebUI runs the call itself)", len(out) == 1, kinds):
            return None
        ok("call before output", r["output"].index(fc[0]) < r["output"].index(out[0]), kinds)
        ok("output is a list of parts (Open WebUI iterates over it)", isinstance(out[0]["output"], list) and all(p["type"].startswith("input_") for p in out[0]["output"]), out[0]["output"])
        ok("call completed, arguments are a JSON object", fc[0]["status"] == "completed" and isinstance(json.loads(fc[0]["arguments"]), dict), fc[0])
        return fc[0], out[0]

    def do_models(self):
        ms = list(self.o.models.list())
        ok("the model is listed", self.model in [m.id for m in ms], [m.id for m in ms])
        ok("object, created, owned_by", all(m.object == "model" and isinstance(m.created, int) and m.owned_by for m in ms), ms)
        ok("retrieve", self.o.models.retrieve(self.model).id == self.model)

    def do_text(self, s):
        r = self.whole(input=s["user"])
        ok("text", s["expect"] in message_text(r), r["output"])
        for label, inp, kw in (("message list", [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": s["user"]}]}], {}),
                               ("without type, with system and instructions", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": s["user"]}], {"instructions": "Be kind."}),
                               ("history with assistant", [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "output_text", "text": "yes?"}]}, {"role": "user", "content": s["user"]}], {})):
            r = self.whole(input=inp, **kw)
            ok(f"input as {label}", s["expect"] in message_text(r), r.get("output"))
        f, _ = self.stream(input=s["user"])
        ok("streamed text", s["expect"] in message_text(f), f["output"])
        ok("SDK output_text", s["expect"] in self.o.responses.create(model=self.model, input=s["user"]).output_text)
        c = self.o.chat.completions.create(model=self.model, messages=[{"role": "user", "content": s["user"]}])
        valid("chat completion", ChatCompletion, c.to_dict())
        ok("chat: text, finish_reason stop, usage", s["expect"] in (c.choices[0].message.content or "") and c.choices[0].finish_reason == "stop" and c.usage.total_tokens > 0, c)
        r = self.o.chat.completions.with_raw_response.create(model=self.model, messages=[{"role": "user", "content": s["user"]}], extra_headers=self.c.get("headers") or {})
        ok("identity headers are accepted", r.http_response.status_code == 200)

    def chat_stream(self, body):
        st, ct, raw, times = self.raw("/chat/completions", {"model": self.model, "stream": True, **body})
        ok("chat stream: 200 text/event-stream", st == 200 and ct.startswith("text/event-stream"), [st, raw[:200]])
        fr = [d for _, d in sse(raw)]
        ok("chat stream: ends with [DONE]", fr and fr[-1] == "[DONE]", fr[-1:])
        cs = [json.loads(d) for d in fr if d != "[DONE]"]
        for c in cs:
            valid("chat chunk", ChatCompletionChunk, c)
        ok("chat stream: one id, one model", len({c["id"] for c in cs}) == 1 and len({c["model"] for c in cs}) == 1)
        ok("chat stream: role first, finish_reason once", cs[0]["choices"][0]["delta"].get("role") == "assistant" and sum(bool(x.get("finish_reason")) for c in cs for x in c["choices"]) == 1, cs[:1])
        return cs, times

    def do_slow(self, s):
        f, times = self.stream(input=s["user"])
        ok("streamed as it comes, not at the end", len(times) > 2 and times[0] < times[-1] * 0.7, times[:3] + times[-1:])
        cs, times = self.chat_stream({"messages": [{"role": "user", "content": s["user"]}], "stream_options": {"include_usage": True}})
        ok("chat: streamed as it comes", len(times) > 2 and times[0] < times[-1] * 0.7, times[:3] + times[-1:])
        ok("chat: include_usage gives a last chunk with choices [] and usage", cs[-1]["choices"] == [] and cs[-1]["usage"]["total_tokens"] > 0, cs[-1])
        ok("chat: text", s["expect"] in "".join(x["delta"].get("content") or "" for c in cs for x in c["choices"]))
        st = self.o.responses.create(model=self.model, input=s["user"], stream=True)
        for i, _ in enumerate(st):
            if i == 3:
                break
        st.close()                                        # a client that leaves must not hurt the next one
        ok("a client that leaves does not hurt the next", s["expect"] in self.o.responses.create(model=self.model, input=s["user"]).output_text)

    def do_tool(self, s):
        r = self.whole(input=s["user"])
        self.calls(r, s["tool"])
        ok("final message last", r["output"][-1]["type"] == "message" and s["expect"] in message_text(r), r["output"])
        f, _ = self.stream(input=s["user"])
        self.calls(f, s["tool"])
        # replayed as Open WebUI does it: items of the earlier turn in the input must not run again
        keep = {"message": ("type", "role", "content"), "function_call": ("type", "call_id", "name", "arguments", "id"), "function_call_output": ("type", "call_id", "output")}
        back = [{k: o[k] for k in keep[o["type"]]} for o in r["output"] if o["type"] in keep]
        before = self.runs()
        r2 = self.whole(input=[{"role": "user", "content": s["user"]}, *back, {"role": "user", "content": self.c["text"]["user"]}])
        ok("replayed items are accepted and not run again", self.runs() == before and not any(o["type"] == "function_call" for o in r2.get("output", [])), [before, self.runs(), r2.get("output")])
        c = self.o.chat.completions.create(model=self.model, messages=[{"role": "user", "content": s["user"]}])
        ok("chat: a server-run call is never tool_calls", not c.choices[0].message.tool_calls and c.choices[0].finish_reason == "stop" and s["expect"] in (c.choices[0].message.content or ""), c.choices[0])
        cs, _ = self.chat_stream({"messages": [{"role": "user", "content": s["user"]}]})
        ok("chat stream: no tool_calls either", not any("tool_calls" in x["delta"] for c in cs for x in c["choices"]) and [x["finish_reason"] for c in cs for x in c["choices"] if x["finish_reason"]] == ["stop"])

    def do_memory(self, s):
        a = self.o.responses.create(model=self.model, input=s["user"])
        b = self.o.responses.create(model=self.model, input=s["then"], previous_response_id=a.id)
        ok("previous_response_id continues the conversation", s["expect"] in b.output_text and b.previous_response_id == a.id, b.output_text)
        ok("retrieve", self.o.responses.retrieve(a.id).id == a.id)
        n = self.o.responses.create(model=self.model, input=s["user"], store=False)
        try:
            self.o.responses.retrieve(n.id); ok("store:false is not kept", False)
        except openai.NotFoundError:
            ok("store:false is not kept (404)", True)
        try:
            self.o.responses.create(model=self.model, input="x", previous_response_id="resp_missing"); ok("unknown previous_response_id", False)
        except openai.APIStatusError as e:
            ok("unknown previous_response_id -> 400/404 previous_response_not_found", e.status_code in (400, 404) and e.code == "previous_response_not_found", [e.status_code, e.code, e.body])
        c = self.o.chat.completions.create(model=self.model, messages=[{"role": "user", "content": s["user"]}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": s["then"]}])
        ok("chat: the history in the request counts", s["expect"] in c.choices[0].message.content, c.choices[0].message)

    def do_client_tool(self, s):
        par = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
        tool = {"type": "function", "name": s["name"], "description": "a tool of the client", "parameters": par, "strict": False}
        r = self.whole(input=s["user"], tools=[tool])
        fc = [o for o in r["output"] if o["type"] == "function_call" and o["name"] == s["name"]]
        if ok("a client-declared tool is handed back, without output", len(fc) == 1 and not any(o["type"] == "function_call_output" for o in r["output"]), r["output"]):
            r2 = self.whole(input=[{"type": "function_call_output", "call_id": fc[0]["call_id"], "output": s["output"]}], previous_response_id=r["id"], tools=[tool])
            ok("its output continues the turn", s["expect"] in message_text(r2), r2["output"])
        f, _ = self.stream(input=s["user"], tools=[tool])
        ct = {"type": "function", "function": {k: tool[k] for k in ("name", "description", "parameters")}}
        c = self.o.chat.completions.create(model=self.model, messages=[{"role": "user", "content": s["user"]}], tools=[ct])
        m = c.choices[0].message
        if ok("chat: client tool as tool_calls", c.choices[0].finish_reason == "tool_calls" and m.tool_calls and m.tool_calls[0].function.name == s["name"], c.choices[0]):
            c = self.o.chat.completions.create(model=self.model, tools=[ct], messages=[{"role": "user", "content": s["user"]}, m.to_dict(), {"role": "tool", "tool_call_id": m.tool_calls[0].id, "content": s["output"]}])
            ok("chat: tool message continues", s["expect"] in (c.choices[0].message.content or ""), c.choices[0])

    def do_approval(self, s):
        def ask():
            r = self.whole(input=s["user"])
            q = [o for o in r["output"] if o["type"] == "mcp_approval_request"]
            return (r, q[0]) if ok("mcp_approval_request", len(q) == 1 and q[0]["name"] == s["tool"] and q[0]["server_label"] and json.loads(q[0]["arguments"]) == s["arguments"], r["output"]) else (r, None)
        say = lambda q, yes, **kw: {"type": "mcp_approval_response", "approval_request_id": q["id"] if q else "x", "approve": yes, **kw}
        before = self.runs()
        r, q = ask()
        ok("nothing ran before the approval", self.runs() == before, [before, self.runs()])
        if not q:
            return
        a = self.whole(input=[say(q, True)], previous_response_id=r["id"])
        ok("approved", s["approved"] in message_text(a), a["output"])
        first, after = self.calls(a, s["tool"]), self.runs()
        again = self.h.post(self.url + "/responses", json={"model": self.model, "input": [say(q, True)], "previous_response_id": r["id"]})
        outs = [o["output"] for o in again.json().get("output", []) if o["type"] == "function_call_output"] if again.status_code == 200 else []
        ok("the same approval again does not run it again (refused, or the recorded output)", self.runs() == after and (not first or all(x == first[1]["output"] for x in outs)), [again.status_code, outs])
        r, q = ask()
        d = self.whole(input=[say(q, False, reason="no")], previous_response_id=r["id"])
        ok("denied: not run, and said", s["denied"] in message_text(d) and self.runs() == after and not any(o["type"] == "function_call_output" for o in d["output"]), d["output"])
        f = self.h.post(self.url + "/responses", json={"model": self.model, "input": [{"type": "mcp_approval_response", "approval_request_id": "mcpr_forged", "approve": True}], "previous_response_id": r["id"]})
        ok("an approval that was never asked for -> 4xx", 400 <= f.status_code < 500 and self.runs() == after, [f.status_code, f.text[:200]])
        fin, _ = self.stream(input=s["user"])
        ok("streamed approval request", any(o["type"] == "mcp_approval_request" for o in fin["output"]), fin["output"])

    def do_title(self, s):
        before = self.runs()
        c = self.o.chat.completions.create(model=self.model, messages=[{"role": "user", "content": s["user"]}], max_completion_tokens=1000, extra_headers=self.c.get("headers") or {})
        ok("a title request is answered with text and runs no tool", c.choices[0].finish_reason == "stop" and c.choices[0].message.content and self.runs() == before, [c.choices[0], before, self.runs()])

    def do_errors(self, _):
        def bad(label, cls, code, f):
            try:
                f(); ok(label, False, "no error")
            except openai.APIStatusError as e:
                b = e.response.json()
                err = b.get("error") if isinstance(b, dict) else None
                ok(f"{label} -> {cls.__name__}", isinstance(e, cls), [e.status_code, b])
                ok(f"{label}: body {{error:{{message,type,param,code}}}}", isinstance(err, dict) and err.get("message") and {"message", "type", "param", "code"} <= set(err) and (code is None or err["code"] == code), b)
        msgs = [{"role": "user", "content": "hi"}]
        bad("unknown model (chat)", openai.NotFoundError, "model_not_found", lambda: self.o.chat.completions.create(model="nope", messages=msgs))
        bad("unknown model (responses)", openai.NotFoundError, "model_not_found", lambda: self.o.responses.create(model="nope", input="hi"))
        bad("unknown model, streamed", openai.NotFoundError, "model_not_found", lambda: list(self.o.responses.create(model="nope", input="hi", stream=True)))
        bad("empty messages", openai.BadRequestError, None, lambda: self.o.chat.completions.create(model=self.model, messages=[]))
        bad("no input", openai.BadRequestError, None, lambda: self.o.post("/responses", body={"model": self.model}, cast_to=object))
        bad("unknown response", openai.NotFoundError, None, lambda: self.o.responses.retrieve("resp_missing"))
        if self.c.get("auth"):
            o = OpenAI(base_url=self.url, api_key="wrong", max_retries=0)
            bad("wrong key", openai.AuthenticationError, None, lambda: o.models.list())
        r = self.h.post(self.url + "/responses", content=b"{not json", headers={"content-type": "application/json"})
        ok("bad JSON -> 400", r.status_code == 400, r.status_code)

    def all(self):
        global here
        for name in ("models", "text", "slow", "tool", "memory", "client_tool", "approval", "title", "errors"):
            if name not in ("models", "errors") and name not in self.c:
                continue
            here, n = name, len(fails)
            try:
                f = getattr(self, "do_" + name)
                f() if name == "models" else f(self.c.get(name))
            except Exception as e:
                ok("ran to its end", False, f"{type(e).__name__}: {e}")
            print(f"{'ok  ' if len(fails) == n else 'FAIL'} {name}", flush=True)


if __name__ == "__main__":
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    if not args:
        sys.exit("usage: openai_surface.py BASE_URL [openai_surface.json] [-v]")
    Drive(args[0], json.load(open(args[1] if len(args) > 1 else os.path.join(HERE, "openai_surface.json")))).all()
    sys.exit(1 if fails else 0)
