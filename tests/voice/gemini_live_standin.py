#!/usr/bin/env python3
"""Local stand-in for the Gemini Live API (BidiGenerateContent over WebSocket).

Proven against google-genai (python) and @google/genai (node).

  python gemini_live_standin.py --port 8765 [--tls-port 8766 --cert c.pem --key k.pem]
                                [--log wire.jsonl] [--frames binary|text]
                                [--asr TEXT] [--api-key KEY] [--no-strict] [--era auto|2.5|3.1|3.8]

What the "model" does is decided by the text of the user's turn (typed text, or
--asr for spoken turns, one after the other), so that a client test is deterministic:

  call NAME {json}     one line per call; all lines form ONE toolCall message
  say TEXT             speak TEXT
  slow [N]             a long answer (N chunks, 50 ms apart; default 40) -- interrupt it
  goaway [N]           goAway{timeLeft:"5s"}, then a normal answer; with N: timeLeft "Ns", closed N s later
  cut [MS]             a line of its own, also after calls: the TCP connection is dropped MS later (default 0)
  again                a line of its own, after calls: the toolCall message is sent twice
  think TEXT           turnComplete with interactionStatus IN_PROGRESS, then TEXT and IDLE (3.8)
  die CODE REASON      server closes the socket
  anything else        speaks "You said: ..."

--era auto reads it from setup.model (3.8 if it says so, else 2.5). In era 3.8: a declaration without `behavior` is
NON_BLOCKING (and complained about), a BLOCKING call is cancelled by ANY new input, scheduling INTERRUPT waits while
the user speaks, turnComplete carries interactionStatus. Session resumption: a handle restores the conversation, but the
new connection ignores a toolResponse for a call that it did not issue (say the result as clientContent instead).

GET /asr?say=TEXT is what the next spoken turn says. GET /report answers JSON: complaints (rules broken, calls never
answered), advice (empty results that do not say why), and every call with what became of it.

If --strict (default when google-genai is importable) every client message is
validated with the SDK's own types; an unknown field closes the socket with 1007
and a reason, which is what the real service does.
"""
import argparse, asyncio, base64, json, logging, math, re, ssl, struct, sys, time, uuid
from http import HTTPStatus
from urllib.parse import parse_qs

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

try:
    from google.genai import types as gt
    import pydantic
except Exception:                                      # stand-alone use
    gt = None

PATH = re.compile(r"^/+ws/google\.ai\.generativelanguage\.(v1|v1beta|v1alpha)"
                  r"\.GenerativeService\.(BidiGenerateContent|BidiGenerateContentConstrained)$")
VERTEX_PATH = re.compile(r"^/+ws/google\.cloud\.aiplatform\.v1(beta1)?\.LlmBidiService/BidiGenerateContent$")
OUT_RATE = 24000
CLIENT_KEYS = {"setup", "clientContent", "realtimeInput", "toolResponse", "contextUpdate"}


def camel(s):
    head, *rest = s.split("_")
    return head + "".join(p[:1].upper() + p[1:] for p in rest)


# Keys below these are user data and must not be renamed.
OPAQUE = {"args", "response", "parametersJsonSchema", "responseJsonSchema", "properties",
          "defs", "labels", "enum", "example", "default"}


def norm(o, key=None):
    """proto3-JSON accepts lowerCamelCase and snake_case; bring both to camelCase."""
    if key in ("properties", "defs") and isinstance(o, dict):
        return {k: norm(v) for k, v in o.items()}       # names kept, schemas normalised
    if key in OPAQUE:
        return o
    if isinstance(o, dict):
        return {camel(k): norm(v, camel(k)) for k, v in o.items()}
    if isinstance(o, list):
        return [norm(v) for v in o]
    return o


def b64d(s):
    """proto3-JSON bytes: standard or URL-safe alphabet, padding optional."""
    s = s.replace("-", "+").replace("_", "/")
    return base64.b64decode(s + "=" * (-len(s) % 4))


def tone(ms, rate=OUT_RATE, hz=440):
    n = rate * ms // 1000
    return b"".join(struct.pack("<h", int(9000 * math.sin(2 * math.pi * hz * i / rate))) for i in range(n))


def rms(pcm):
    n = len(pcm) // 2
    if not n:
        return 0.0
    return math.sqrt(sum(x * x for x in struct.unpack(f"<{n}h", pcm[: n * 2])) / n)


