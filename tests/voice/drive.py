#!/usr/bin/env python3
"""Drives the real server through the life of voice sessions, against a stand-in of one provider.

  python drive.py PROVIDER TOOLWRIGHT [--tls] [--model NAME] [-v]

Starts the stand-in and `toolwright serve` on free ports of loopback, speaks the protocol of docs/reference/voice-protocol.md,
and fails on any check, and on any complaint of the stand-in about what the server sent.
"""
import argparse, asyncio, datetime, ipaddress, json, math, os, re, signal, struct, sys, tempfile, urllib.request, wave
from pathlib import Path
from urllib.parse import quote

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

HERE = Path(__file__).resolve().parent
STANDINS = {"gemini-live": "gemini_live", "openai-realtime": "openai_realtime", "gpt-live": "gpt_live"}
# What a spoken turn says: each loud utterance.
SPOKEN = "yes please"
# What a stand-in says to "slow".
LONG_ANSWER = ("This is a very long answer. " * 8).strip()


# A tool that answers after `ms`.
SLOW_TOOL = {
    "name": "slow_lookup", "description": "Looks something up slowly.", "type": "function", "category": "utility",
    "sideEffects": "read_only", "idempotent": True, "timeoutMs": 10000,
    "parameters": {"type": "object", "required": ["ms"], "additionalProperties": False, "properties": {"ms": {"type": "integer"}}},
}


async def answer_slowly(reader, writer):
    """One request for `SLOW_TOOL`."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return writer.close()                           # connected, but not used
    await asyncio.sleep(int(re.search(r"ms=(\d+)", head)[1]) / 1000)
    body = b'{"found": "Studio C is slow."}'
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                 b"content-length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


def tone(ms, rate=16000):
    return b"".join(struct.pack("<h", int(9000 * math.sin(i / 6))) for i in range(rate * ms // 1000))


class Failed(Exception):
    pass


class Driver:
    settings = "sessions_per_principal = 50\nfarewell_s = 10\ngrace_s = 20\n"
    store = "memory:"

    def __init__(self, options):
        self.o, self.checks, self.processes = options, 0, []
        self.tools = json.loads((HERE / "tools.json").read_text())

    async def stop(self):
        for process in self.processes:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                await asyncio.wait_for(process.wait(), 60)

    def check(self, what, ok, detail=""):
        self.checks += 1
        if self.o.verbose or not ok:
            print(("ok   " if ok else "FAIL ") + what, detail if not ok else "", flush=True)
        if not ok:
            raise Failed(f"{what}: {detail}")

    async def start(self, *command, ready, **kw):
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE,
                                                       stderr=asyncio.subprocess.STDOUT, **kw)
        self.processes.append(process)
        seen = []
        while line := (await asyncio.wait_for(process.stdout.readline(), 60)).decode():
            seen.append(line)
            if found := re.search(ready, line):
                asyncio.create_task(self.drain(process))
                return found
        raise Failed(f"{command[0]} did not start:\n" + "".join(seen))

    async def drain(self, process):
        while line := await process.stdout.readline():
            if self.o.verbose or b"COMPLAINT" in line or b"panicked" in line:
                print("  |", line.decode().rstrip(), flush=True)

    def certificates(self, directory):
        """An authority of our own, and a certificate for loopback."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
        now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)

        def make(name, key, issuer, signer, *extensions):
            name, issuer = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in (name, issuer))
            builder = (x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
                       .serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + 30 * day))
            for extension, is_critical in extensions:
                builder = builder.add_extension(extension, is_critical)
            return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

        authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        (directory / "authority.pem").write_bytes(
            make("test authority", authority, "test authority", authority, (x509.BasicConstraints(True, None), True)))
        (directory / "cert.pem").write_bytes(
            make("localhost", own, "test authority", authority, (x509.BasicConstraints(False, None), True),
                 (x509.SubjectAlternativeName(names), False)))
        (directory / "key.pem").write_bytes(own.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))

    async def set_up(self, directory):
        self.certificates(directory)
        self.wire = directory / "wire.jsonl"
        asr = ["delegate look up quiet", SPOKEN] if self.o.provider == "gpt-live" else [SPOKEN]
        arguments = [a for text in asr for a in ("--asr", text)]
        script = HERE / f"{STANDINS[self.o.provider]}_standin.py"
        ready = await self.start(sys.executable, str(script), "--port", "0", "--tls-port", "0", "--cert",
                                 str(directory / "cert.pem"), "--key", str(directory / "key.pem"), "--api-key", "k",
                                 "--log", str(self.wire), *arguments, ready=r"^ready (\d+) (\d+)")
        self.plain, tls = ready.groups()
        suffix = "" if self.o.provider == "gemini-live" else "/v1"
        url = f"wss://localhost:{tls}{suffix}" if self.o.tls else f"ws://127.0.0.1:{self.plain}{suffix}"
        model = f'model = "{self.o.model}"\n' if self.o.model else ""
        service = await asyncio.start_server(answer_slowly, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{service.sockets[0].getsockname()[1]}/slow"
        implementation = {"type": "http", "method": "GET", "url": address, "query": {"ms": "{ms}"}}
        self.directory = directory
        self.tools["version"] = 2
        self.tools["tools"].append({**SLOW_TOOL, "implementation": implementation})
        (directory / "tools.json").write_text(json.dumps(self.tools))
        repository = HERE.parent.parent
        (directory / "toolwright.toml").write_text(
            f'[tools]\ndir = "{repository / "tools"}"\ndeclared = ["tools.json"]\n[agent]\nprovider = "offline"\n'
            f'[voice]\nprovider = "{self.o.provider}"\nurl = "{url}"\nkey_env = "VOICE_KEY"\n{model}'
            f'{self.settings}'
            f'[prompts]\ndir = "{repository / "prompts"}"\n')
        env = {**os.environ, "VOICE_KEY": "k", "SSL_CERT_FILE": str(directory / "authority.pem")}
        found = await self.start(os.path.abspath(self.o.toolwright), "serve", "--listen", "127.0.0.1:0", "--store", self.store,
                                 cwd=directory, env=env, ready=r"http://(127[0-9.:]+)")
        self.server, self.address = self.processes[-1], found.group(1)

    def report(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}/report") as response:
            return json.load(response)

    def hear(self, text):
        """The next spoken turn says this."""
        path = f"/asr?say={quote(text)}" if self.o.provider == "gemini-live" else f"/control?say={quote('asr ' + text)}"
        with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}{path}") as response:
            return json.load(response)

    def control(self, say):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}/control?say={quote(say)}") as response:
            return json.load(response)


