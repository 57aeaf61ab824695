#!/usr/bin/env python3
"""Local stand-in for the OpenAI Realtime API (GA shape, WebSocket transport).

Proven against openai (python), openai (node, `OpenAIRealtimeWS`) and @openai/agents-realtime.

  python openai_realtime_standin.py --port 8775 [--tls-port 8776 --cert c.pem --key k.pem]
                                    [--log wire.jsonl] [--asr TEXT]... [--api-key KEY] [--no-strict]

The text of the newest user message (or --asr for spoken turns, one after the other)
decides what the "model" does:

  call NAME {json}     one line per call -> one function_call item each, one response
  say TEXT             speak TEXT
  slow                 a long answer (40 chunks, 50 ms apart) -- interrupt it
  fail                 response.done with status "failed"
  again                a line of its own, after calls: response.done is sent twice
  cut [MS]             a line of its own, after calls: the TCP connection is dropped MS later (default 0)
  anything else        speaks "You said: ..."

  expire [MS]          a line of its own: error session_expired MS later, then the service closes the socket

If the newest items are function_call_output, the model speaks about them; a newer system message is repeated.

GET /report answers JSON: complaints (every event that was refused, except for races that the API reports as errors,
and every call that was answered twice), and every call with what became of it. GET /control?say=COMMAND does something
to the newest session: `cut` drops its connection, `die CODE REASON` closes it, `asr TEXT` is what the next spoken turn
says.

--strict (default when `openai` is importable): every client event is validated
with the SDK's own TypedDicts; unknown parameters are answered by an `error`
event with code unknown_parameter, as the real service does (the socket stays open).
"""
import argparse, asyncio, base64, json, logging, math, re, ssl, struct, sys, time, uuid
from http import HTTPStatus
from urllib.parse import parse_qs

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

try:
    import pydantic
    from pydantic import TypeAdapter
    import openai.types.realtime as rt
    from openai.types.realtime import session_update_event_param as sup
except Exception:
    rt = None

RATE = 24000


def nid(p):
    return f"{p}_{uuid.uuid4().hex[:21]}"


def tone(ms, hz=440):
    n = RATE * ms // 1000
    return b"".join(struct.pack("<h", int(9000 * math.sin(2 * math.pi * hz * i / RATE))) for i in range(n))


def rms(pcm):
    n = len(pcm) // 2
    return math.sqrt(sum(x * x for x in struct.unpack(f"<{n}h", pcm[: n * 2])) / n) if n else 0.0


def deep(a, b):
    """session.update merges: present fields replace, absent ones stay, null clears."""
    for k, v in b.items():
        if isinstance(v, dict) and isinstance(a.get(k), dict) and a[k].get("type") == v.get("type", a[k].get("type")):
            deep(a[k], v)
        else:
            a[k] = v
    return a


class ApiError(Exception):
    def __init__(self, code, message, param=None, type="invalid_request_error"):
        self.code, self.message, self.param, self.type = code, message, param, type


# Both sides may begin or end a response at the same time.
RACES = {"conversation_already_has_active_response", "response_cancel_not_active"}


class World:
    def __init__(self, asr=()):
        self.asr, self.calls, self.complaints, self.sessions = list(asr), {}, [], []

    def heard(self):
        """what the next spoken turn says: one --asr after the other, the last one again and again"""
        return self.asr.pop(0) if len(self.asr) > 1 else self.asr[0] if self.asr else "say I heard you"

    def complain(self, conn, what):
        self.complaints.append({"conn": conn, "what": what})
        print("COMPLAINT", conn, what, flush=True)

    def told(self, conn, text):
        """a result of a connection before, said as a message (heuristic: it names the tool)"""
        for call in self.calls.values():
            if call["conn"] != conn and call["state"] == "lost" and call["name"] in text:
                call["state"] = "told as content"

    def report(self):
        return {"complaints": self.complaints, "calls": self.calls}

    async def control(self, say):
        command, _, rest = say.partition(" ")
        if command == "asr":
            self.asr.insert(0, rest)
        elif command == "cut":
            self.sessions[-1].ws.transport.abort()
        elif command == "die":
            code, _, reason = rest.partition(" ")
            await self.sessions[-1].ws.close(int(code), reason)


