"""The events of a run, load and faults, made from a seed alone. An event is an object with `n` (its number), `at`
(seconds from the start) and `kind`; a file of events has one of them in each line, after a line with the settings."""
import collections
import json
import random

EVENTS_PER_SECOND = 10
CALLS_PER_SESSION = 24
# A turn in text mode may make this many retrieval calls.
BUDGET = 5
FAULT_PAUSE_S = (3.0, 7.0)
# Longer than the lease of a replica, 15 s.
PAUSE_S = {"postgres": 18.0, "sqlite": 4.0}
FAULTS = {
    "sqlite": ["kill"] * 6 + ["kill_again"] * 2 + ["restart", "pause", "disk_full", "slow_disk", "clock", "clock",
                                                   "deploy", "deploy"],
    "postgres": ["kill"] * 5 + ["kill_again", "kill_postgres", "kill_postgres", "stop_postgres", "restart", "pause",
                                "disk_full", "slow_disk", "clock", "clock", "deploy", "deploy"],
}
LOAD = {"call": 46, "confirmed": 14, "turn": 9, "chat": 7, "task": 10, "conflict": 6, "resend": 8}
TOOLS = {"note": 8, "put": 5, "compose": 3}
ANSWERS = {"approve": 5, "approve_twice": 4, "approve_and_reject": 3, "reject": 2, "edit": 2, "none": 2}
MODEL_FAULTS = ["500", "429", "cut", "empty", "garbage", "slow", "drop"]


def choose(random_source, weights):
    return random_source.choices(list(weights), list(weights.values()))[0]


class Planner:
    def __init__(self, seed, seconds, store, replicas):
        self.random, self.seconds, self.store, self.replicas = random.Random(seed), seconds, store, replicas
        self.events, self.sessions, self.number = [], [], 0

    def replica(self):
        return self.random.randrange(self.replicas)

    def add(self, at, kind, **fields):
        self.events.append({"at": round(at, 3), "kind": kind, **fields})

    def make(self):
        self.plan_faults()
        at = 0.0
        open_sessions = [self.begin_session(0.0) for _ in range(4)]
        while at < self.seconds:
            at += self.random.expovariate(EVENTS_PER_SECOND)
            session = self.random.choice(open_sessions)
            self.plan_load(at, session)
            session["left"] -= 1
            if session["left"] == 0:
                self.add(at + 1, "end", session=session["id"], to=self.replica())
                # A call of a session that has ended runs nothing.
                self.add(at + 3, "call", **self.call(session, "note"))
                open_sessions.remove(session)
                open_sessions.append(self.begin_session(at))
        self.events.sort(key=lambda event: event["at"])
        for number, event in enumerate(self.events, 1):
            event["n"] = number
        return self.events

    def begin_session(self, at):
        session = {"id": f"s{len(self.sessions) + 1}", "left": CALLS_PER_SESSION, "calls": [], "next": 0, "turns": 0}
        self.sessions.append(session)
        self.add(at, "session", session=session["id"], to=self.replica())
        return session

    def call(self, session, tool):
        """A new call, with the replicas that get it and when, in milliseconds: some of them get it a second time."""
        session["next"] += 1
        copies = choose(self.random, {1: 6, 2: 3, 3: 1})
        to = [[self.replica(), self.random.choice([0, 0, 5, 40, 300])] for _ in range(copies)]
        slow = self.random.choice([0] * 8 + [300, 2500])
        call = {"session": session["id"], "id": f"c{session['next']}", "tool": tool, "slow": slow,
                "value": self.random.randrange(1000), "to": to}
        session["calls"].append(call)
        return call

    def plan_load(self, at, session):
        kind = choose(self.random, LOAD)
        written = [call for call in session["calls"] if call["tool"] in TOOLS]
        if kind in ("conflict", "resend") and not written:
            kind = "call"
        if kind == "call":
            self.add(at, kind, **self.call(session, choose(self.random, TOOLS)))
        elif kind == "confirmed":
            call = self.call(session, "pay")
            call["to"] = call["to"][:1]
            answer = choose(self.random, ANSWERS)
            self.add(at, kind, **call, answer=answer, answer_to=[self.replica(), self.replica()])
        elif kind == "turn":
            session["turns"] += 1
            looks = [self.call(session, "look") for _ in range(self.random.randint(3, 2 * BUDGET))]
            for call in looks:
                call["slow"] = min(call["slow"], 300)
            self.add(at, kind, session=session["id"], to=self.replica(), turn=session["turns"], looks=looks)
        elif kind == "chat":
            faults = [self.random.choice(MODEL_FAULTS) for _ in range(self.random.choice([0, 0, 1, 1, 2, 5]))]
            chat = f"chat{self.random.randrange(6)}-{session['id']}"
            self.add(at, kind, chat=chat, message=f"m{len(self.events)}", faults=faults, to=self.replica())
        elif kind == "task":
            cancel_ms = self.random.choice([None, None, None, 0, 100, 1500])
            call = self.call(session, self.random.choice(["report", "render"]))
            self.add(at, kind, **call, cancel_ms=cancel_ms, cancel_to=self.replica())
        else:
            call = self.random.choice(written)
            value = call["value"] + 1000 if kind == "conflict" else call["value"]
            self.add(at, kind, **{**call, "value": value, "to": [[self.replica(), 0]]})

    def plan_faults(self):
        at, bag, releases = 6.0, [], 1
        while True:
            if not bag:
                # Each kind once, then the rest.
                once = sorted(set(FAULTS[self.store]))
                rest = list((collections.Counter(FAULTS[self.store]) - collections.Counter(once)).elements())
                self.random.shuffle(once)
                self.random.shuffle(rest)
                bag = once + rest
            kind = bag.pop(0)
            fields = {"replica": self.replica(), "seconds": round(self.random.uniform(1.0, 4.0), 2)}
            if kind == "pause":
                fields["seconds"] = PAUSE_S[self.store]
            elif kind == "slow_disk":
                fields["ms"] = self.random.choice([20, 100, 400])
            elif kind == "clock":
                fields["ms"] = self.random.choice([-1, 1]) * self.random.choice([5_000, 65_000, 3_600_000])
            elif kind == "deploy":
                releases += 1
                fields["release"] = releases
            elif kind == "kill":
                fields["seconds"] = round(self.random.uniform(0.0, 1.5), 2)
            at += fields["seconds"] + self.random.uniform(*FAULT_PAUSE_S)
            # The load goes on for a while after the last fault.
            if at > self.seconds - 4:
                return
            self.add(at - fields["seconds"], kind, **fields)


def write(path, settings, events):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in [settings, *events]))


def read(path):
    settings, *events = [json.loads(line) for line in path.read_text().splitlines()]
    return settings, events