class Client:
    """A client of the protocol. Reports what it has played, as the protocol asks."""
    def __init__(self, driver, **start):
        self.d, self.start, self.seen, self.audio, self.item = driver, start, [], 0, None
        self.new, self.closed, self.played = asyncio.Event(), None, True

    async def __aenter__(self):
        self.ws = await connect(f"ws://{self.d.address}/voice", subprotocols=["toolwright.v1"], max_size=None)
        self.d.check("the subprotocol is selected", self.ws.subprotocol == "toolwright.v1", self.ws.subprotocol)
        await self.send("start", version=1, **self.start)
        self.task = asyncio.create_task(self.read())
        self.ready = await self.wait("ready")
        return self

    async def __aexit__(self, *_):
        await self.ws.close()
        self.task.cancel()

    async def send(self, kind, **fields):
        try:
            await self.ws.send(json.dumps({"type": kind, **fields}))
        except ConnectionClosed:
            pass                                        # what was received before is still read

    async def read(self):
        try:
            async for frame in self.ws:
                if isinstance(frame, bytes):
                    self.audio += len(frame)
                    continue
                message = json.loads(frame)
                if self.d.o.verbose:
                    print("   ", frame[:200], flush=True)
                if message["type"] == "audio_ended" and self.played:
                    await self.send("played", item=message["item"], ms=message["ms"])
                self.seen.append(message)
                self.new.set()
        except ConnectionClosed:
            pass
        self.closed = self.ws.close_code
        self.new.set()

    async def wait(self, kind, timeout=15, **fields):
        """The next message of this kind with these fields; earlier ones are passed over."""
        async def found():
            while True:
                while self.seen:
                    message = self.seen.pop(0)
                    if message["type"] == kind and all(message.get(k) == v for k, v in fields.items()):
                        return message
                if self.closed is not None:
                    raise Failed(f"closed with {self.closed} before {kind} {fields}")
                self.new.clear()
                await self.new.wait()
        try:
            return await asyncio.wait_for(found(), timeout)
        except asyncio.TimeoutError:
            raise Failed(f"no {kind} {fields} within {timeout} s") from None

    async def say(self, text):
        await self.send("text", text=text)

    async def speak(self):
        """An utterance: loud audio, then silence, in real time."""
        for pcm in [tone(100)] * 3 + [bytes(3200)] * 8:
            await self.ws.send(pcm)
            await asyncio.sleep(0.03)

    async def read_back(self, asked):
        """The stand-in speaks of a result as JSON: the whole preview is in it."""
        space = " " if self.d.o.provider == "gemini-live" else ""
        await self.answer(f'"readBack":{space}{json.dumps(asked["preview"])}')

    async def answer(self, part=""):
        """The next answer that contains this part; a model may say something else first."""
        while part not in (text := (await self.wait("transcript", role="assistant", final=True))["text"]):
            pass
        return text