def adapters():
    m = {}
    if rt:
        for name in ("ConversationItemCreateEventParam", "ConversationItemDeleteEventParam",
                     "ConversationItemRetrieveEventParam", "ConversationItemTruncateEventParam",
                     "InputAudioBufferAppendEventParam", "InputAudioBufferClearEventParam",
                     "InputAudioBufferCommitEventParam", "OutputAudioBufferClearEventParam",
                     "ResponseCancelEventParam", "ResponseCreateEventParam"):
            td = getattr(rt, name)
            t = TypeAdapter(td)
            lit = t.json_schema()["properties"]["type"]["const"]
            m[lit] = t
        m["session.update"] = TypeAdapter(sup.SessionUpdateEventParam)
    return m


class Session:
    def __init__(self, ws, opt, log, model, adap, world, conn):
        self.ws, self.opt, self.log, self.adap, self.w, self.conn = ws, opt, log, adap, world, conn
        self.later = []
        self.items = []                  # conversation, in order
        self.resp = None                 # (id, task, item)
        self.buf = b""
        self.buf_ms = self.total_ms = 0.0
        self.speech = False
        self.sil = 0.0
        self.pre_item = None
        self.audio_len = {}              # item id -> ms produced
        self.s = {
            "type": "realtime", "object": "realtime.session", "id": nid("sess"), "model": model,
            "output_modalities": ["audio"], "instructions": "You are a stand-in.", "tools": [],
            "tool_choice": "auto", "max_output_tokens": "inf", "tracing": None, "truncation": "auto",
            "prompt": None, "expires_at": int(time.time()) + 3600, "include": None,
            "audio": {"input": {"format": {"type": "audio/pcm", "rate": RATE}, "transcription": None,
                                "noise_reduction": None,
                                "turn_detection": {"type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300,
                                                   "silence_duration_ms": 500, "idle_timeout_ms": None,
                                                   "create_response": True, "interrupt_response": True}},
                      "output": {"format": {"type": "audio/pcm", "rate": RATE}, "voice": "marin", "speed": 1.0}}}

    async def ev(self, type_, **kw):
        e = {"type": type_, "event_id": nid("event"), **kw}
        self.log("server", e)
        await self.ws.send(json.dumps(e))          # always TEXT frames

    # ---------------------------------------------------------------- items
    async def add_item(self, item, after=None, done=True):
        item.setdefault("id", nid("item"))
        item["object"] = "realtime.item"
        prev = self.items[-1]["id"] if self.items else None
        if after == "root":
            self.items.insert(0, item); prev = None
        elif after:
            ix = next((i for i, it in enumerate(self.items) if it["id"] == after), None)
            if ix is None:
                raise ApiError("item_not_found", f"Item with item_id '{after}' not found.", "previous_item_id")
            self.items.insert(ix + 1, item); prev = after
        else:
            self.items.append(item)
        await self.ev("conversation.item.added", previous_item_id=prev, item=dict(item))
        if done:
            item["status"] = "completed"
            await self.ev("conversation.item.done", previous_item_id=prev, item=dict(item))
        return prev

    # ---------------------------------------------------------------- response
    def obj(self, rid, status, output=(), details=None, usage=None, meta=None):
        return {"object": "realtime.response", "id": rid, "status": status, "status_details": details,
                "output": [dict(o) for o in output], "conversation_id": "conv_standin",
                "output_modalities": self.mods, "max_output_tokens": "inf",
                "audio": {"output": {"format": self.s["audio"]["output"]["format"],
                                     "voice": self.s["audio"]["output"]["voice"]}},
                "usage": usage, "metadata": meta}

    async def start(self, params=None):
        if self.resp:
            raise ApiError("conversation_already_has_active_response",
                           f"Conversation already has an active response in progress: {self.resp['id']}. "
                           "Wait until the response is finished before creating a new one.")
        params = params or {}
        self.mods = params.get("output_modalities") or self.s["output_modalities"]
        r = {"id": nid("resp"), "out": [], "meta": params.get("metadata"),
             "is_default": params.get("conversation", "auto") != "none"}
        self.resp = r
        await self.ev("response.created", response=self.obj(r["id"], "in_progress", meta=r["meta"]))
        r["task"] = asyncio.create_task(self.generate(r, params))

    async def finish(self, r, status, details=None):
        usage = {"total_tokens": 20, "input_tokens": 12, "output_tokens": 8,
                 "input_token_details": {"text_tokens": 12, "audio_tokens": 0, "cached_tokens": 0},
                 "output_token_details": {"text_tokens": 2, "audio_tokens": 6}}
        self.resp = None
        for _ in range(2 if r.get("is_twice") else 1):
            await self.ev("response.done", response=self.obj(r["id"], status, r["out"], details, usage, r["meta"]))
        await self.ev("rate_limits.updated", rate_limits=[
            {"name": "tokens", "limit": 40000, "remaining": 39980, "reset_seconds": 0.03}])

    async def cancel(self, reason):
        r = self.resp
        r["task"].cancel()
        try:
            await r["task"]
        except asyncio.CancelledError:
            pass
        for it in r["out"]:
            if it.get("status") != "completed":
                it["status"] = "incomplete"
                ids = dict(response_id=r["id"], item_id=it["id"], output_index=r["out"].index(it))
                if it["type"] == "message":
                    await self.ev("response.output_audio.done", content_index=0, **ids)
                    await self.ev("response.output_audio_transcript.done", content_index=0,
                                  transcript=it["content"][0].get("transcript", ""), **ids)
                await self.ev("response.output_item.done", response_id=r["id"],
                              output_index=ids["output_index"], item=dict(it))
        await self.finish(r, "cancelled", {"type": "cancelled", "reason": reason})

    def prompt(self):
        outs = []
        for it in reversed(self.items):
            if it["type"] == "function_call_output":
                name = next((x["name"] for x in self.items if x["type"] == "function_call"
                             and x["call_id"] == it["call_id"]), "?")
                outs.append(f"{name} says {it['output']}")
            elif it["type"] == "message" and it["role"] == "system":
                if not outs:
                    return "say " + it["content"][0]["text"].replace("\n", " ")
                break
            elif it["type"] == "message" and it["role"] == "user":
                if outs:
                    break
                c = it["content"][0] if it["content"] else {}
                return c.get("text") or c.get("transcript") or self.w.heard()
            elif outs:
                break
        return "say " + "; ".join(reversed(outs)) if outs else "say Hello"

    async def generate(self, r, params):
        text = (params.get("instructions") if params.get("input") == [] else None) or self.prompt()
        if text.strip() == "fail":
            return await self.finish(r, "failed", {"type": "failed", "error": {
                "type": "server_error", "code": "internal_error", "message": "stand-in failure"}})
        calls = re.findall(r"^call\s+([\w.-]+)\s*(\{.*\})?\s*$", text, re.M)
        if m := re.search(r"^cut(?:\s+(\d+))?\s*$", text, re.M):
            self.later.append(asyncio.create_task(self.cut_later(int(m.group(1) or 0))))
        if m := re.search(r"^expire(?:\s+(\d+))?\s*$", text, re.M):
            self.later.append(asyncio.create_task(self.expire_later(int(m.group(1) or 0))))
        if calls and self.s.get("tool_choice") != "none":
            r["is_twice"] = bool(re.search(r"^again\s*$", text, re.M))
            for name, args in calls:
                await self.call(r, name, args or "{}")
        elif text.strip() == "slow":
            await self.speak(r, "This is a very long answer. " * 8, 40, 0.05)
        elif text.startswith("say "):
            await self.speak(r, text[4:])
        else:
            await self.speak(r, "You said: " + text)
        await self.finish(r, "completed")

    async def cut_later(self, ms):
        await asyncio.sleep(ms / 1000)
        self.ws.transport.abort()

    async def expire_later(self, ms):
        await asyncio.sleep(ms / 1000)
        await self.ev("error", error={"type": "invalid_request_error", "code": "session_expired", "param": None,
                                      "message": "Your session hit the maximum duration of 60 minutes."})
        await self.ws.close(1001, "session_expired")

    async def call(self, r, name, args):
        it = {"id": nid("item"), "object": "realtime.item", "type": "function_call", "status": "in_progress",
              "call_id": nid("call")[:21], "name": name, "arguments": ""}
        self.w.calls[it["call_id"]] = {"name": name, "conn": self.conn, "state": "open"}
        ix = len(r["out"]); r["out"].append(it)
        await self.ev("response.output_item.added", response_id=r["id"], output_index=ix, item=dict(it))
        prev = await self.add_item(it, done=False)
        base = dict(response_id=r["id"], item_id=it["id"], output_index=ix, call_id=it["call_id"])
        for i in range(0, len(args), 6):
            it["arguments"] += args[i:i + 6]
            await self.ev("response.function_call_arguments.delta", delta=args[i:i + 6], **base)
        await self.ev("response.function_call_arguments.done", name=name, arguments=args, **base)
        it["status"] = "completed"
        await self.ev("response.output_item.done", response_id=r["id"], output_index=ix, item=dict(it))
        await self.ev("conversation.item.done", previous_item_id=prev, item=dict(it))

    async def speak(self, r, text, chunks=3, gap=0.0):
        audio = "audio" in self.mods
        it = {"id": nid("item"), "object": "realtime.item", "type": "message", "status": "in_progress",
              "role": "assistant", "content": []}
        ix = len(r["out"]); r["out"].append(it)
        await self.ev("response.output_item.added", response_id=r["id"], output_index=ix, item=dict(it))
        prev = await self.add_item(it, done=False)
        base = dict(response_id=r["id"], item_id=it["id"], output_index=ix, content_index=0)
        part = {"type": "audio", "transcript": ""} if audio else {"type": "text", "text": ""}
        await self.ev("response.content_part.added", part=dict(part), **base)
        it["content"] = [{"type": "output_audio", "transcript": ""} if audio else {"type": "output_text", "text": ""}]
        words = text.split(" ")
        per = max(1, math.ceil(len(words) / chunks))
        groups = [" ".join(words[i:i + per]) + " " for i in range(0, len(words), per)]
        pcm = base64.b64encode(tone(40)).decode()
        for k in range(max(chunks, len(groups)) if audio else len(groups)):
            piece = groups[k] if k < len(groups) else ""
            if audio:
                if piece:
                    it["content"][0]["transcript"] += piece
                    await self.ev("response.output_audio_transcript.delta", delta=piece, **base)
                self.audio_len[it["id"]] = self.audio_len.get(it["id"], 0) + 40
                await self.ev("response.output_audio.delta", delta=pcm, **base)
            elif piece:
                it["content"][0]["text"] += piece
                await self.ev("response.output_text.delta", delta=piece, **base)
            await asyncio.sleep(gap)
        if audio:
            full = it["content"][0]["transcript"]
            await self.ev("response.output_audio.done", **base)
            await self.ev("response.output_audio_transcript.done", transcript=full, **base)
            await self.ev("response.content_part.done", part={"type": "audio", "transcript": full}, **base)
        else:
            full = it["content"][0]["text"]
            await self.ev("response.output_text.done", text=full, **base)
            await self.ev("response.content_part.done", part={"type": "text", "text": full}, **base)
        it["status"] = "completed"
        await self.ev("response.output_item.done", response_id=r["id"], output_index=ix, item=dict(it))
        await self.ev("conversation.item.done", previous_item_id=prev, item=dict(it))

    # ---------------------------------------------------------------- client events
    def check(self, e):
        t = e.get("type")
        if not t:
            raise ApiError("missing_required_parameter", "Missing required parameter: 'type'.", "type")
        known = set(self.adap) or {"session.update", "response.create"}
        if rt and t not in known:
            raise ApiError("invalid_value", f"Invalid value: '{t}'. Supported values are: "
                           + ", ".join(f"'{k}'" for k in sorted(known)) + ".", "type")
        if t == "session.update" and "type" not in (e.get("session") or {}):
            raise ApiError("missing_required_parameter", "Missing required parameter: 'session.type'.", "session.type")
        if not (rt and self.opt.strict):
            return
        body = json.loads(json.dumps(e))
        if t == "session.update":             # null clears these; the params types do not spell that out
            for sect in ("input", "output"):
                a = (body["session"].get("audio") or {}).get(sect) or {}
                for k in ("transcription", "noise_reduction", "turn_detection"):
                    if k in a and a[k] is None:
                        del a[k]
        try:
            self.adap[t].validate_python(body, extra="forbid")
        except pydantic.ValidationError as x:
            errs = x.errors()
            want = "realtime" if (body.get("session") or {}).get("type") == "realtime" else ""
            pick = [r for r in errs if "Transcription" not in str(r["loc"])] or errs
            pick = [r for r in pick if r["type"] == "extra_forbidden"] or pick
            er = pick[0]
            loc = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in er["loc"]
                          if isinstance(p, int) or not re.match(r"^[A-Z]", str(p))).lstrip(".")
            if er["type"] == "extra_forbidden":
                raise ApiError("unknown_parameter", f"Unknown parameter: '{loc}'.", loc)
            if er["type"] == "missing":
                raise ApiError("missing_required_parameter", f"Missing required parameter: '{loc}'.", loc)
            raise ApiError("invalid_value", f"Invalid value for '{loc}': {er['msg']}", loc)

    async def handle(self, e):
        t = e["type"]
        if t == "session.update":
            new = dict(e["session"])
            if "model" in new and new["model"] != self.s["model"]:
                raise ApiError("cannot_update_model", "Cannot update a conversation's model.", "session.model")
            names = [x.get("name") for x in new.get("tools") or [] if x.get("type") == "function"]
            if len(names) != len(set(names)):
                raise ApiError("duplicate_tool", "Duplicate tool name", "session.tools")
            deep(self.s, new)
            await self.ev("session.updated", session=json.loads(json.dumps(self.s)))
        elif t == "conversation.item.create":
            it = json.loads(json.dumps(e["item"]))
            if it["type"] == "function_call_output" and not any(
                    x["type"] == "function_call" and x["call_id"] == it["call_id"] for x in self.items):
                raise ApiError("invalid_tool_call_id", f"Tool call ID '{it['call_id']}' not found in conversation.",
                               "item.call_id")
            if it["type"] == "function_call_output":
                call = self.w.calls[it["call_id"]]
                if call["state"] == "answered":
                    self.w.complain(self.conn, f"{it['call_id']} answered twice")
                call["state"] = "answered"
            elif it["type"] == "message" and it["role"] == "system":
                self.w.told(self.conn, it["content"][0]["text"])
            await self.add_item(it, e.get("previous_item_id"))
        elif t == "conversation.item.delete":
            self.find(e["item_id"])
            self.items = [x for x in self.items if x["id"] != e["item_id"]]
            await self.ev("conversation.item.deleted", item_id=e["item_id"])
        elif t == "conversation.item.retrieve":
            await self.ev("conversation.item.retrieved", item=dict(self.find(e["item_id"])))
        elif t == "conversation.item.truncate":
            it = self.find(e["item_id"])
            if it.get("role") != "assistant":
                raise ApiError("invalid_value", "Only assistant message items can be truncated.", "item_id")
            if e["audio_end_ms"] > self.audio_len.get(it["id"], 0):
                raise ApiError("invalid_value", f"Audio content of {self.audio_len.get(it['id'], 0)}ms is already "
                               f"shorter than {e['audio_end_ms']}ms", "audio_end_ms")
            it["content"][0].pop("transcript", None)
            await self.ev("conversation.item.truncated", item_id=it["id"], content_index=e["content_index"],
                          audio_end_ms=e["audio_end_ms"])
        elif t == "response.create":
            await self.start(e.get("response"))
        elif t == "response.cancel":
            if not self.resp or (e.get("response_id") and e["response_id"] != self.resp["id"]):
                raise ApiError("response_cancel_not_active", "Cancellation failed: no active response found")
            await self.cancel("client_cancelled")
        elif t == "input_audio_buffer.append":
            await self.audio(base64.b64decode(e["audio"], validate=True))
        elif t == "input_audio_buffer.commit":
            if self.buf_ms < 100:
                raise ApiError("input_audio_buffer_commit_empty",
                               "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, "
                               f"but buffer only has {self.buf_ms:.2f}ms of audio.")
            await self.commit()
        elif t == "input_audio_buffer.clear":
            self.buf, self.buf_ms = b"", 0
            await self.ev("input_audio_buffer.cleared")
        elif t == "output_audio_buffer.clear":
            raise ApiError("invalid_event", "output_audio_buffer.clear is only supported over WebRTC/SIP")

    def find(self, i):
        for x in self.items:
            if x["id"] == i:
                return x
        raise ApiError("item_not_found", f"Item with item_id '{i}' not found.", "item_id")

    async def audio(self, pcm):
        ms = len(pcm) / 2 / RATE * 1000
        self.total_ms += ms
        self.buf += pcm
        self.buf_ms += ms
        td = self.s["audio"]["input"].get("turn_detection")
        if not td:
            return
        loud = rms(pcm) > 300
        if loud and not self.speech:
            self.speech, self.sil, self.pre_item = True, 0, nid("item")
            await self.ev("input_audio_buffer.speech_started", item_id=self.pre_item,
                          audio_start_ms=int(max(0, self.total_ms - ms)))
            if self.resp and self.resp["is_default"] and td.get("interrupt_response", True):
                await self.cancel("turn_detected")
        elif loud:
            self.sil = 0
        elif self.speech:
            self.sil += ms
            if self.sil >= td.get("silence_duration_ms", 500):
                self.speech = False
                await self.ev("input_audio_buffer.speech_stopped", item_id=self.pre_item, audio_end_ms=int(self.total_ms))
                await self.commit(self.pre_item)
                if td.get("create_response", True):
                    await self.start()

    async def commit(self, item_id=None):
        self.buf, self.buf_ms = b"", 0
        item_id = item_id or nid("item")
        prev = self.items[-1]["id"] if self.items else None
        await self.ev("input_audio_buffer.committed", previous_item_id=prev, item_id=item_id)
        it = {"id": item_id, "type": "message", "status": "completed", "role": "user",
              "content": [{"type": "input_audio", "transcript": None}]}
        await self.add_item(it)
        if self.s["audio"]["input"].get("transcription"):
            text = self.w.heard()
            it["content"][0]["transcript"] = text
            await self.ev("conversation.item.input_audio_transcription.delta", item_id=item_id, content_index=0, delta=text)
            await self.ev("conversation.item.input_audio_transcription.completed", item_id=item_id, content_index=0,
                          transcript=text, usage={"type": "duration", "seconds": 1})

    async def run(self):
        await self.ev("session.created", session=json.loads(json.dumps(self.s)))
        try:
            async for raw in self.ws:
                e = {}
                try:
                    try:
                        e = json.loads(raw)
                    except ValueError:
                        raise ApiError("invalid_json", "We could not parse the JSON body of the event.")
                    self.log("client", e, frame="text" if isinstance(raw, str) else "binary")
                    self.check(e)
                    await self.handle(e)
                except ApiError as x:
                    if x.code not in RACES:
                        self.w.complain(self.conn, f"{e.get('type')}: {x.code}: {x.message}")
                    await self.ev("error", error={"type": x.type, "code": x.code, "message": x.message,
                                                  "param": x.param, "event_id": e.get("event_id")})
                except ConnectionClosed:
                    pass                               # cannot be answered; what was sent before is still read
        except ConnectionClosed:
            pass
        finally:
            if self.resp:
                self.resp["task"].cancel()
            for t in self.later:
                t.cancel()
            for call in self.w.calls.values():
                if call["conn"] == self.conn and call["state"] == "open":
                    call["state"] = "lost"


