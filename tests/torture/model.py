"""The independent model: what may have happened, from what callers sent and got, what tools did, and when faults were.
Every rule that is broken is a violation with the numbers of its events."""
import collections
import json

from plan import BUDGET

RUNS_ONCE = {"note", "compose", "pay", "report"}
TASKS = {"report", "render"}
# Faults that a process survives.
OUTAGES = {"pause", "kill_postgres", "stop_postgres", "disk_full", "slow_disk"}
# Answers that say nothing about the call.
WITHOUT_RESULT = ("lost", "try again", "http 503", "http 429")


def message_of(answer):
    return ((answer.envelope or {}).get("error") or {}).get("message", "")


class Model:
    def __init__(self, load, service, faults, store):
        self.load, self.effects, self.faults, self.store = load, service.effects, faults, store
        self.violations, self.counts = [], collections.Counter()

    def violation(self, text, events):
        self.violations.append((text, sorted({event for event in events if event})))

    def check(self):
        for call in self.load.calls.values():
            self.call = call
            self.ran = self.effects.get(call.key, [])
            self.counts["calls"] += 1
            self.check_effects()
            self.check_answers()
            if call.tool == "pay":
                self.check_confirmation()
            if call.tool in TASKS:
                self.check_task()
            if call.tool == "compose":
                self.check_inner()
            self.check_ended_session()
        for chat in self.load.chats.values():
            self.check_chat(chat)
        self.check_budgets()
        self.check_releases()
        self.check_keys()
        self.counts["effects"] = sum(map(len, self.effects.values()))

    def broken(self, text):
        call = self.call
        answers = [(a.event, a.replica, a.value, a.kind, a.via, round(a.begun, 2), round(a.ended, 2),
                    (a.envelope or {}).get("error", {}).get("message")) for a in call.answers]
        ran = [(e["nonce"], e.get("value"), round(e["time"], 2)) for e in self.ran]
        decisions = f", decisions {call.decisions}" if call.decisions else ""
        evidence = f"\n    answers {answers}\n    effects {ran}{decisions}"
        self.violation(f"{call.key} ({call.tool}): {text}{evidence}", call.events)

    def check_effects(self):
        if self.call.tool in RUNS_ONCE and len(self.ran) > 1:
            self.broken(f"ran {len(self.ran)} times")
        if len({effect.get("value") for effect in self.ran}) > 1:
            self.broken("ran with different arguments")
        if self.call.tool not in RUNS_ONCE and len(self.ran) > 1:
            self.counts["idempotent calls that ran again"] += 1
        keys = {(effect.get("idempotencyKey"), effect.get("executionId")) for effect in self.ran}
        if len(keys) > 1:
            self.broken(f"has several ids for other services: {keys}")

    def during_fault(self, begin, end):
        return self.faults.overlaps(begin, end)

    def check_answers(self):
        call, first_ok = self.call, None
        begun = min(answer.begun for answer in call.answers) if call.answers else 0
        for answer in sorted(call.answers, key=lambda answer: answer.ended):
            self.counts[f"answers: {answer.kind}"] += 1
            if answer.kind == "ok":
                self.check_ok(answer, first_ok)
                first_ok = first_ok or answer
            elif answer.kind in ("in doubt", "partial"):
                self.check_doubt(answer, begun)
            elif answer.kind not in WITHOUT_RESULT:
                self.check_refusal(answer, begun)
            if first_ok and answer.begun > first_ok.ended:
                self.check_later(answer, first_ok)
        kinds = {answer.kind for answer in call.answers}
        doubtful = bool(kinds & {"in doubt", "partial"})
        self.counts["calls ok"] += first_ok is not None
        self.counts["calls in doubt"] += doubtful and first_ok is None
        self.counts["calls in doubt, and known later"] += doubtful and first_ok is not None
        self.counts["calls refused"] += not doubtful and first_ok is None
        if first_ok and call.tool not in TASKS and not self.ran:
            self.broken("was answered ok, and has no effect")
        last = call.answers[-1] if call.answers else None
        if last and last.kind.startswith("refused") and last.kind != "refused CONFLICT" and call.tool in RUNS_ONCE:
            if self.ran and not doubtful:
                self.broken("was refused without side effects, and ran")

    def check_ok(self, answer, first):
        call = self.call
        if call.tool not in TASKS:
            data = answer.envelope["data"]
            if data["nonce"] not in [effect["nonce"] for effect in self.ran]:
                self.broken("was answered with a result that no run has returned")
            if call.tool != "pay" and data["value"] != answer.value:
                self.broken(f"was sent with {answer.value}, and answered for {data['value']}")
        if first and answer.text() != first.text():
            # Results of reads are written soon after, so that a fault may take them.
            if call.tool == "look" and self.during_fault(first.begun, answer.ended):
                self.counts["reads that ran again after their answer"] += 1
            else:
                self.broken(f"has two results:\n    {first.text()}\n    {answer.text()}")

    def check_later(self, answer, first):
        """An answer to a request that was sent after the call was acknowledged."""
        same = answer.value == first.value or self.call.tool == "pay"
        allowed = WITHOUT_RESULT + (("ok",) if same else ("refused CONFLICT",))
        is_read_again = self.call.tool == "look" and self.during_fault(first.begun, answer.ended)
        if answer.kind not in allowed and not is_read_again:
            self.broken(f"was acknowledged, and later answered with {answer.kind} (value {answer.value})")
        self.counts["conflicts"] += not same and answer.kind == "refused CONFLICT"
        self.counts["replays"] += answer.kind == "ok"

    def check_doubt(self, answer, begun):
        message = message_of(answer)
        if not self.during_fault(begun, answer.ended):
            self.broken(f"is {answer.kind} without a fault: {message}")
        if self.call.tool not in RUNS_ONCE and "could not be recorded" not in message and answer.kind == "in doubt":
            self.broken(f"may be repeated, and is in doubt: {message}")
        # Who is taken for dead may still run what it has begun: it stood still, or had lost its store.
        later = [effect["time"] for effect in self.ran if effect["time"] > answer.ended]
        if later and "interrupted" in message and not self.faults.overlaps(begun, max(later), OUTAGES):
            self.broken("was in doubt, and ran after that")

    def check_refusal(self, answer, begun):
        call, kind = self.call, answer.kind
        ended = self.load.ended_requests.get(call.session)
        expected = {
            "refused CONFLICT": len({other.value for other in call.answers}) > 1,
            "refused BUDGET_EXCEEDED": call.tool == "look",
            "refused SESSION_INACTIVE": ended is not None and answer.ended > ended,
            "refused PERMANENT": call.tool == "pay" and any(row[0] == "reject" for row in call.decisions),
            "asked": call.tool == "pay",
            "http 409": call.tool == "pay" and answer.via == "approve",
            "http 500": self.during_fault(begun, answer.ended),
            # A read that ran, and whose result the store has not taken.
            "refused INTERNAL": call.tool == "look" and "could not be recorded" in message_of(answer)
                                and self.during_fault(begun, answer.ended),
        }
        if not expected.get(kind):
            self.broken(f"was answered with {kind}, which nothing explains: {answer.envelope}")

    def check_confirmation(self):
        sent = {row[0] for row in self.call.decisions}
        done = {row[0] for row in self.call.decisions if row[1] != "lost" and not row[1].startswith("http")}
        approved = any(row[0] == "approve" and row[1] in ("ok", "in doubt", "partial") for row in self.call.decisions)
        if self.ran and "approve" not in sent:
            self.broken("ran without an approval")
        if "reject" in done and (self.ran or approved):
            self.broken("was rejected, and ran or was approved")
        if self.call.answer in ("approve", "approve_twice", "edit") and self.call.answers[-1].kind == "asked":
            self.broken("was approved, and waits for an approval")
        edited = [row[2] for row in self.call.decisions if row[2] != self.call.value]
        if edited and self.ran and self.ran[0]["value"] != edited[0]:
            self.broken("ran with other arguments than those that were approved")
        self.counts["approved calls that ran"] += bool(self.ran)
        self.counts["rejected calls"] += "reject" in done

    def check_task(self):
        call, task = self.call, self.call.task
        if task is None:
            # Refused, or whether it was stored is not known: the rules of all calls hold.
            return
        status, failure = task["status"], (task.get("envelope") or {}).get("error")
        self.counts[f"tasks {status}"] += 1
        begun = call.answers[0].begun
        if status == "completed" and not self.ran:
            self.broken("its task was completed without an effect")
        if status == "in_doubt" and (call.tool not in RUNS_ONCE or not self.faults.windows):
            self.broken(f"its task must not be in doubt: {task}")
        if status == "failed" and not self.during_fault(begun, call.answers[-1].ended):
            self.broken(f"its task failed without a fault: {failure}")
        if status in ("failed", "cancelled") and self.ran and not failure["partialSideEffects"]:
            if call.tool in RUNS_ONCE:
                self.broken(f"its task ended without side effects, and ran: {failure}")
        if status in ("queued", "running"):
            self.broken("its task has not ended")

    def check_inner(self):
        inner = self.effects.get(f"{self.call.key}/inner", [])
        if len(inner) > 1:
            self.broken(f"the call that it made ran {len(inner)} times")
        for answer in self.call.answers:
            result = answer.envelope["data"]["inner"] if answer.kind == "ok" else None
            if isinstance(result, int) and [effect["nonce"] for effect in inner] != [result]:
                self.broken(f"the call that it made was answered with {result}, and ran as {inner}")

    def check_ended_session(self):
        ended = self.load.ended.get(self.call.session)
        if ended and self.call.answers and min(answer.begun for answer in self.call.answers) > ended:
            self.counts["calls of sessions that had ended"] += 1
            if self.ran or any(answer.kind == "ok" for answer in self.call.answers):
                self.broken("was sent after the end of its session, and ran")

    def check_budgets(self):
        turns, looks = collections.defaultdict(set), collections.Counter()
        for call in self.load.calls.values():
            if call.turn:
                own = min(event for event in call.events if event)
                if any(answer.kind == "ok" and answer.event == own for answer in call.answers):
                    turns[call.turn, own].add(call.key)
                looks[call.session] += call.key in self.effects
        for (turn, event), answered in turns.items():
            if len(answered) > BUDGET:
                self.violation(f"turn {turn} has {len(answered)} retrieval calls, at most {BUDGET} are allowed: "
                               f"{sorted(answered)}", [event])
        for session, count in looks.items():
            limit = BUDGET * (self.load.turn_requests[session] + 1)
            if count > limit:
                text = f"session {session} has {count} retrieval calls that ran, at most {limit} are allowed"
                self.violation(text, [])
        self.counts["turns with retrieval"] = len(turns)
        self.counts["turns at their budget"] = sum(len(answered) == BUDGET for answered in turns.values())

    def check_releases(self):
        """A session stays on the tools that it began with."""
        releases = collections.defaultdict(dict)
        for call in self.load.calls.values():
            for effect in self.effects.get(call.key, []):
                if "release" in effect:
                    releases[call.session].setdefault(effect["release"], call)
        for session, found in releases.items():
            if len(found) > 1:
                events = [event for call in found.values() for event in call.events]
                self.violation(f"session {session} ran the tools of releases {sorted(found)}", events)

    def check_keys(self):
        owners = {}
        for key, ran in self.effects.items():
            known = key.removesuffix("/inner")
            if known not in self.load.calls and known not in self.load.chats:
                self.violation(f"{key} ran, and was never sent", [])
            for effect in ran:
                other = owners.setdefault(effect.get("idempotencyKey") or key, key)
                if other != key:
                    self.violation(f"{key} and {other} have the same idempotency key", [])

    def check_chat(self, chat):
        ran = self.effects.get(chat.key, [])
        self.counts["chat messages"] += 1
        self.counts["chat messages whose write failed or is in doubt"] += chat.state.startswith("error")
        text = None
        if len(ran) > 1:
            text = f"its write ran {len(ran)} times"
        elif chat.state == "gone":
            text = "the server has accepted it, and it is not in the conversation"
        elif chat.state == "output-available" and len(ran) != 1:
            text = f"its write is reported as done, and ran {len(ran)} times"
        elif not chat.has_text:
            text = f"its turn does not end; {chat.state}; {chat.problem}"
        if text:
            self.violation(f"chat message {chat.key}: {text}", [chat.event])

    def check_audit(self, lines):
        """Each acknowledged write is in the audit once."""
        called = collections.Counter()
        for line in lines:
            entry = json.loads(line)
            entry = entry.get("entry", entry)
            if isinstance(entry, str):
                entry = json.loads(entry)
            if entry["event"] == "called":
                called[entry.get("session") or entry.get("sessionId"), entry.get("execution_id") or
                       entry.get("executionId")] += 1
            self.counts["audit entries"] += 1
            self.counts["audit gaps"] += entry["event"] == "gap"
        for self.call in self.load.calls.values():
            call, self.ran = self.call, self.effects.get(self.call.key, [])
            if call.tool == "look":
                continue
            is_task = call.tool in TASKS
            was_ok = (call.task or {}).get("status") == "completed" if is_task else \
                any(answer.kind == "ok" for answer in call.answers)
            rows = called[call.session, call.task["taskId"] if is_task and call.task else call.id]
            if (was_ok and rows != 1) or rows > 1:
                self.broken(f"is {rows} times in the audit")