async def calls(d):
    """Text, a tool, the retrieval budget of a turn, an unknown tool, barge-in, stop."""
    async with Client(d) as c:
        d.check("the rates are those asked for", c.ready["inputSampleRate"] == 16000 and not c.ready["resumed"], c.ready)
        await c.say("hello there")
        answer = await c.answer()
        d.check("the model answers", "hello there" in answer, answer)
        d.check("audio arrives", c.audio > 0, c.audio)
        await c.say('call lookup {"query": "a"}\ncall lookup {"query": "b"}\ncall lookup {"query": "c"}')
        done = [await c.wait("tool_finished") for _ in range(3)]
        results = sorted((m["ok"], m.get("error")) for m in done)
        d.check("two retrieval calls a turn", results == [(False, "BUDGET_EXCEEDED"), (True, None), (True, None)], results)
        await c.answer("lookup")
        await c.say('call lookup {"query": "d"}\ncall calendar_create_event {}\ncall nothing {}')
        done = {m["tool"]: m.get("error") for m in [await c.wait("tool_finished") for _ in range(3)]}
        expected = {"lookup": None, "calendar_create_event": "MODE_RESTRICTED", "nothing": "NOT_FOUND"}
        d.check("text tools and unknown ones are refused, with a new budget", done == expected, done)
        await c.answer("nothing")
        await c.say("slow")
        await c.wait("transcript", role="assistant", text="This is ")
        await c.speak()
        interrupted = await c.wait("interrupted")
        await c.send("played", item=interrupted["item"], ms=80)
        cut = await c.wait("transcript", role="assistant", final=True)
        is_part = LONG_ANSWER.startswith(cut["text"]) and 0 < len(cut["text"]) < len(LONG_ANSWER)
        d.check("the interrupted answer is a part of it", cut.get("interrupted") and is_part, cut)
        await c.answer(SPOKEN)
        heard = [m for m in c.seen if m["type"] == "transcript" and m["role"] == "user"]
        await c.send("ping", id="p1")
        await c.wait("pong", id="p1")
        await c.say('call send_note {"to": "eve"}\nagain')
        await c.wait("tool_started", tool="send_note")
        await c.send("stop")
        # Every call has its result before the end.
        await c.wait("tool_finished", tool="send_note")
        ended = await c.wait("ended")
        d.check("the session ends", ended["reason"] == "stopped", (ended, heard))
        await c.task
        d.check("with 1000", c.closed == 1000, c.closed)


async def confirmation(d):
    """Read back, an answer by voice, an answer by button; nothing that the model says approves."""
    async with Client(d, language="en", outputSampleRate=48000) as c:
        await c.say('call send_note {"to": "mira"}')
        asked = await c.wait("confirmation_requested")
        d.check("the question has a preview", "mira" in json.dumps(asked), asked)
        await c.read_back(asked)
        await c.say("yes")
        await c.answer("You said: yes")
        d.check("typed text answers nothing", not any(m["type"] == "confirmation_decided" for m in c.seen), c.seen)
        await c.speak()
        decided = await c.wait("confirmation_decided")
        d.check("the voice approves", (decided["outcome"], decided["by"]) == ("approved", "voice"), decided)
        finished = await c.wait("tool_finished", tool="send_note")
        d.check("the call has run", finished["ok"], finished)
        await c.say('call send_note {"to": "jon"}')
        asked = await c.wait("confirmation_requested")
        await c.read_back(asked)
        await c.send("confirm", id="conf_of_nobody", approved=True)
        await c.wait("error", code="unknown_confirmation")
        await c.send("confirm", id=asked["id"], approved=False)
        decided = await c.wait("confirmation_decided", id=asked["id"])
        d.check("the button rejects", (decided["outcome"], decided["by"]) == ("rejected", "screen"), decided)
        await c.send("stop")
        await c.wait("ended")


