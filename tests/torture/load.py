"""Carries out the load of the plan, and records what callers have sent and got. Knows no rules: model.py checks."""
import collections
import json
import threading
import time
from dataclasses import dataclass, field

from servers import REQUEST_TIMEOUT_S, Disconnected

TRY_AGAIN = {"TRANSIENT", "UNAVAILABLE", "RATE_LIMIT"}
# Until all calls have a result after the last fault.
SETTLE_BOUND_S = 120


@dataclass
class Answer:
    event: int
    replica: int
    value: int
    begun: float
    ended: float
    # ok, in doubt, partial, try again, asked, refused TYPE, http STATUS, lost
    kind: str
    envelope: dict | None
    via: str = "call"

    def text(self):
        """The envelope as it was sent, but for `meta.replayed`."""
        meta = {name: value for name, value in self.envelope["meta"].items() if name != "replayed"}
        return json.dumps({**self.envelope, "meta": meta})


@dataclass
class Call:
    key: str
    session: str
    id: str
    tool: str
    value: int
    slow: int
    events: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    # What was sent about its confirmation request: (answer, kind of the result, value).
    decisions: list = field(default_factory=list)
    answer: str | None = None
    turn: tuple | None = None
    task: dict | None = None


@dataclass
class Chat:
    key: str
    chat: str
    message: str
    faults: list
    event: int
    is_begun: bool = False
    state: str = "not begun"
    has_text: bool = False
    problem: str = ""


def kind_of(status, body):
    if status != 200:
        return f"http {status}"
    if body["ok"]:
        return "ok"
    error = body["error"]
    if error["partialSideEffects"]:
        return "in doubt" if error["type"] == "INTERNAL" else "partial"
    if error["type"] == "CONFIRMATION_REQUIRED":
        return "asked"
    return "try again" if error["type"] in TRY_AGAIN else f"refused {error['type']}"