class Bad(Exception):
    """-> close 1007 with the reason."""


def empty(v):
    """a result from which the model cannot learn why there is nothing"""
    if isinstance(v, dict):
        return "status" not in v and all(empty(x) or x == 0 for x in v.values())
    return v is None or v == [] or v == ""


class World:
    def __init__(self, asr=()):
        self.asr = list(asr)
        self.handles, self.calls, self.complaints, self.advice = {}, {}, [], []

    def heard(self):
        """what the next spoken turn says: one --asr after the other, the last one again and again"""
        return self.asr.pop(0) if len(self.asr) > 1 else self.asr[0] if self.asr else None

    def complain(self, conn, what):
        self.complaints.append({"conn": conn, "what": what})
        print("COMPLAINT", conn, what, flush=True)

    def report(self):
        return {"complaints": self.complaints, "advice": self.advice, "calls": self.calls}


class Session:
    def __init__(self, ws, opt, log, world=None, conn=0):
        self.ws, self.opt, self.log, self.w, self.conn = ws, opt, log, world or World(), conn
        self.era, self.foreign = "2.5", set()           # foreign: calls of the connection that was resumed
        self.after_user = []                            # INTERRUPT results that wait for the user to finish (3.8)
        self.setup = None
        self.gen = None                 # task of the running model turn
        self.pending = {}               # id -> {name, behavior, blocking, done}
        self.n = 0
        self.speech = False
        self.silence_ms = 0.0
        self.audio_ms = 0.0
        self.turn_audio_ms = 0.0
        self.manual_text = []
        self.idle_queue = []            # WHEN_IDLE responses that wait for the running turn
        self.later = []

    # ---- out
    async def send(self, obj):
        self.log("server", obj)
        raw = json.dumps(obj)
        await self.ws.send(raw if self.opt.frames == "text" else raw.encode())

    def tools(self):
        out = {}
        for t in self.setup.get("tools") or []:
            for f in t.get("functionDeclarations") or []:
                out[f["name"]] = f
        return out

    def modality(self):
        m = (self.setup.get("generationConfig") or {}).get("responseModalities") or ["AUDIO"]
        return m[0]

    async def resumption(self, resumable):
        if "sessionResumption" in self.setup:
            upd = {"resumable": resumable, "newHandle": "h-" + uuid.uuid4().hex[:8]} if resumable else {"resumable": False}
            if resumable:
                self.w.handles[upd["newHandle"]] = self.foreign | set(self.pending)
            await self.send({"sessionResumptionUpdate": upd})

    # ---- model turn
    def start(self, text, spoken=False):
        self.gen = asyncio.create_task(self.turn(text, spoken))

    def busy(self):
        return self.gen is not None and not self.gen.done()

    async def interrupt(self):
        """Barge-in: no generationComplete for this turn, interrupted then turnComplete."""
        cancelled = [i for i, p in self.pending.items() if p["blocking"] and not p["done"]]
        was = self.busy()
        if was:
            self.gen.cancel()
            try:
                await self.gen
            except asyncio.CancelledError:
                pass
        if cancelled:
            for i in cancelled:
                self.pending[i]["done"] = True
                self.pending[i]["cancelled"] = True
                self.w.calls[i]["state"] = "cancelled"
            await self.send({"toolCallCancellation": {"ids": cancelled}})
        if was or cancelled:
            await self.send({"serverContent": {"interrupted": True}})
            await self.send({"serverContent": {"turnComplete": True, **self.status()}})

    def status(self, s="IDLE"):
        return {"interactionStatus": s} if self.era == "3.8" else {}

    def waits(self):
        """a BLOCKING call is open"""
        return any(p["blocking"] and not p["done"] for p in self.pending.values())

    async def cut_later(self, ms):
        await asyncio.sleep(ms / 1000)
        self.ws.transport.abort()

    async def go_away(self, seconds):
        await self.send({"goAway": {"timeLeft": f"{seconds}s"}})
        await asyncio.sleep(seconds)
        await self.ws.close(1011, "The connection was closed after goAway.")

    async def turn(self, text, spoken):
        if spoken and "inputAudioTranscription" in self.setup:
            for w in re.findall(r"\S+\s*", text):
                await self.send({"serverContent": {"inputTranscription": {"text": w}}})
        await self.resumption(False)
        calls = re.findall(r"^call\s+([A-Za-z_][\w.:-]*)\s*(\{.*\})?\s*$", text, re.M)
        if text.startswith("die "):
            _, code, reason = (text.split(" ", 2) + [""])[:3]
            await self.ws.close(int(code), reason)
            return
        m = re.search(r"^cut(?:\s+(\d+))?\s*$", text, re.M)
        if m:
            self.later.append(asyncio.create_task(self.cut_later(int(m.group(1) or 0))))
            text = text.replace(m.group(0), "").strip()
            if not calls and not text:
                return
        m = re.match(r"^goaway(?:\s+(\d+))?\s*$", text)
        if m and m.group(1):
            self.later.append(asyncio.create_task(self.go_away(int(m.group(1)))))
        elif m:
            await self.send({"goAway": {"timeLeft": "5s"}})
        if text.startswith("think "):
            await self.send({"serverContent": {"turnComplete": True, **self.status("IN_PROGRESS")}})
            text = "say " + text[6:]
        if calls:
            fcs = []
            decl = self.tools()
            for name, args in calls:
                self.n += 1
                fid = f"function-call-{self.conn:09d}{self.n:010d}"     # unique over connections
                beh = (decl.get(name) or {}).get("behavior") or ("NON_BLOCKING" if self.era == "3.8" else "BLOCKING")
                self.pending[fid] = dict(name=name, blocking=beh != "NON_BLOCKING", done=False)
                self.w.calls[fid] = {"name": name, "conn": self.conn, "behavior": beh, "state": "open"}
                fcs.append({"name": name, "args": json.loads(args or "{}"), "id": fid})
            for _ in range(2 if re.search(r"^again\s*$", text, re.M) else 1):
                await self.send({"toolCall": {"functionCalls": fcs}})
            if all(not self.pending[f["id"]]["blocking"] for f in fcs):
                await self.speak("One moment.")          # NON_BLOCKING: conversation goes on
            return                                       # BLOCKING: silent until toolResponse
        if m := re.match(r"slow(?: (\d+))?$", text.strip()):
            await self.speak("This is a very long answer. " * 8, chunks=int(m[1] or 40), gap=0.05)
        elif text.startswith("say "):
            await self.speak(text[4:])
        else:
            await self.speak("You said: " + text)

    async def speak(self, text, chunks=3, gap=0.0):
        words = text.split(" ")
        per = max(1, math.ceil(len(words) / chunks))
        groups = [" ".join(words[i:i + per]) for i in range(0, len(words), per)]
        for k in range(max(chunks, len(groups))):
            piece = groups[k] if k < len(groups) else ""
            if self.modality() == "TEXT":
                if piece:
                    await self.send({"serverContent": {"modelTurn": {"role": "model", "parts": [{"text": piece + " "}]}}})
            else:
                data = base64.b64encode(tone(40)).decode()
                await self.send({"serverContent": {"modelTurn": {"parts": [
                    {"inlineData": {"mimeType": f"audio/pcm;rate={OUT_RATE}", "data": data}}]}}})
                if piece and "outputAudioTranscription" in self.setup:
                    await self.send({"serverContent": {"outputTranscription": {"text": piece + " "}}})
            await asyncio.sleep(gap)
        await self.send({"serverContent": {"generationComplete": True}})
        await self.send({"serverContent": {"turnComplete": True, **self.status()},
                         "usageMetadata": {"promptTokenCount": 10, "responseTokenCount": len(words),
                                           "totalTokenCount": 10 + len(words),
                                           "responseTokensDetails": [{"modality": self.modality(), "tokenCount": len(words)}]}})
        await self.resumption(True)
        if self.idle_queue:
            note = self.idle_queue.pop(0)
            await self.speak(note)

    # ---- in
    def check(self, msg):
        keys = set(msg)
        if len(keys) != 1:
            raise Bad(f"exactly one of {sorted(CLIENT_KEYS)} expected, got {sorted(keys)}")
        (k,) = keys
        if k not in CLIENT_KEYS:
            raise Bad(f'Invalid JSON payload received. Unknown name "{k}": Cannot find field.')
        if not (gt and self.opt.strict):
            return k
        body = json.loads(json.dumps(msg[k]))
        try:
            if k == "setup":
                body.pop("realtimeInputConfig", None) is not None and \
                    gt.RealtimeInputConfig.model_validate(msg[k]["realtimeInputConfig"])
                for t in body.get("tools") or []:
                    gt.Tool.model_validate(t)
                body.pop("tools", None)
                gt.LiveClientSetup.model_validate(body)
            else:
                body.get("tools") is not None and body.pop("tools")
                {"clientContent": gt.LiveClientContent, "realtimeInput": gt.LiveClientRealtimeInput,
                 "toolResponse": gt.LiveClientToolResponse,
                 "contextUpdate": gt.LiveClientContextUpdate}[k].model_validate(body)
        except pydantic.ValidationError as e:
            er = e.errors()[0]
            where = ".".join(str(x) for x in er["loc"])
            raise Bad(f"Invalid JSON payload received. {er['msg']} at '{k}.{where}'"[:120])
        return k

    async def on_setup(self, s):
        if self.setup is not None:
            raise Bad("setup must be sent only once, as the first message")
        if not re.match(r"^(models|tunedModels|publishers|projects)/", s.get("model", "")):
            raise Bad("model must be of the form models/{model}")
        for t in s.get("tools") or []:
            for f in t.get("functionDeclarations") or []:
                if not re.match(r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$", f.get("name", "")):
                    raise Bad(f"Invalid function name {f.get('name')!r}")
                if "parameters" in f and "parametersJsonSchema" in f:
                    raise Bad("parameters and parametersJsonSchema are mutually exclusive")
        if self.opt.api_key and self.opt.api_key != self.given_key:
            raise Bad("API key not valid. Please pass a valid API key.")
        self.era = self.opt.era if self.opt.era != "auto" else "3.8" if "3.8" in s["model"] else "2.5"
        if self.era == "3.8":
            for f in (f for t in s.get("tools") or [] for f in t.get("functionDeclarations") or []):
                if not f.get("behavior"):
                    self.w.complain(self.conn, f"behavior not stated for {f['name']}: 3.8 takes NON_BLOCKING, older models BLOCKING")
                if f.get("behavior") == "BLOCKING" and "extended-thinking" in s["model"]:
                    raise Bad("BLOCKING function calls are not supported by this model")
            gc = s.get("generationConfig") or {}
            if (gc.get("thinkingConfig") or {}).get("thinkingLevel") or gc.get("enableAffectiveDialog"):
                self.w.complain(self.conn, "thinkingLevel and enableAffectiveDialog do not exist on 3.8")
            if (s.get("proactivity") or {}).get("proactiveAudio") is False:
                raise Bad("proactive_audio cannot be disabled for this model")
        handle = (s.get("sessionResumption") or {}).get("handle")
        if handle:
            if handle not in self.w.handles:
                raise Bad("Invalid session resumption handle")
            self.foreign = self.w.handles[handle]
        self.setup = s
        await self.send({"setupComplete": {}})
        await self.resumption(True)

    def told(self, text):
        """a result of the connection before, said as conversation (heuristic: it names the tool)"""
        for i in self.foreign:
            if self.w.calls[i]["name"] in text and self.w.calls[i]["state"] in ("open", "lost", "ignored"):
                self.w.calls[i]["state"] = "told as content"

    async def on_client_content(self, c):
        if self.busy() or (self.era == "3.8" and c.get("turnComplete") and self.waits()):
            await self.interrupt()                       # clientContent interrupts generation
        self.told(json.dumps(c))
        for t in c.get("turns") or []:
            for p in t.get("parts") or []:
                if "text" in p:
                    self.manual_text.append(p["text"])
        hist = (self.setup.get("historyConfig") or {}).get("initialHistoryInClientContent")
        if c.get("turnComplete"):
            text, self.manual_text = "\n".join(self.manual_text), []
            if hist and not getattr(self, "hist_done", False):
                self.hist_done = True                    # seeds history, no generation
                return
            self.start(text)

    async def on_realtime(self, r):
        vad = ((self.setup.get("realtimeInputConfig") or {}).get("automaticActivityDetection") or {})
        auto = not vad.get("disabled")
        barge = (self.setup.get("realtimeInputConfig") or {}).get("activityHandling") != "NO_INTERRUPTION"
        blobs = ([r["audio"]] if "audio" in r else []) + list(r.get("mediaChunks") or [])
        for b in blobs:
            m = re.match(r"^audio/pcm(?:;\s*rate=(\d+))?$", b.get("mimeType", ""))
            if not m:
                continue
            rate = int(m.group(1) or 16000)
            pcm = b64d(b["data"])
            ms = len(pcm) / 2 / rate * 1000
            self.audio_ms += ms
            loud = rms(pcm) > 300
            if self.speech or loud:
                self.turn_audio_ms += ms
            if not auto:
                continue
            if loud:
                if not self.speech:
                    self.speech = True
                    if barge and (self.busy() or any(p["blocking"] and not p["done"] for p in self.pending.values())):
                        await self.interrupt()
                self.silence_ms = 0
            elif self.speech:
                self.silence_ms += ms
                if self.silence_ms >= vad.get("silenceDurationMs", 500):
                    await self.end_speech()
        if "activityStart" in r:
            if auto:
                raise Bad("Explicit activity control is not supported when automatic activity detection is enabled.")
            self.speech = True
            if barge and (self.busy() or (self.era == "3.8" and self.waits())):
                await self.interrupt()
        if "activityEnd" in r and self.speech:
            await self.end_speech()
        if r.get("audioStreamEnd") and self.speech:
            await self.end_speech()
        if "text" in r:
            self.told(r["text"])
            if self.busy() or (self.era == "3.8" and self.waits()):
                await self.interrupt()
            self.start(r["text"])

    async def end_speech(self):
        self.speech, self.silence_ms = False, 0
        ms, self.turn_audio_ms = self.turn_audio_ms, 0
        if self.after_user:                              # held back while the user spoke
            text, self.after_user = "; ".join(self.after_user), []
            self.start("say " + text)
            return
        self.start(self.w.heard() or f"say I heard {int(ms)} ms of audio", spoken=True)

    async def on_tool_response(self, t):
        speak, sched = [], "WHEN_IDLE"
        for fr in t.get("functionResponses") or []:
            if not fr.get("id"):
                raise Bad("FunctionResponse.id is required")
            p = self.pending.get(fr["id"])
            if p is None and fr["id"] in self.foreign:
                self.w.calls[fr["id"]]["state"] = "ignored"
                self.w.complain(self.conn, f"toolResponse for {fr['id']}, which this connection never issued: ignored (say it as clientContent)")
                continue
            if p is None:
                raise Bad(f"Unknown function call id {fr['id']}")
            if not isinstance(fr.get("response"), dict):
                raise Bad("functionResponses.response must be an object")
            if not isinstance(fr.get("name"), str) or fr["name"] != p["name"]:
                self.w.complain(self.conn, f"functionResponse.name {fr.get('name')!r} is not {p['name']!r}")
            if not fr.get("willContinue") and "error" not in fr["response"] and empty(fr["response"].get("output", fr["response"])):
                self.w.advice.append({"conn": self.conn, "what": f"{p['name']}: empty result; say status, retryable and retry_hint or valid_options"})
            if p["done"] and not p.get("cancelled"):
                self.w.complain(self.conn, f"{fr['id']} answered twice")
                continue
            if p.get("cancelled"):
                continue                                 # late answer to a cancelled call: dropped
            if not fr.get("willContinue"):
                p["done"] = True
                self.w.calls[fr["id"]]["state"] = "answered"
            sched = fr.get("scheduling", "WHEN_IDLE") if not p["blocking"] else None
            out = fr["response"]
            word = "failed" if "error" in out else "says"
            speak.append(f"{p['name']} {word} {json.dumps(out)}")
        if not speak:
            return
        if self.waits():
            return                                       # BLOCKING: wait for every open call
        if sched == "INTERRUPT" and self.era == "3.8" and self.speech:
            self.after_user += speak
            return
        text = "say " + "; ".join(speak)
        if sched == "SILENT":
            return                                       # context only, no generation
        if sched == "WHEN_IDLE" and self.busy():
            self.idle_queue.append(text[4:])
            return
        if sched == "INTERRUPT" and self.busy():
            await self.interrupt()
        self.start(text)

    async def on_context_update(self, c):
        if "systemInstruction" in c:
            self.setup["systemInstruction"] = c["systemInstruction"]
        if "tools" in c:
            self.setup["tools"] = (c["tools"] or {}).get("tools") or []

    async def run(self):
        try:
            async for raw in self.ws:
                try:
                    msg = json.loads(raw)
                except ValueError:
                    raise Bad("Invalid JSON payload received.")
                self.log("client", msg, frame="text" if isinstance(raw, str) else "binary")
                msg = norm(msg)
                k = self.check(msg)
                if k == "setup":
                    await self.on_setup(msg[k])
                    continue
                if self.setup is None:
                    raise Bad("setup must be the first message and first message only")
                try:
                    await {"clientContent": self.on_client_content, "realtimeInput": self.on_realtime,
                           "toolResponse": self.on_tool_response, "contextUpdate": self.on_context_update}[k](msg[k])
                except ConnectionClosed:
                    pass                                 # cannot be answered; what was sent before is still read
        except Bad as e:
            self.log("close", {"code": 1007, "reason": str(e)})
            await self.ws.close(1007, str(e)[:120])
        except ConnectionClosed:
            pass
        finally:
            if self.busy():
                self.gen.cancel()
            for t in self.later:
                t.cancel()
            for i, p in self.pending.items():
                if not p["done"]:
                    self.w.calls[i]["state"] = "lost"
                    if "sessionResumption" not in (self.setup or {}):
                        self.w.complain(self.conn, f"{p['name']} {i} was never answered")


async def main(opt):
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    fh = open(opt.log, "a", buffering=1) if opt.log else None

    def make_log(conn):
        def log(who, msg, **kw):
            rec = {"t": round(time.time(), 3), "conn": conn, "from": who, **kw, "msg": msg}
            if fh:
                fh.write(json.dumps(rec) + "\n")
            if opt.verbose:
                print(json.dumps(rec)[:300], flush=True)
        return log

    world = World(opt.asr)

    def gate(conn, req):
        path, _, query = req.path.partition("?")     # not urlsplit: the path may start with "//"
        if path == "/report":
            return conn.respond(HTTPStatus.OK, json.dumps(world.report()) + "\n")
        q = parse_qs(query)
        if path == "/asr":
            world.asr.insert(0, q["say"][0])
            return conn.respond(HTTPStatus.OK, '{"ok": true}\n')
        h = {k.lower(): v for k, v in req.headers.raw_items()}
        make_log("http")("upgrade", {"path": req.path, "headers": h})
        if not (PATH.match(path) or VERTEX_PATH.match(path) or (opt.any_path and path)):
            return conn.respond(HTTPStatus.NOT_FOUND, "no such method\n")
        key = h.get("x-goog-api-key") or (q.get("key") or [None])[0] or (q.get("access_token") or [None])[0]
        auth = h.get("authorization", "")
        if not key and auth.startswith(("Token ", "Bearer ")):
            key = auth.split(" ", 1)[1]
        conn.given_key = key
        if not key and not opt.any_path:
            return conn.respond(HTTPStatus.FORBIDDEN, "unregistered caller: no API key\n")
        return None

    n = 0

    async def handler(ws):
        nonlocal n
        n += 1
        s = Session(ws, opt, make_log(n), world, n)
        s.given_key = getattr(ws, "given_key", None)
        await s.run()

    kw = dict(process_request=gate, max_size=None, ping_interval=None)
    servers = [await serve(handler, "127.0.0.1", opt.port, **kw)]
    if opt.tls_port is not None:
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(opt.cert, opt.key)
        servers.append(await serve(handler, "127.0.0.1", opt.tls_port, ssl=ctx, **kw))
    print("ready", *(s.sockets[0].getsockname()[1] for s in servers), flush=True)   # port 0: a free one
    await asyncio.gather(*(s.wait_closed() for s in servers))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=8765)
    ap.add_argument("--tls-port", type=int)
    ap.add_argument("--cert"), ap.add_argument("--key")
    ap.add_argument("--log"), ap.add_argument("--asr", action="append", default=[]), ap.add_argument("--api-key")
    ap.add_argument("--era", choices=["auto", "2.5", "3.1", "3.8"], default="auto")
    ap.add_argument("--frames", choices=["binary", "text"], default="binary")
    ap.add_argument("--no-strict", dest="strict", action="store_false")
    ap.add_argument("--any-path", action="store_true", help="accept any URL path (Vertex custom base_url)")
    ap.add_argument("-v", "--verbose", action="store_true")
    try:
        asyncio.run(main(ap.parse_args()))
    except KeyboardInterrupt:
        sys.exit(0)