async def endings(d):
    """A farewell, and a block that also refuses the next connection."""
    async with Client(d) as c:
        c.played = False
        await c.say('call end_voice_session {"farewell_message": "Goodbye."}')
        ending = await c.wait("ending")
        d.check("the farewell is spoken first", ending == {"type": "ending", "reason": "tool", "farewell": True}, ending)
        await c.send("farewell_played")
        await c.wait("ended", reason="tool")
    async with Client(d) as c:
        await c.say('call end_voice_session {}')
        await c.wait("ended", reason="tool")
    async with Client(d, clientId="rude") as c:
        await c.say('call ignore_user {"duration_seconds": 60, "farewell_message": "That is enough."}')
        timeout = await c.wait("timeout")
        d.check("a countdown is shown", 55 <= timeout["seconds"] <= 60, timeout)
        before = c.audio
        await c.wait("ending")
        d.check("the farewell is heard", c.audio > before, c.audio)
        await c.wait("ended", reason="blocked")
        await c.task
    try:
        async with Client(d, clientId="rude"):
            raise Failed("a blocked client was let in")
    except Failed as failed:
        d.check("a blocked client is refused", "4403" in str(failed), failed)


async def resume(d):
    """A lost connection, the token, a session that is in use, and the history."""
    async with Client(d) as c:
        await c.say("remember blue")
        await c.answer()
        session, token = c.ready["sessionId"], c.ready["resumeToken"]
        await refused(d, 4409, sessionId=session)
        c.ws.transport.abort()
        await asyncio.sleep(0.2)
    async with Client(d, sessionId=session, resumeToken=token) as c:
        d.check("the session is resumed", c.ready["resumed"] and c.ready["resumeToken"] != token, c.ready)
        await c.say("still here")
        answer = await c.answer()
        d.check("the conversation goes on", "still here" in answer, answer)
        await refused(d, 4409, sessionId=session, resumeToken=token)
        await c.send("stop")
        await c.wait("ended")
    await refused(d, 4410, sessionId=session)
    await refused(d, 4404, sessionId="sess_of_nobody")


async def refused(d, code, **start):
    try:
        async with Client(d, **start):
            raise Failed("it was accepted")
    except Failed as failed:
        d.check(f"refused with {code}", f"closed with {code}" in str(failed), failed)


async def breaches(d):
    """Each breach of the protocol has its close code."""
    start = json.dumps({"type": "start", "version": 1})
    for code, *frames in [
        (4400, "RIFF"), (4400, b"\0\0"), (4400, json.dumps({"type": "stop"})), (4400, start, start),
        (4400, json.dumps({"type": "start", "version": 1, "inputSampleRate": 44100})), (4400, start, b"\0"),
        (4413, start, bytes(10 << 20)), (4400, json.dumps({"type": "start", "version": 9})),
    ]:
        ws = await connect(f"ws://{d.address}/voice", max_size=None)
        error = None
        try:
            for frame in frames:
                await ws.send(frame)
            while True:
                frame = await asyncio.wait_for(ws.recv(), 10)
                if isinstance(frame, str) and json.loads(frame)["type"] == "error":
                    error = json.loads(frame)
        except ConnectionClosed:
            pass
        d.check(f"close {code}", ws.close_code == code and error, (frames[-1][:60], ws.close_code, error))
    try:
        await connect(f"ws://{d.address}/voice", origin="http://evil.example")
        raise Failed("a foreign origin was accepted")
    except InvalidStatus as refusal:
        d.check("a foreign origin is refused", refusal.response.status_code == 403, refusal)


async def gemini_reconnects(d):
    """goAway, a cut connection during a call, 1011: the session goes on, and no result is lost."""
    async with Client(d) as c:
        await c.say("goaway 3")
        await c.wait("reconnecting")
        await c.wait("reconnected")
        await c.say("after going away")
        await c.answer("after going away")
        await c.say('call lookup {"query": "x"}\ncut 0')
        await c.wait("tool_finished", ok=True)
        await c.wait("reconnected")
        await c.answer("Studio B is quiet")
        await c.say("die 1011 Deadline expired")
        await c.wait("reconnecting")
        await c.wait("reconnected")
        await c.say("after the cut")
        await c.answer("after the cut")
        await c.send("stop")
        await c.wait("ended")


