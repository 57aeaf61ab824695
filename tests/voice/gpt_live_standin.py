#!/usr/bin/env python3
"""Local stand-in for GPT-Live (`/v1/live/sessions`, primary WebSocket, sideband and fork).

Proven against openai (python `client.live`, node `LiveWS`/`SidebandWS`).

  python gpt_live_standin.py --port 8785 [--tls-port 8786 --cert c.pem --key k.pem] [--log wire.jsonl]
                             [--asr TEXT]... [--api-key KEY] [--expires-in S] [--no-clock] [--no-strict]

GPT-Live has no text input: what the caller "says" is --asr (n-th utterance = n-th --asr, the last one
repeats), an utterance being loud audio followed by 400 ms of quiet. A test may also speak without a
microphone:  GET /control?session=ID&say=TEXT  (session may be left out when only one is open).
What the caller says decides what the model does, one command per line:

  delegate TEXT        input transcript TEXT, then session.delegation.created (target of the session)
  again                sends the last session.delegation.created once more, same id (a duplicate)
  late TEXT            as delegate, but the transcript comes 300 ms AFTER the delegation
  say TEXT             the model speaks TEXT
  slow                 the model speaks for 4 s; loud input cuts it (no event says so: the audio just stops)
  call NAME {json}     Responses delegation only: nested response.event stream with a function_call
  error                an `error` event (server_error)
  usage | info         session.usage.updated | info
  expire | content     session.closed with that reason, then close 1000
  cut                  the TCP connection is dropped, no session.closed
  die CODE REASON      close frame with that code
  anything else        the model speaks "You said: ..."

The model speaks only while the input clock runs (audio appended within the last 500 ms), as the service
does; --no-clock lifts that. GET /muted: the open sessions whose microphone is off. GET /report answers JSON: complaints (every rule that a client broke), and
per session the delegations with what was appended to them. Exit status 3 if there were complaints.
Client events are validated with the openai SDK's own types, unknown keys refused.
"""
import argparse, asyncio, base64, json, logging, math, re, signal, ssl, struct, sys, time, uuid
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response

try:
    import typing, pydantic
    from pydantic import TypeAdapter
    from openai.types.live import client_event_param as cp, connect_client_event_param as sp, fork_client_event_param as fp
except Exception:                                       # stand-alone use: no type checks
    cp = None

PATH = re.compile(r"^/v1/live/sessions(?:/([^/]+)/(attach|fork))?$")
APPEND = re.compile(r"^session\.(instructions|thinking|commentary)\.append$")
FRAME_MS = 100


def nid(p):
    return f"{p}_{uuid.uuid4().hex[:20]}"


def adapters(union):
    """event type -> pydantic adapter of the SDK's TypedDict for it"""
    out = {}
    for t in typing.get_args(union):
        a = TypeAdapter(t)
        out[a.json_schema()["properties"]["type"]["const"]] = a
    return out


def tokens(text):
    """A rough count (the service's tokenizer is not public here): 4 characters, or 1 non-Latin one, or 1 word."""
    wide = sum(ord(c) > 0x2ff for c in text)
    return max(len(text.split()), math.ceil((len(text) - wide) / 4) + wide)


class ApiError(Exception):
    def __init__(self, code, message, param=None, type="invalid_request_error"):
        self.code, self.message, self.param, self.type = code, message, param, type