class Load:
    def __init__(self, world, report):
        self.world, self.report, self.lock = world, report, threading.Lock()
        self.calls, self.chats, self.requests = {}, {}, collections.Counter()
        # By session: when it was created, when its end was acknowledged and first asked for, and how many turns it has.
        self.created, self.ended, self.ended_requests, self.turn_requests = {}, {}, {}, collections.Counter()
        self.locks = collections.defaultdict(threading.Lock)

    def server(self, index):
        return self.world.servers[index % len(self.world.servers)]

    def send(self, replica, method, path, body=None, timeout=REQUEST_TIMEOUT_S):
        """Status and body; status 0 if the connection was lost."""
        try:
            status, value = self.server(replica).request(method, path, body, timeout)
        except Disconnected as error:
            status, value = 0, str(error)
        with self.lock:
            self.requests[status] += 1
        return status, value

    def until_answered(self, replica, method, path, body=None, seconds=60):
        """Sends a request to one replica after the other until it is answered by something but 429 or 503."""
        end = time.monotonic() + seconds
        while True:
            status, value = self.send(replica, method, path, body)
            if status not in (0, 429, 500, 503) or time.monotonic() > end:
                return status, value
            replica += 1
            time.sleep(0.3)

    def perform(self, event):
        try:
            getattr(self, event["kind"])(event)
        except Exception as error:
            self.report(f"the load {event['kind']} met something unexpected: {error!r}", [event["n"]])

    def session(self, event):
        with self.locks[event["session"]]:
            body = {"mode": "text", "sessionId": event["session"]}
            status, value = self.until_answered(event["to"], "POST", "/v1/sessions", body)
            # 409: it was created by a request whose response was lost.
            if status in (201, 409):
                self.created[event["session"]] = time.monotonic()
            else:
                self.report(f"session {event['session']} was not created: {status} {value}", [event["n"]])

    def has_session(self, session):
        """Waits for the creation of a session."""
        with self.locks[session]:
            return session in self.created

    def end(self, event):
        session = event["session"]
        if self.has_session(session):
            self.ended_requests[session] = time.monotonic()
            status, value = self.until_answered(event["to"], "DELETE", f"/v1/sessions/{session}")
            if status == 204:
                self.ended[session] = time.monotonic()
            else:
                self.report(f"session {session} does not end: {status} {value}", [event["n"]])

    def call_of(self, event, **more):
        key = f"{event['session']}/{event['id']}"
        with self.lock:
            call = self.calls.get(key)
            if call is None:
                call = Call(key, event["session"], event["id"], event["tool"], event["value"], event["slow"], **more)
                self.calls[key] = call
            call.events.append(event.get("n", 0))
        return call

    def send_call(self, call, replica, event, value=None):
        value = call.value if value is None else value
        body = {"args": {"key": call.key, "value": value, "slow": call.slow}, "sessionId": call.session,
                "executionId": call.id}
        begun = time.monotonic()
        status, envelope = self.send(replica, "POST", f"/v1/tools/{call.tool}/call", body)
        return self.note(call, replica, event, value, begun, status, envelope, "call")

    def note(self, call, replica, event, value, begun, status, body, via):
        kind = "lost" if status == 0 else kind_of(status, body)
        envelope = body if status == 200 else None
        answer = Answer(event, replica, value, begun, time.monotonic(), kind, envelope, via)
        with self.lock:
            call.answers.append(answer)
        return answer

    def send_copies(self, call, event):
        def work(replica, delay_ms):
            time.sleep(delay_ms / 1000)
            for attempt in range(3):
                answer = self.send_call(call, replica + attempt, event.get("n", 0), event["value"])
                if answer.kind not in ("lost", "try again") and not answer.kind.startswith("http"):
                    return
                time.sleep(0.3)

        in_parallel(work, event["to"])

    def call(self, event):
        if self.has_session(event["session"]):
            self.send_copies(self.call_of(event), event)

    conflict = call
    resend = call

    def turn(self, event):
        """A turn of a session at a time, so that each look belongs to one turn."""
        session = event["session"]
        if not self.has_session(session):
            return
        with self.locks[session + " turn"]:
            number = self.turn_requests[session]
            end = time.monotonic() + 60
            while time.monotonic() < end:
                self.turn_requests[session] += 1
                status, _ = self.send(event["to"], "POST", f"/v1/sessions/{session}/turn", {})
                if status == 200:
                    break
                time.sleep(0.3)
            else:
                return
            looks = [{**look, "n": event["n"]} for look in event["looks"]]
            calls = [(self.call_of(look, turn=(session, number)), look) for look in looks]
            in_parallel(self.send_copies, calls)

    def confirmed(self, event):
        if self.has_session(event["session"]):
            call = self.call_of(event)
            call.answer = event["answer"]
            self.decide(call, event["answer_to"], event["to"][0][0], event["n"], 5)

    def token(self, call, replica, event):
        answer = self.send_call(call, replica, event)
        if answer.kind == "asked":
            return answer.envelope["error"]["details"]["confirmation_request"]["confirmation_token"]
        return None

    def decide(self, call, replicas, asked_at, event, attempts):
        """Makes the call, and answers its confirmation request as planned."""
        for attempt in range(attempts):
            token = self.token(call, asked_at + attempt, event)
            if token and call.answer != "none":
                first, second = replicas
                requests = {
                    "approve": [(first, "approve", None)],
                    "approve_twice": [(first, "approve", None), (second, "approve", None)],
                    "approve_and_reject": [(first, "approve", None), (second, "reject", None)],
                    "reject": [(first, "reject", None)],
                    "edit": [(first, "approve", call.value + 2000)],
                }[call.answer]
                in_parallel(lambda *request: self.send_decision(call, token, event, *request), requests)
            elif call.answers[-1].kind not in ("lost", "try again") and not call.answers[-1].kind.startswith("http"):
                return
            time.sleep(0.3)

    def send_decision(self, call, token, event, replica, decision, edited):
        body, begun = {}, time.monotonic()
        if edited is not None:
            body["args"] = {"key": call.key, "value": edited, "slow": call.slow}
        value = call.value if edited is None else edited
        # Before it is sent: its effect may be there before the response.
        row = [decision, "lost", value]
        with self.lock:
            call.decisions.append(row)
        status, envelope = self.send(replica, "POST", f"/v1/confirmations/{token}/{decision}", body)
        row[1] = "lost" if status == 0 else f"http {status}" if status != 200 else kind_of(status, envelope)
        if decision == "approve" and status == 200:
            self.note(call, replica, event, value, begun, status, envelope, "approve")

    def task(self, event):
        if not self.has_session(event["session"]):
            return
        call = self.call_of(event)
        canceller = None
        if event["cancel_ms"] is not None:
            canceller = threading.Thread(target=self.cancel, args=(call, event))
            canceller.start()
        self.send_copies(call, event)
        if canceller:
            canceller.join()

    def cancel(self, call, event):
        for _ in range(20):
            begun = [answer for answer in call.answers if answer.kind == "ok"]
            if begun:
                time.sleep(event["cancel_ms"] / 1000)
                task = begun[0].envelope["data"]["task"]["taskId"]
                self.until_answered(event["cancel_to"], "POST", f"/v1/tasks/{task}/cancel", {}, seconds=10)
                return
            time.sleep(0.2)

    def chat(self, event):
        # A message after the one before has its answer.
        with self.locks[event["chat"]]:
            key = f"{event['chat']}/{event['message']}"
            chat = Chat(key, event["chat"], event["message"], event["faults"], event["n"])
            unfinished = any(other.chat == chat.chat and not other.has_text for other in self.chats.values())
            if not unfinished:
                self.chats[chat.key] = chat
                self.converse(chat, event["to"], 30)

    def converse(self, chat, replica, seconds):
        """Sends the message until its turn has ended."""
        text = f"note {chat.key} {','.join(chat.faults)}."
        message = {"id": chat.message, "role": "user", "parts": [{"type": "text", "text": text}]}
        body = {"id": chat.chat, "messages": [message], "trigger": "submit-message"}
        end = time.monotonic() + seconds
        while time.monotonic() < end and not chat.has_text:
            status, stream = self.send(replica, "POST", "/api/chat", body, timeout=seconds)
            if status == 200:
                chat.is_begun = True
            if status != 200 or '"type":"error"' in str(stream):
                chat.problem = f"{status} {str(stream)[-300:]}"
                time.sleep(0.3)
            replica += 1
            self.read_chat(chat, replica)

    def read_chat(self, chat, replica):
        status, value = self.send(replica, "GET", f"/api/chat/{chat.chat}/messages")
        if status not in (200, 404):
            return
        messages = value["messages"] if status == 200 else []
        ids = [message["id"] for message in messages]
        if chat.message not in ids:
            if chat.is_begun:
                chat.state = "gone"
            return
        chat.state = "begun"
        for message in messages[ids.index(chat.message) + 1:]:
            if message["role"] == "user":
                break
            for part in message["parts"]:
                if "toolCallId" in part:
                    chat.state = part["state"]
                    if chat.state == "output-error":
                        chat.state = f"error: {part.get('errorText')}"
                    elif chat.state == "output-available" and part["output"].get("ok") is False:
                        chat.state = f"error: {part['output']}"
                elif part["type"] == "text" and "done" in part["text"]:
                    chat.has_text = True

    def settle(self):
        """After the last fault: every call is sent again until it has a result, then once more."""
        end = time.monotonic() + SETTLE_BOUND_S

        def settle_call(call):
            if call.tool == "pay" and call.answer not in (None, "none"):
                self.decide(call, (0, 1), 0, 0, 3)
            for attempt in range(10000):
                answer = self.send_call(call, attempt + len(call.key), 0)
                if answer.kind == "ok" and call.tool in ("report", "render"):
                    self.wait_for_task(call, answer, end)
                if answer.kind not in ("lost", "try again") and not answer.kind.startswith("http"):
                    return
                if time.monotonic() > end:
                    return self.report(f"{call.key} ({call.tool}) gets no result: {answer.kind} {answer.envelope}",
                                       call.events)
                time.sleep(0.5)

        def settle_chat(chat):
            with self.locks[chat.chat]:
                self.converse(chat, 0, max(5.0, end - time.monotonic()))
                self.read_chat(chat, 0)

        jobs = [(settle_call, call) for call in list(self.calls.values())]
        jobs += [(settle_chat, chat) for chat in list(self.chats.values())]
        each(lambda job: job[0](job[1]), jobs, 12)

    def wait_for_task(self, call, answer, end):
        task = answer.envelope["data"]["task"]["taskId"]
        while True:
            status, call.task = self.until_answered(0, "GET", f"/v1/tasks/{task}")
            if status != 200 or call.task["status"] not in ("queued", "running"):
                return
            if time.monotonic() > end:
                self.report(f"the task of {call.key} ({call.tool}) does not end: {call.task}", call.events)
                return
            time.sleep(0.3)

    def end_sessions(self):
        """Ends all sessions, those of chats too. Returns their number."""
        ended, page = 0, {"next": ""}
        while page["next"] is not None:
            before = f"&before={page['next']}" if page["next"] else ""
            _, page = self.until_answered(0, "GET", f"/v1/sessions?limit=200{before}")
            for session in page["sessions"]:
                name = session["sessionId"]
                if name in self.ended and session["standing"] != "ended":
                    self.report(f"session {name} is {session['standing']} after its end was acknowledged", [])
                status, value = self.until_answered(1, "DELETE", f"/v1/sessions/{name}")
                _, found = self.until_answered(2, "GET", f"/v1/sessions/{name}")
                if status != 204 or found["standing"] != "ended":
                    self.report(f"session {name} does not end: {status} {value} {found}", [])
                ended += 1
        return ended


def in_parallel(work, arguments):
    threads = [threading.Thread(target=work, args=row, daemon=True) for row in arguments[1:]]
    for thread in threads:
        thread.start()
    work(*arguments[0])
    for thread in threads:
        thread.join()


def each(work, jobs, threads):
    """Does all jobs, several at a time."""
    left, lock = list(reversed(jobs)), threading.Lock()

    def worker():
        while True:
            with lock:
                if not left:
                    return
                job = left.pop()
            work(job)

    in_parallel(lambda: worker(), [()] * threads)