async def main(opt):
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    fh = open(opt.log, "a", buffering=1) if opt.log else None
    adap, world = adapters(), World(opt.asr)

    def make_log(conn):
        def log(who, msg, **kw):
            rec = {"t": round(time.time(), 3), "conn": conn, "from": who, **kw, "msg": msg}
            if fh:
                fh.write(json.dumps(rec) + "\n")
            if opt.verbose:
                print(json.dumps(rec)[:300], flush=True)
        return log

    def gate(conn, req):
        path, _, query = req.path.partition("?")     # not urlsplit: the path may start with "//"
        if path == "/report":
            return conn.respond(HTTPStatus.OK, json.dumps(world.report()) + "\n")
        if path == "/control":
            asyncio.get_running_loop().create_task(world.control(parse_qs(query)["say"][0]))
            return conn.respond(HTTPStatus.OK, '{"ok": true}\n')
        h = {k.lower(): v for k, v in req.headers.raw_items()}
        make_log("http")("upgrade", {"path": req.path, "headers": h})
        if path.rstrip("/") != "/v1/realtime":
            return conn.respond(HTTPStatus.NOT_FOUND, '{"error":{"message":"Invalid URL"}}\n')
        q = parse_qs(query)
        if not (q.get("model") or q.get("call_id") or q.get("intent")):
            return conn.respond(HTTPStatus.BAD_REQUEST, '{"error":{"message":"missing model"}}\n')
        key = None
        if h.get("authorization", "").startswith("Bearer "):
            key = h["authorization"][7:]
        for p in re.split(r",\s*", h.get("sec-websocket-protocol", "")):
            if p.startswith("openai-insecure-api-key."):
                key = p[len("openai-insecure-api-key."):]
        if not key or (opt.api_key and key != opt.api_key):
            return conn.respond(HTTPStatus.UNAUTHORIZED, '{"error":{"message":"Incorrect API key provided"}}\n')
        conn.model = (q.get("model") or ["gpt-realtime"])[0]
        conn.beta = h.get("openai-beta") == "realtime=v1"
        return None

    def pick(conn, offered):
        return "realtime" if "realtime" in offered else None

    n = 0

    async def handler(ws):
        nonlocal n
        n += 1
        s = Session(ws, opt, make_log(n), ws.model, adap, world, n)
        world.sessions[:] = [s]
        if ws.beta:
            await s.ev("error", error={"type": "invalid_request_error", "code": "beta_api_shape_disabled",
                                       "message": "The Realtime Beta API is no longer supported. Please use /v1/realtime "
                                                  "for the GA API.", "param": None, "event_id": None})
            await ws.close(4000, "invalid_request_error.beta_api_shape_disabled")
            return
        await s.run()

    kw = dict(process_request=gate, select_subprotocol=pick, max_size=None, ping_interval=None)
    servers = [await serve(handler, "127.0.0.1", opt.port, **kw)]
    if opt.tls_port is not None:
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(opt.cert, opt.key)
        servers.append(await serve(handler, "127.0.0.1", opt.tls_port, ssl=ctx, **kw))
    print("ready", *(s.sockets[0].getsockname()[1] for s in servers), flush=True)   # port 0: a free one
    await asyncio.gather(*(s.wait_closed() for s in servers))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=8775)
    ap.add_argument("--tls-port", type=int)
    ap.add_argument("--cert"), ap.add_argument("--key")
    ap.add_argument("--log"), ap.add_argument("--asr", action="append", default=[]), ap.add_argument("--api-key")
    ap.add_argument("--no-strict", dest="strict", action="store_false")
    ap.add_argument("-v", "--verbose", action="store_true")
    try:
        asyncio.run(main(ap.parse_args()))
    except KeyboardInterrupt:
        sys.exit(0)
