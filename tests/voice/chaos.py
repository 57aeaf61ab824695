#!/usr/bin/env python3
"""Voice sessions with a random fault each, against the stand-ins.

  python chaos.py TOOLWRIGHT SESSIONS SEED [--only MODEL]

Afterwards every call must have been answered once to the model that made it, or told to the next connection, or be in the
history of calls; a write must have run at most once, and once if anybody was told so; every session must have ended; the
stand-in must have refused nothing; and the server must have no more threads, sockets and memory than before.
"""
import argparse, asyncio, collections, json, math, os, random, re, sys, tempfile, time, urllib.error, urllib.request
from pathlib import Path
from urllib.parse import quote

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from drive import Driver, Failed, tone

AT_A_TIME = 25
WARM_UP = 40
GRACE_S = 2
MODELS = [("gemini-live", "gemini-2.5-live"), ("gemini-live", "gemini-3.8-live"), ("openai-realtime", "gpt-realtime"),
          ("gpt-live", "gpt-live-1")]
# What the server may keep of all sessions: caches that fill, and what its allocator holds.
MAX_GROWTH_KB = 24 << 10
# A call may come while its session ends. It must not run then, and must be rare.
MAX_LATE = 0.05
FAULTS = ["none", "provider cut", "client cut", "client gone", "cancel", "late result", "duplicate call", "going away",
          "slow reader", "garbage", "interrupted", "server ends it"]


class Service:
    """What the tools call: counts the writes by their token."""

    def __init__(self):
        self.writes = collections.Counter()

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                length = re.search(r"content-length: (\d+)", head, re.I)
                body = await reader.readexactly(int(length[1])) if length else b"{}"
                path = head.split(" ")[1]
                if path.startswith("/write"):
                    args = json.loads(body)
                    await asyncio.sleep(args["ms"] / 1000)
                    self.writes[args["token"]] += 1
                else:
                    await asyncio.sleep(int(re.search(r"ms=(\d+)", path)[1]) / 1000)
                answer = b'{"done": true}'
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def tools(port):
    parameters = {"type": "object", "required": ["token", "ms"], "additionalProperties": False,
                  "properties": {"token": {"type": "string"}, "ms": {"type": "integer"}}}
    base = {"type": "function", "category": "utility", "parameters": parameters, "timeoutMs": 20000}
    url = f"http://127.0.0.1:{port}"
    return {"version": 2, "tools": [
        {**base, "name": "slow_read", "description": "Reads slowly.", "sideEffects": "read_only", "idempotent": True,
         "implementation": {"type": "http", "method": "GET", "url": f"{url}/read", "query": {"ms": "{ms}", "token": "{token}"}}},
        {**base, "name": "slow_write", "description": "Writes slowly.", "sideEffects": "writes", "idempotent": False,
         "implementation": {"type": "http", "method": "POST", "url": f"{url}/write", "body": {"ms": "{ms}", "token": "{token}"}}},
    ]}