async def realtime_reconnects(d):
    """A cut connection during a call, a close with 1011, a repeated call: no result is lost, and nothing runs twice."""
    async with Client(d) as c:
        await c.say('call lookup {"query": "x"}\ncut 0')
        await c.wait("tool_finished", ok=True)
        await c.wait("reconnected")
        await c.answer("Studio B is quiet")
        await c.say("after the cut")
        await c.answer("after the cut")
        await c.say('call lookup {"query": "y"}\nagain')
        started = await c.wait("tool_started")
        await c.wait("tool_finished", callId=started["callId"], ok=True)
        await c.answer("lookup says")
        d.check("a repeated call runs once", not any(m["type"] == "tool_started" for m in c.seen), c.seen)
        d.control("die 1011 Deadline expired")
        await c.wait("reconnecting")
        await c.wait("reconnected")
        await c.say("after the close")
        await c.answer("after the close")
        await c.say('call slow_lookup {"ms": 1200}')
        await c.wait("tool_started", tool="slow_lookup")
        d.control("cut")
        await c.wait("reconnected")
        await c.wait("tool_finished", tool="slow_lookup", ok=True)
        await c.answer("Studio C is slow")
        await c.send("stop")
        await c.wait("ended")


async def terminal(d):
    """`toolwright voice`: a recording in, the answer as a file, the transcript and the calls; questions by an option."""
    recording, answer = d.directory / "in.wav", d.directory / "out.wav"
    with wave.open(str(recording), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
        file.writeframes(tone(400) + bytes(16000 * 2))

    async def run(says, *options):
        d.hear(says)
        answer.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(
            os.path.abspath(d.o.toolwright), "voice", "--wav", str(recording), "--out", str(answer), "--url",
            f"http://{d.address}", *options, cwd=d.directory, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        out, err = (text.decode() for text in await asyncio.wait_for(process.communicate(), 60))
        d.check(f"the command ends well after {says!r}", process.returncode == 0, (process.returncode, out, err))
        return out, err

    out, err = await run('call lookup {"query": "a"}')
    d.check("the transcript is on stdout", "agent: lookup says" in out and "Studio B is quiet" in out, (out, err))
    d.check("the calls are on stderr", "lookup" in err and "✓" in err, (out, err))
    with wave.open(str(answer)) as file:
        pcm = file.readframes(file.getnframes())
        format = (file.getnchannels(), file.getsampwidth(), file.getframerate())
    d.check("the answer is a recording", format == (1, 2, 24000), format)
    loudest = max(abs(sample) for (sample,) in struct.iter_unpack("<h", pcm))
    d.check("with the speech of the model", len(pcm) >= 2 * 24 * 100 and loudest > 5000, (len(pcm), loudest))
    for option, outcome, runs in [("yes", "approved", True), ("no", "rejected", False)]:
        out, err = await run('call send_note {"to": "mira"}', "--confirm", option, "--format", "json")
        result = json.loads(out)
        question = result["confirmations"][0]
        d.check(f"--confirm {option} answers the question", (question["outcome"], question["by"]) == (outcome, "screen"), result)
        did_run = any(call["tool"] == "send_note" and call["ok"] for call in result["calls"])
        d.check(f"the call {'runs' if runs else 'does not run'}", did_run == runs, result)
        d.check("the session was stopped", result["reason"] == "stopped" and result["sessionId"], result)


async def delegation_ends(d):
    """GPT-Live: a delegation that is stopped, one whose connection is cut, a farewell, and a block."""
    async with Client(d) as c:
        d.control('delegate /slow_lookup {"ms": 1500}')
        await c.wait("tool_started", tool="slow_lookup")
        d.control("cut")
        await c.wait("reconnected")
        await c.wait("tool_finished", tool="slow_lookup", ok=True)
        said = ""
        while "Studio C" not in said:
            said += await c.answer()
        d.control('delegate /slow_lookup {"ms": 5000}')
        await c.wait("tool_started", tool="slow_lookup")
        await c.send("stop")
        await c.wait("tool_finished", tool="slow_lookup")
        ended = await c.wait("ended")
        d.check("the session ends", ended["reason"] == "stopped", ended)
        await c.task
        d.check("with 1000", c.closed == 1000, c.closed)
    async with Client(d) as c:
        c.played = False
        d.control('delegate /end_voice_session {"farewell_message": "Goodbye."}')
        ending = await c.wait("ending")
        d.check("the farewell is spoken first", ending == {"type": "ending", "reason": "tool", "farewell": True}, ending)
        await c.send("farewell_played")
        await c.wait("ended", reason="tool")
    async with Client(d, clientId="rude") as c:
        d.control('delegate /ignore_user {"duration_seconds": 60, "farewell_message": "That is enough."}')
        timeout = await c.wait("timeout")
        d.check("a countdown is shown", 55 <= timeout["seconds"] <= 60, timeout)
        await c.wait("ended", reason="blocked", timeout=25)
    await refused(d, 4403, clientId="rude")


async def delegation_input(d):
    """GPT-Live: typed text, a muted microphone, an interruption, and a client that comes back."""
    async with Client(d) as c:
        await c.say('/lookup {"query": "typed"}')
        await c.wait("tool_finished", tool="lookup", ok=True)
        said = ""
        while "Studio B" not in said:
            said += await c.answer()
        await c.send("mute", muted=True)
        await c.speak()
        await c.send("ping", id="p1")
        await c.wait("pong", id="p1")
        session = d.report()["sessions"][-1]
        d.check("the microphone is off", session["muted"] and not session["delegations"], session)
        await c.send("mute", muted=False)
        d.control("slow")
        await c.wait("transcript", role="assistant", text="This is ")
        await c.speak()
        cut = await c.wait("transcript", role="assistant", final=True)
        is_part = LONG_ANSWER.startswith(cut["text"]) and 0 < len(cut["text"]) < len(LONG_ANSWER)
        d.check("the user interrupts the model", is_part, cut)
        # What was said is a task.
        said = ""
        while "quot" not in said.lower() and "no language model" not in said.lower() and "found" not in said.lower():
            said += await c.answer() + " "
        session, token = c.ready["sessionId"], c.ready["resumeToken"]
        await refused(d, 4409, sessionId=session)
        c.ws.transport.abort()
        await c.task
    async with Client(d, sessionId=session, resumeToken=token) as c:
        d.check("the session is resumed", c.ready["resumed"], c.ready)
        d.control("say still here")
        said = ""
        while "still here" not in said:
            said += await c.answer()
        await c.send("stop")
        await c.wait("ended")


async def delegation(d):
    """GPT-Live: a spoken task goes to the text agent; a repeated delegation has one effect."""
    async with Client(d) as c:
        await c.speak()
        said = ""
        while "quot" not in said.lower() and "no language model" not in said.lower() and "found" not in said.lower():
            said += await c.answer() + " "
        d.control('delegate /lookup {"query": "quiet"}\nagain')
        started = await c.wait("tool_started", tool="lookup")
        await c.wait("tool_finished", callId=started["callId"], ok=True)
        answer = await c.answer()
        while "Studio B" not in answer:
            answer += await c.answer()
        d.check("one effect", not any(m["type"] == "tool_started" for m in c.seen), c.seen)
        d.control('late /lookup {"query": "late"}')
        await c.wait("tool_finished", tool="lookup", ok=True)
        d.control('delegate /send_note {"to": "mira"}')
        asked = await c.wait("confirmation_requested")
        answer = await c.answer()
        while asked["preview"] not in answer:
            answer += await c.answer()
        await asyncio.sleep(1)
        await c.speak()
        decided = await c.wait("confirmation_decided")
        d.check("the voice approves", (decided["outcome"], decided["by"]) == ("approved", "voice"), decided)
        await c.wait("tool_finished", tool="send_note", ok=True)
        d.control("cut")
        await c.wait("reconnected")
        d.control("say I am back")
        answer = await c.answer()
        while "I am back" not in answer:
            answer += await c.answer()
        await asyncio.sleep(1)
        await c.send("stop")
        await c.wait("ended")


async def main(options):
    d = Driver(options)
    scenarios = {
        "gemini-live": [calls, confirmation, endings, resume, breaches, gemini_reconnects, terminal],
        "openai-realtime": [calls, confirmation, endings, resume, breaches, realtime_reconnects, terminal],
        "gpt-live": [delegation, delegation_ends, delegation_input],
    }[options.provider]
    name = f"{options.provider}{' over TLS' if options.tls else ''} {options.model or ''}".strip()
    with tempfile.TemporaryDirectory() as directory:
        try:
            await d.set_up(Path(directory))
            for scenario in scenarios:
                if options.only in (None, scenario.__name__):
                    await scenario(d)
            await asyncio.sleep(0.3)
            faults = d.report()["complaints"]
            d.check("no complaint of the stand-in", not faults, json.dumps(faults)[:2000])
        except Failed as failed:
            print(f"{name}: failed after {d.checks} checks: {failed}", file=sys.stderr)
            return 1
        finally:
            await d.stop()
    print(f"{name}: {d.checks} checks passed")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("provider", choices=STANDINS)
    parser.add_argument("toolwright")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--model")
    parser.add_argument("--only")
    parser.add_argument("-v", "--verbose", action="store_true")
    sys.exit(asyncio.run(main(parser.parse_args())))