class Live:
    """one Live session: a primary connection and any number of sidebands"""
    def __init__(self, world, cfg, parent=None):
        self.w, self.id, self.t0 = world, nid("live"), time.time()
        self.cfg, self.primary, self.sides = cfg, None, []
        self.closed, self.is_cut = None, False          # is_cut: by a command, so that nothing can be answered
        self.seen, self.deleg, self.last_deleg = {}, {}, None
        self.n_utter, self.loud, self.quiet_ms, self.said_ms = 0, False, 0.0, 0.0
        self.in_ms, self.last_in, self.muted = 0.0, 0.0, False
        self.speaking, self.queue = None, asyncio.Queue()
        self.fixture = None
        self.calls = {}
        self.tasks = set()
        fmt = ((cfg.get("audio") or {}).get("format")) or {"type": "audio/pcm", "rate": 24000}
        self.fmt, self.rate = fmt, fmt["rate"]
        self.mode = (cfg.get("delegation") or {"type": "client"})["type"]
        self.spawn(self.voice())

    def spawn(self, coro):
        t = asyncio.create_task(coro)
        self.tasks.add(t)
        t.add_done_callback(self.tasks.discard)
        return t

    def now_ms(self):
        return int(self.in_ms)

    def resource(self):
        r = {k: v for k, v in self.cfg.items() if v is not None}
        audio = dict(r.get("audio") or {})
        audio.setdefault("format", self.fmt)
        audio.setdefault("output", {"voice": "marin"})
        r["audio"] = audio
        r.setdefault("delegation", {"type": "client"})
        return {**r, "id": self.id, "status": "active", "expires_at": int(self.t0 + self.w.opt.expires_in)}

    async def ev(self, type_, only=None, **kw):
        e = {"type": type_, "event_id": nid("event"), **{k: v for k, v in kw.items() if v is not None}}
        for c in ([only] if only else [self.primary, *self.sides]):
            if c:
                await c.send(e)

    # ---- audio out: the SAME timeline as the input; no event marks the end of speech
    def pcm(self, ms):
        n = self.rate * ms // 1000
        if self.fmt["type"] != "audio/pcm":
            return (b"\x50\xd0" * n)[:n]
        return b"".join(struct.pack("<h", int(9000 * math.sin(i / 8))) for i in range(n))

    async def voice(self):
        while True:
            text, frames = await self.queue.get()
            self.speaking = text
            words, i = text.split(" "), 0
            per = max(1, math.ceil(len(words) / frames))
            for _ in range(frames):
                while self.w.opt.clock and time.time() - self.last_in > 0.5:
                    await asyncio.sleep(0.02)           # no input, no clock, no speech
                if self.speaking is None:
                    break                               # cut by the caller
                data, at = base64.b64encode(self.pcm(FRAME_MS)).decode(), self.now_ms()
                if self.primary:
                    await self.primary.send({"type": "session.output_audio.delta", "delta": data})
                for s in self.sides:
                    await s.send({"type": "session.output_audio.delta", "delta": data, "start_ms": at, "end_ms": at + FRAME_MS})
                piece, i = " ".join(words[i:i + per]), i + per
                if piece:
                    await self.ev("session.output_transcript.delta", delta=piece + " ", start_ms=at, end_ms=at + FRAME_MS)
                await asyncio.sleep(FRAME_MS / 1000 if text.startswith("This is a very long") else 0)
            self.speaking = None

    def speak(self, text, frames=None):
        self.queue.put_nowait((text, frames or max(2, len(text.split()) // 2)))

    # ---- audio in
    async def audio(self, raw):
        per = 2 if self.fmt["type"] == "audio/pcm" else 1
        if per == 2 and len(raw) % 2:
            raise ApiError("invalid_audio", "PCM16 audio must hold whole samples.", "audio")
        if raw[:4] == b"RIFF":
            raise ApiError("invalid_audio", "Raw audio expected, found a WAV header.", "audio")
        ms = len(raw) / per / self.rate * 1000
        self.in_ms += ms
        self.last_in = time.time()
        for s in self.sides:                            # reflected, no timestamps, no event_id
            await s.send({"type": "session.input_audio.append", "audio": base64.b64encode(raw).decode()})
        if self.muted or self.fixture:
            return
        if per == 2:
            n = len(raw) // 2
            loud = n and math.sqrt(sum(x * x for x in struct.unpack(f"<{n}h", raw)) / n) > 300
        else:
            loud = len(set(raw)) > 1
        if loud:
            if not self.loud and self.speaking:
                self.speaking = None                    # barge-in is the model's own affair
            self.loud, self.quiet_ms, self.said_ms = True, 0.0, self.said_ms + ms
        elif self.loud:
            self.quiet_ms += ms
            if self.quiet_ms >= 400:
                self.loud = False
                asr = self.w.opt.asr or [f"say I heard {int(self.said_ms)} ms"]
                text = asr[min(self.n_utter, len(asr) - 1)]
                self.n_utter, self.said_ms = self.n_utter + 1, 0.0
                self.spawn(self.hear(text))

    async def transcript(self, text):
        end = self.now_ms()
        words = re.findall(r"\S+\s*", text)
        for k in range(0, len(words), 3):
            await self.ev("session.input_transcript.delta", delta="".join(words[k:k + 3]),
                          start_ms=max(0, end - 600), end_ms=end)

    async def hear(self, text):
        """the caller said TEXT; decide what the model does"""
        for line in text.splitlines():
            cmd, _, rest = line.strip().partition(" ")
            if cmd in ("delegate", "late"):
                if cmd == "delegate":
                    await self.transcript(rest)
                d = {"id": nid("deleg"), "target": self.mode, "type": "delegation"}
                self.deleg[d["id"]] = {"asked": rest, "at": round(time.time(), 3), "appended": [], "ack": True}
                self.last_deleg = dict(delegation=d, offset_ms=self.now_ms())
                await self.ev("session.delegation.created", **self.last_deleg)
                delay = (self.cfg.get("delegation") or {}).get("acknowledgement_delay_ms", 0)
                self.spawn(self.acknowledge(d["id"], delay))
                if cmd == "late":
                    await asyncio.sleep(0.3)
                    await self.transcript(rest)
            elif cmd == "again" and self.last_deleg:
                await self.ev("session.delegation.created", **self.last_deleg)
            elif cmd == "say":
                self.speak(rest)
            elif cmd == "slow":
                self.speak("This is a very long answer. " * 8, 40)
            elif cmd == "call":
                await self.backend_call(*(rest.split(" ", 1) + ["{}"])[:2])
            elif cmd == "error":
                await self.ev("error", error={"type": "server_error", "code": "internal_error", "message": "stand-in failure"})
            elif cmd == "usage":
                await self.ev("session.usage.updated", usage={"seconds": round(self.in_ms / 1000, 1)}, context_window={"usage_ratio": 0.1})
            elif cmd == "info":
                await self.ev("info", code="standin", message="a notice")
            elif cmd in ("expire", "content"):
                self.is_cut = True
                await self.close({"expire": "expired"}.get(cmd, cmd))
            elif cmd == "cut":
                self.is_cut = True
                self.primary and self.primary.ws.transport.abort()
            elif cmd == "die":
                self.is_cut = True
                code, _, reason = rest.partition(" ")
                self.primary and await self.primary.ws.close(int(code or 1011), reason)
            elif line.strip():
                await self.transcript(line)
                self.speak("You said: " + line)

    async def acknowledge(self, did, delay):
        await asyncio.sleep(delay / 1000)
        if self.deleg[did].pop("ack", None):            # any commentary or thinking, for whatever delegation, cancels it
            self.speak("One moment.")

    async def backend_call(self, name, args):
        """Responses delegation: the hosted backend asks for a function; snapshots carry no output [I]"""
        if self.mode != "responses":
            return
        rid, did = nid("resp"), nid("deleg")
        self.deleg[did] = {"asked": name, "at": round(time.time(), 3), "appended": []}
        await self.ev("session.delegation.created", offset_ms=self.now_ms(),
                      delegation={"id": did, "target": "responses", "type": "delegation", "response_id": rid})
        item = {"type": "function_call", "id": nid("fc"), "call_id": nid("call"), "name": name, "arguments": args, "status": "completed"}
        self.calls[item["call_id"]] = did
        for e in ({"type": "response.created", "response": {"id": rid, "status": "in_progress", "output": []}},
                  {"type": "response.output_item.done", "output_index": 0, "item": item},
                  {"type": "response.completed", "response": {"id": rid, "status": "completed", "output": []}}):
            await self.ev("response.event", delegation_id=did, event=e)

    # ---- client commands
    async def command(self, c, e):
        t, cid = e["type"], e.get("event_id")
        m = APPEND.match(t)
        if t == "session.input_audio.append":
            await self.audio(base64.b64decode(e["audio"], validate=True))
        elif m:
            if self.fixture:
                raise ApiError("fixture_active", f"{t} is rejected while an audio fixture is active.")
            did, kind = e["delegation_id"], m.group(1)
            if tokens(e["content"]) > 500:
                raise ApiError("string_above_max_length", "content is limited to 500 tokens.", "content")
            if not e["content"].strip():
                raise ApiError("invalid_value", "content must not be empty.", "content")
            if did is not None:
                if self.mode == "responses":
                    raise ApiError("invalid_value", "delegation_id must be null with Responses delegation.", "delegation_id")
                if did not in self.deleg:
                    raise ApiError("delegation_not_found", f"Delegation '{did}' not found in this session.", "delegation_id")
                self.deleg[did]["appended"].append({"kind": kind, "content": e["content"]})
            if kind != "instructions":
                for d in self.deleg.values():
                    d.pop("ack", None)
            at = self.now_ms()
            await self.ev(f"session.{kind}.appended", client_event_id=cid, start_ms=at, end_ms=at)
            if kind == "commentary":
                self.speak(e["content"])
        elif t in ("session.input_audio.mute", "session.input_audio.unmute"):
            self.muted = t.endswith(".mute")
            await self.ev(t + "d", client_event_id=cid)
        elif t == "session.output_audio.fixture.play":
            pcm = base64.b64decode(e["audio"], validate=True)
            if self.fixture:
                raise ApiError("fixture_active", "Only one fixture can be active.")
            if len(pcm) > 30 * 48000:
                raise ApiError("invalid_audio", "A fixture is at most 30 seconds.", "audio")
            self.fixture, self.speaking = True, None
            await self.ev("session.output_audio.fixture.playing", client_event_id=cid)

            async def drain():
                await asyncio.sleep(min(0.2, len(pcm) / 48000))
                self.fixture = None
                await self.ev("session.output_audio.fixture.played", client_event_id=cid)
            self.spawn(drain())
        elif t == "session.update":
            new = e["session"].get("delegation")
            if new and new["type"] != self.mode:
                raise ApiError("invalid_value", "The delegation type cannot change.", "session.delegation.type")
            if new:
                old = self.cfg.get("delegation") or {"type": self.mode}
                merged = {**old, **new}
                if "responses" in new:
                    merged["responses"] = {**(old.get("responses") or {}), **new["responses"]}
                self.cfg["delegation"] = merged
            await self.ev("session.updated", client_event_id=cid, session=self.resource())
        elif t == "response.item.create":
            if self.mode != "responses":
                raise ApiError("invalid_request", "response.item.create requires Responses delegation.")
            it = e["item"]
            if it.get("type") == "function_call_output":
                did = self.calls.pop(it["call_id"], None)
                if did is None:
                    raise ApiError("invalid_value", f"No tool call found for call_id {it['call_id']}.", "item.call_id")
                self.deleg[did]["appended"].append({"kind": "function_call_output", "content": it["output"]})
        elif t == "response.create":
            if self.mode != "responses":
                raise ApiError("invalid_request", "response.create requires Responses delegation.")
            outs = [a["content"] for d in self.deleg.values() for a in d["appended"]]
            self.speak("The backend says " + str(outs[-1] if outs else "hello"))
        elif t == "session.close":
            await self.close("close_requested", cid)
        elif t == "transport.dtmf.send":
            raise ApiError("invalid_request", "transport.dtmf.send is only supported for SIP calls.")
        elif t.startswith("decision."):
            raise ApiError("invalid_request", "Decisions are not played by this stand-in.")

    async def close(self, reason, cid=None):
        if self.closed:
            return
        self.closed = reason
        await self.ev("session.closed", reason=reason, session=self.resource(), client_event_id=cid,
                      usage={"seconds": round(self.in_ms / 1000, 1)})
        for did, d in () if self.is_cut else self.deleg.items():
            if not any(a["kind"] in ("commentary", "function_call_output") for a in d["appended"]):
                self.w.complain(self.id, f"delegation {did} ({d['asked']!r}) ended without a result")
        for c in [self.primary, *self.sides]:
            if c:
                await c.ws.close(1000)
        for t in list(self.tasks):
            t is not asyncio.current_task() and t.cancel()


class Conn:
    """one WebSocket: kind is primary, attach or fork"""
    def __init__(self, ws, world, kind, target, log):
        self.ws, self.w, self.kind, self.target, self.log = ws, world, kind, target, log
        self.live = None

    async def send(self, e):
        self.log("server", e)
        try:
            await self.ws.send(json.dumps(e))           # always TEXT frames
        except ConnectionClosed:
            pass

    def check(self, e):
        if not isinstance(e, dict) or not isinstance(e.get("type"), str):
            raise ApiError("missing_required_parameter", "Missing required parameter: 'type'.", "type")
        t = e["type"]
        if APPEND.match(t) and "delegation_id" not in e:
            raise ApiError("missing_required_parameter", "Missing required parameter: 'delegation_id' (null is allowed).", "delegation_id")
        if not (cp and self.w.opt.strict):
            return
        known = self.w.types[self.kind]
        if t not in known:
            raise ApiError("invalid_value", f"Invalid value: '{t}' is not a client event of this connection.", "type")
        try:
            known[t].validate_python(json.loads(json.dumps(e)), extra="forbid")
        except pydantic.ValidationError as x:
            errs = x.errors()
            er = next((r for r in errs if r["type"] == "extra_forbidden"), errs[0])
            loc = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in er["loc"]
                          if isinstance(p, int) or not re.match(r"^[A-Z]|^function-|^literal\[|^str$|^list\[|^nullable", str(p))).lstrip(".")
            code = {"extra_forbidden": "unknown_parameter", "missing": "missing_required_parameter"}.get(er["type"], "invalid_value")
            raise ApiError(code, f"{er['msg']}: '{loc}'.", loc)

    async def start(self, e):
        if self.kind == "attach":
            raise ApiError("invalid_request", "Do not send session.start on a sideband.")
        if self.live:
            raise ApiError("invalid_request", "The session has already started.")
        cfg = json.loads(json.dumps(e["session"]))
        if self.kind == "fork":
            old = self.w.stored[self.target]
            cfg = {**old.cfg, "store": cfg.get("store", old.cfg.get("store")), **({"audio": cfg["audio"]} if "audio" in cfg else {})}
        if tokens(cfg.get("instructions") or "") > 16384:
            raise ApiError("string_above_max_length", "instructions are limited to 16384 tokens.", "session.instructions")
        if len(cfg.get("input") or []) > 128 or sum(tokens(p["text"]) for i in cfg.get("input") or [] for p in i["content"]) > 8192:
            raise ApiError("array_above_max_length", "input holds at most 128 messages and 8192 tokens.", "session.input")
        for i in cfg.get("input") or []:
            if len(i["content"]) != 1:
                raise ApiError("invalid_value", "Supply exactly one text part per message.", "session.input")
        self.live = Live(self.w, cfg)
        self.live.primary = self
        self.w.open[self.live.id] = self.live
        self.w.sessions.append(self.live)
        await self.live.ev("session.started", client_event_id=e.get("event_id"), session=self.live.resource())
        self.live.spawn(self.expire())

    async def expire(self):
        await asyncio.sleep(self.w.opt.expires_in)
        await self.live.close("expired")

    async def run(self):
        if self.kind == "attach":
            self.live = self.w.open[self.target]
            self.live.sides.append(self)
        try:
            async for raw in self.ws:
                e = {}
                try:
                    if not isinstance(raw, str):
                        raise ApiError("invalid_frame", "Text frames expected.")
                    try:
                        e = json.loads(raw)
                    except ValueError:
                        raise ApiError("invalid_json", "The message is not JSON.")
                    self.log("client", e)
                    self.check(e)
                    eid = e.get("event_id")
                    if e["type"] == "session.start":
                        await self.start(e)
                    elif not self.live:
                        raise ApiError("session_not_started", f"session.start must be the first message, got {e['type']}.")
                    else:
                        if eid:
                            self.live.seen[eid] = self.live.seen.get(eid, 0) + 1
                        await self.live.command(self, e)
                except (ApiError, ValueError) as x:
                    if not isinstance(x, ApiError):     # base64
                        x = ApiError("invalid_value", str(x), "audio")
                    e = e if isinstance(e, dict) else {}
                    where = self.live.id if self.live else "before start"
                    self.w.complain(where, f"{e.get('type', '?')}: {x.code}: {x.message}")
                    err = {"type": x.type, "code": x.code, "message": x.message, "param": x.param, "client_event_id": e.get("event_id")}
                    await self.send({"type": "error", "event_id": nid("event"), "error": {k: v for k, v in err.items() if v is not None}})
                    if not self.live:
                        await self.ws.close(1008, x.code)   # refused at admission; the real code is not known
                        return
        except ConnectionClosed:
            pass
        finally:
            live = self.live
            if live and self.kind == "attach":
                live.sides.remove(self)
            elif live:
                live.primary = None
                await live.close("connection_lost")     # sidebands still hear it
                self.w.open.pop(live.id, None)
                if live.cfg.get("store"):
                    self.w.stored[live.id] = live


class World:
    def __init__(self, opt):
        self.opt, self.open, self.stored, self.sessions, self.complaints = opt, {}, {}, [], []
        if cp:
            self.types = {"primary": adapters(cp.ClientEventParam), "attach": adapters(sp.ConnectClientEventParam),
                          "fork": adapters(fp.ForkClientEventParam)}

    def complain(self, session, what):
        self.complaints.append({"session": session, "what": what})
        print("COMPLAINT", session, what, flush=True)

    def report(self):
        return {"complaints": self.complaints, "sessions": [
            {"id": s.id, "closed": s.closed, "mode": s.mode, "audio_in_ms": round(s.in_ms), "muted": s.muted,
             "delegations": s.deleg, "duplicate_event_ids": [k for k, n in s.seen.items() if n > 1]} for s in self.sessions]}


async def main(opt):
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    fh = open(opt.log, "a", buffering=1) if opt.log else None
    world = World(opt)

    def make_log(conn):
        def log(who, msg, **kw):
            rec = {"t": round(time.time(), 3), "conn": conn, "from": who, **kw, "msg": msg}
            if fh:
                fh.write(json.dumps(rec) + "\n")
            if opt.verbose:
                print(json.dumps(rec)[:300], flush=True)
        return log

    def answer(status, obj):
        body = (json.dumps(obj) + "\n").encode()
        return Response(status.value, status.phrase, Headers({"Content-Type": "application/json", "Content-Length": str(len(body))}), body)

    def gate(conn, req):
        path, _, query = req.path.partition("?")
        q = parse_qs(query)
        h = {k.lower(): v for k, v in req.headers.raw_items()}
        if path == "/report":
            return answer(HTTPStatus.OK, world.report())
        if path == "/muted":
            return answer(HTTPStatus.OK, {"sessions": [s.id for s in world.open.values() if s.muted]})
        if path == "/control":
            sid = (q.get("session") or [None])[0] or (next(iter(world.open)) if len(world.open) == 1 else None)
            if sid not in world.open:
                return answer(HTTPStatus.NOT_FOUND, {"error": "no such open session"})
            world.open[sid].spawn(world.open[sid].hear(q["say"][0]))
            return answer(HTTPStatus.OK, {"ok": True})
        make_log("http")("upgrade", {"path": req.path, "headers": h})
        m = PATH.match(path)
        if not m:
            return answer(HTTPStatus.NOT_FOUND, {"error": {"message": f"Invalid URL ({path})"}})
        auth = h.get("authorization", "")
        if not auth.startswith("Bearer ") or (opt.api_key and auth[7:] != opt.api_key):
            return answer(HTTPStatus.UNAUTHORIZED, {"error": {"message": "Incorrect API key provided"}})
        conn.kind, conn.target = m.group(2) or "primary", unquote(m.group(1) or "")
        if conn.kind == "primary" and query:
            world.complain("upgrade", f"query parameters on /v1/live/sessions: {query!r} (model belongs into session.start)")
        if conn.kind == "attach" and conn.target not in world.open:
            return answer(HTTPStatus.NOT_FOUND, {"error": {"message": "session not found"}})
        if conn.kind == "fork" and conn.target not in world.stored:
            return answer(HTTPStatus.NOT_FOUND, {"error": {"message": "no stored session with this id"}})
        return None

    n = 0

    async def handler(ws):
        nonlocal n
        n += 1
        await Conn(ws, world, ws.kind, ws.target, make_log(n)).run()

    kw = dict(process_request=gate, max_size=None, ping_interval=None)
    servers = [await serve(handler, "127.0.0.1", opt.port, **kw)]
    if opt.tls_port is not None:
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(opt.cert, opt.key)
        servers.append(await serve(handler, "127.0.0.1", opt.tls_port, ssl=ctx, **kw))
    print("ready", *(s.sockets[0].getsockname()[1] for s in servers), flush=True)   # port 0: a free one
    stop = asyncio.Event()
    for s in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(s, stop.set)
    await stop.wait()
    print(json.dumps(world.report(), indent=1), flush=True)
    sys.stdout.flush()
    import os
    os._exit(3 if world.complaints else 0)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=8785)
    ap.add_argument("--tls-port", type=int)
    ap.add_argument("--cert"), ap.add_argument("--key")
    ap.add_argument("--log"), ap.add_argument("--api-key")
    ap.add_argument("--asr", action="append", help="what the caller says; may be given several times")
    ap.add_argument("--expires-in", type=float, default=7200)
    ap.add_argument("--no-clock", dest="clock", action="store_false", help="let the model speak without input audio")
    ap.add_argument("--no-strict", dest="strict", action="store_false")
    ap.add_argument("-v", "--verbose", action="store_true")
    asyncio.run(main(ap.parse_args()))