class Session:
    """A session with one fault, as its client sees it."""

    def __init__(self, chaos, number):
        self.chaos, self.number = chaos, number
        self.random = random.Random(f"{chaos.seed} {chaos.model} {number}")
        self.fault = self.random.choice(FAULTS)
        self.attempts = 0
        self.started, self.finished = collections.Counter(), collections.Counter()
        self.ok, self.errors, self.ended, self.closed, self.has_closed = set(), [], None, None, asyncio.Event()
        self.session = self.token = self.live = None
        self.tools = {}
        self.over = float("inf")                        # when its end began, at the latest

    async def open(self):
        ws = await connect(f"ws://{self.chaos.address}/voice", max_size=None, ping_interval=None)
        resume = {"sessionId": self.session, "resumeToken": self.token} if self.session else {}
        await ws.send(json.dumps({"type": "start", "version": 1, **resume}))
        self.ws, self.is_ready = ws, asyncio.Event()
        self.reader = asyncio.create_task(self.read(ws))
        ready = asyncio.create_task(self.is_ready.wait())
        await asyncio.wait([ready, self.reader], timeout=30, return_when=asyncio.FIRST_COMPLETED)
        if not self.is_ready.is_set():
            ready.cancel()
            # On a busy machine the stand-in may take longer than a provider may.
            if ws.close_code == 4502 and self.attempts < 3:
                self.attempts += 1
                return await self.open()
            raise Failed(f"session {self.number} ({self.fault}) was not opened: {ws.close_code} {self.errors}")

    async def read(self, ws):
        try:
            async for frame in ws:
                if isinstance(frame, bytes):
                    continue
                message = json.loads(frame)
                match message["type"]:
                    case "ready":
                        self.session, self.token = message["sessionId"], message["resumeToken"]
                        self.is_ready.set()
                    case "audio_ended":
                        await self.send("played", item=message["item"], ms=message["ms"])
                    case "tool_started":
                        self.started[message["callId"]] += 1
                        self.tools[message["callId"]] = message["tool"]
                    case "tool_finished":
                        self.finished[message["callId"]] += 1
                        if message["ok"]:
                            self.ok.add(message["callId"])
                    case "ended":
                        self.ended = message["reason"]
                    case "error":
                        self.errors.append(message["code"])
        except ConnectionClosed:
            pass
        self.closed = ws.close_code

    async def send(self, kind, **fields):
        if kind == "stop":
            self.over = min(self.over, time.time())
        try:
            await self.ws.send(json.dumps({"type": kind, **fields}))
        except ConnectionClosed:
            pass

    def calls(self):
        """One to three calls, of which the first writes. What GPT-Live hears at once is one task, with one call."""
        lines = []
        for n in range(1 if self.chaos.provider == "gpt-live" else self.random.randint(1, 3)):
            tool = "slow_write" if n == 0 else self.random.choice(["slow_read", "slow_write"])
            token = f"{self.chaos.model}-{self.number}-{n}"
            self.chaos.tokens.add(token)
            args = json.dumps({"token": token, "ms": self.random.randint(0, 500)})
            lines.append(f"delegate /{tool} {args}" if self.chaos.provider == "gpt-live" else f"call {tool} {args}")
        return lines

    async def begin(self):
        """Makes the model call, with a fault of its connection."""
        lines, provider = self.calls(), self.chaos.provider
        if provider == "gpt-live":
            if self.fault == "duplicate call":
                lines.append("again")
            await self.control("\n".join(lines))
            if self.fault == "provider cut":
                await self.pause()
                await self.control("cut")
            return
        if self.fault == "provider cut":
            lines.append(f"cut {self.random.randint(0, 500)}")
        if self.fault == "duplicate call":
            lines.append("again")
        await self.send("text", text="\n".join(lines))

    async def control(self, say):
        """GPT-Live takes no text: the stand-in is told what its caller says."""
        await asyncio.to_thread(self.chaos.control, say, self.live)

    async def pause(self, most=0.6):
        await asyncio.sleep(self.random.random() * most)

    async def speak(self):
        for pcm in [tone(100)] * 3 + [bytes(3200)] * 8:
            try:
                await self.ws.send(pcm)
            except ConnectionClosed:
                return
            await asyncio.sleep(0.02)

    async def run(self):
        await self.open()
        if self.chaos.provider == "gpt-live":
            # One at a time, so that the muted session of the stand-in is this one's.
            async with self.chaos.muting:
                await self.send("mute", muted=True)
                self.live = await self.chaos.muted()
                await self.send("mute", muted=False)
                await self.chaos.muted(is_any=False)
        await self.begin()
        await self.pause()
        match self.fault:
            case "client cut":
                self.ws.transport.abort()
                await self.reader
                await self.pause()
                await self.open()
            case "client gone":
                self.ws.transport.abort()
                await self.reader
                self.over = time.time() + GRACE_S
                return
            case "cancel":
                await self.send("text", text="never mind")
            case "interrupted":
                await self.speak()
            case "late result":
                await self.send("stop")
            case "going away":
                match self.chaos.provider:
                    case "gemini-live":
                        await self.send("text", text="goaway 1")
                    case "openai-realtime":
                        await self.send("text", text="expire 500\nhello")
                    case _:
                        await self.control("expire")
                await self.pause(1.5)
            case "slow reader":
                self.ws.transport.pause_reading()
                if self.live:
                    await self.control("slow")
                else:
                    await self.send("text", text="slow")
                await self.pause(3)
                self.ws.transport.resume_reading()
            case "garbage":
                await self.ws.send(self.random.choice(["RIFF", b"\0", "{}", '{"type": "shout"}', "[" * 100]))
                await asyncio.wait_for(self.reader, 30)
                self.chaos.check(self, self.closed == 4400, f"garbage closed it with {self.closed}")
                if self.random.random() < 0.5:
                    self.over = time.time() + GRACE_S
                    return
                await self.open()
            case "server ends it":
                self.over = time.time()
                self.chaos.request("DELETE", f"/v1/sessions/{self.session}")
        if self.fault != "server ends it":
            await self.pause()
            await self.send("text", text="are you there")
            await self.pause()
            await self.send("stop")
        await asyncio.wait_for(self.reader, 60)
        self.chaos.check(self, self.ended and self.closed == 1000, f"ended {self.ended}, closed {self.closed} {self.errors}")
        # What was on the way when a connection was cut is lost.
        is_whole = self.fault not in ("client cut", "garbage")
        for call in self.started | self.finished if is_whole else ():
            self.chaos.check(self, self.started[call] == self.finished[call] == 1,
                             f"{call} started {self.started[call]} and finished {self.finished[call]} times")


class Chaos(Driver):
    def __init__(self, options, provider, model, sessions):
        super().__init__(argparse.Namespace(provider=provider, model=model, tls=False, toolwright=options.toolwright, verbose=False))
        self.seed, self.provider, self.model, self.count = options.seed, provider, model, sessions
        self.tokens, self.problems, self.sessions, self.muting = set(), [], [], asyncio.Lock()

    store = "sqlite:state.db"
    settings = (f"sessions = 500\nsessions_per_principal = 500\ngrace_s = {GRACE_S}\nslow_client_s = 5\nfiller_after_ms = 200\n")

    async def prepare(self, directory):
        self.service = Service()
        await self.service.start()
        self.tools = tools(self.service.port)
        await self.set_up(directory)

    def check(self, session, ok, what):
        if not ok:
            self.problems.append(f"session {session.number} ({session.fault}): {what}")

    async def muted(self, is_any=True):
        """The stand-in's session whose microphone is off; or waits until there is none."""
        def read():
            with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}/muted") as response:
                return json.load(response)["sessions"]
        for _ in range(200):
            sessions = await asyncio.to_thread(read)
            if bool(sessions) == is_any:
                return sessions[0] if sessions else None
            await asyncio.sleep(0.05)
        raise Failed("the microphone was not switched at the stand-in")

    def control(self, say, session):
        """Tells the stand-in; its connection may have been replaced."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}/control?session={session}&say={quote(say)}"):
                pass
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise

    def request(self, method, path):
        request = urllib.request.Request(f"http://{self.address}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read() or b"null") if "metrics" not in path else response.read().decode()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def resources(self):
        """Threads, open sockets and kilobytes of the server."""
        process = Path(f"/proc/{self.server.pid}")
        inodes = set()
        for fd in (process / "fd").iterdir():
            try:
                inodes.add(os.readlink(fd).removeprefix("socket:[").rstrip("]"))
            except OSError:
                pass
        # Connections to the tools' service are kept for the next call.
        rows = [line.split() for line in (process / "net/tcp").read_text().splitlines()[1:]]
        sockets = sum(row[9] in inodes and not row[2].endswith(f":{self.service.port:04X}") for row in rows)
        names = collections.Counter((task / "comm").read_text().strip() for task in (process / "task").iterdir())
        resident = int(re.search(r"VmRSS:\s+(\d+)", (process / "status").read_text())[1])
        return {"threads": dict(names), "sockets": sockets, "rss": resident}

    async def settle(self):
        """Waits until no session runs, and until the threads for blocking work have ended."""
        for _ in range(200):
            metrics = await asyncio.to_thread(self.request, "GET", "/metrics")
            running = int(re.search(r"^toolwright_voice_sessions\{.*\} (\d+)", metrics, re.M)[1])
            if running == 0:
                break
            await asyncio.sleep(0.1)
        self.running = running
        await asyncio.sleep(12)
        return self.resources()

    async def play(self, numbers):
        free = asyncio.Semaphore(AT_A_TIME)

        async def one(number):
            async with free:
                session = Session(self, number)
                self.sessions.append(session)
                try:
                    await session.run()
                except (Failed, asyncio.TimeoutError, OSError, ConnectionClosed) as error:
                    self.check(session, False, f"{type(error).__name__} {error} {session.errors}")

        await asyncio.gather(*(one(number) for number in numbers))

    def made_calls(self):
        """What the stand-in has on the wire: calls with their answers."""
        calls = {}
        for line in self.wire.read_text().splitlines():
            record = json.loads(line)
            sender, message = record["from"], record["msg"]
            if sender == "server":
                found = message.get("toolCall", {}).get("functionCalls", [])
                done = message.get("response", {}) if message.get("type") == "response.done" else {}
                found += [{**item, "id": item["call_id"]} for item in done.get("output", []) if item["type"] == "function_call"]
                for call in found:
                    args = call.get("args") or json.loads(call["arguments"])
                    calls.setdefault(call["id"], {"args": args, "name": call["name"], "answers": 0, "at": record["t"]})
            elif sender == "client":
                for answer in message.get("toolResponse", {}).get("functionResponses", []):
                    calls[answer["id"]]["answers"] += 1
                item = message.get("item", {})
                if item.get("type") == "function_call_output":
                    calls[item["call_id"]]["answers"] += 1
        return calls

    def verify_delegations(self):
        """The text agent makes the calls: they are in the history, and each delegation has an answer."""
        kinds, made = collections.Counter(), 0
        for token in self.tokens:
            if self.service.writes[token] > 1:
                self.problems.append(f"the write {token} ran {self.service.writes[token]} times")
        for session in self.sessions:
            made += len(session.started)
            for call in session.started | session.finished:
                record = self.request("GET", f"/v1/calls/{call}?sessionId={session.session}")
                # A call that was stopped before it began is reported as such to the client.
                self.check(session, record or call not in session.ok, f"{call} is not in the history of calls")
                kinds["in the history" if record else "stopped before they ran"] += 1
            done = sum(session.tools.get(call) == "slow_write" for call in session.ok)
            prefix = f"{self.model}-{session.number}-"
            runs = sum(count for token, count in self.service.writes.items() if token.startswith(prefix))
            self.check(session, runs >= done, f"{done} writes were reported as done, and {runs} ran")
        for live in self.report()["sessions"]:
            for delegation in live["delegations"].values():
                answered = any(part["kind"] == "commentary" for part in delegation["appended"])
                # Answers to delegations of a lost connection are told to the next one, without an id.
                kinds["delegations answered" if answered else f"delegations of a session that was {live['closed']}"] += 1
        return made, kinds

    def complaints(self):
        """What the stand-in complains about. A delegation that came as its session ended may have no answer."""
        report = self.report()
        over = {session.live: session.over for session in self.sessions if session.live}
        late = {id for live in report.get("sessions", ()) for id, delegation in live["delegations"].items()
                if not delegation["appended"] and delegation["at"] > over.get(live["id"], math.inf) - 1}
        found = [fault for fault in report["complaints"] if not any(f"{id} " in fault["what"] for id in late)]
        if len(late) > 2 + MAX_LATE * len(self.sessions):
            self.problems.append(f"{len(late)} delegations came as their sessions ended")
        return found

    def verify(self):
        if self.provider == "gpt-live":
            return self.verify_delegations()
        calls, kinds = self.made_calls(), collections.Counter()
        told = {id: c["state"] for id, c in self.report()["calls"].items()}
        for id, call in calls.items():
            token = call["args"]["token"]
            number = int(token.rsplit("-", 2)[1])
            session = next(s for s in self.sessions if s.number == number)
            record = self.request("GET", f"/v1/calls/{id}?sessionId={session.session}")
            runs = self.service.writes[token]
            succeeded = bool(record and record["envelope"] and record["envelope"]["ok"])
            self.check(session, runs <= 1, f"the write {id} ran {runs} times")
            if call["name"] == "slow_write" and (id in session.ok or succeeded):
                self.check(session, runs == 1, f"{id} was reported as done and ran {runs} times")
            self.check(session, call["answers"] <= 1, f"{id} was answered {call['answers']} times")
            if call["answers"] == 1:
                kinds["answered"] += 1
            elif told.get(id) == "told as content":
                kinds["told to the next connection"] += 1
            elif record:
                kinds[f"only reported, {session.fault}"] += 1
            elif call["at"] > session.over - 0.1:
                kinds["made as the session ended"] += 1
                self.check(session, runs == 0, f"{id} was made as the session ended, and ran")
            else:
                kinds["neither"] += 1
                self.check(session, False, f"{call['name']} {id} was neither answered nor reported; it ran {runs} times")
        if (late := kinds["made as the session ended"]) > 2 + MAX_LATE * len(calls):
            self.problems.append(f"{late} of {len(calls)} calls were neither answered nor reported")
        return len(calls), kinds

    async def chaos(self):
        await self.play(range(WARM_UP))
        before = await self.settle()
        began = time.monotonic()
        await self.play(range(WARM_UP, WARM_UP + self.count))
        took = time.monotonic() - began
        after = await self.settle()
        made, kinds = await asyncio.to_thread(self.verify)
        faults = self.complaints()
        self.problems += [f"the stand-in complains: {fault}" for fault in faults]
        if self.running:
            self.problems.append(f"{self.running} sessions have not ended")
        if sum(after["threads"].values()) > sum(before["threads"].values()):
            self.problems.append(f"threads: {before['threads']} before, {after['threads']} after")
        if after["sockets"] > before["sockets"]:
            self.problems.append(f"sockets: {before['sockets']} before, {after['sockets']} after")
        if after["rss"] - before["rss"] > MAX_GROWTH_KB:
            self.problems.append(f"memory: {before['rss']} kB before, {after['rss']} kB after")
        grown = (after["rss"] - before["rss"]) / max(1, self.count)
        print(f"{self.model}: {len(self.sessions)} sessions in {took:.0f} s, {made} calls: "
              + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
        print(f"  {sum(self.service.writes.values())} writes; threads {sum(before['threads'].values())} → "
              f"{sum(after['threads'].values())}, sockets {before['sockets']} → {after['sockets']}, "
              f"memory {before['rss'] // 1024} → {after['rss'] // 1024} MB ({grown:.1f} kB a session)", flush=True)


async def main(options):
    is_good = True
    for position, (provider, model) in enumerate(MODELS):
        if options.only not in (None, model):
            continue
        sessions = options.sessions // len(MODELS) + (position < options.sessions % len(MODELS))
        chaos = Chaos(options, provider, model, sessions)
        with tempfile.TemporaryDirectory() as directory:
            try:
                await chaos.prepare(Path(directory))
                await chaos.chaos()
            finally:
                await chaos.stop()
        for problem in chaos.problems[:40]:
            print(f"  {problem}")
        is_good &= not chaos.problems
    print(f"seed {options.seed}: {'all is well' if is_good else 'failed'}")
    return 0 if is_good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("toolwright")
    parser.add_argument("sessions", type=int)
    parser.add_argument("seed")
    parser.add_argument("--only", help="the sessions of this model alone")
    sys.exit(asyncio.run(main(parser.parse_args())))
