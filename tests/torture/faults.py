"""Carries out the faults of the plan, one after the other, and checks that everything is ready again soon after."""
import signal
import threading
import time

from servers import GONE_BOUND_S, READY_BOUND_S, wait_until

# How long a fault may show after its end.
AFTER_EFFECTS_S = {"sqlite": 2, "postgres": 17}


class Faults:
    def __init__(self, world, report):
        self.world, self.report = world, report
        # (kind, event, begin, end): from the fault until all is ready again.
        self.windows, self.longest = [], (0.0, "")

    def run(self, event):
        kind, begun = event["kind"], time.monotonic()
        window = [kind, event["n"], begun, None]
        self.windows.append(window)
        if not self.world.can(kind):
            return self.windows.remove(window)
        try:
            getattr(self, kind)(event)
            self.wait_ready(event)
        except Exception as error:
            self.report(f"the fault {kind} could not be carried out: {error!r}", [event["n"]])
            self.world.recover()
        window[3] = time.monotonic()
        return None

    def wait_ready(self, event):
        for server in self.world.servers:
            took = wait_until(server.is_ready, READY_BOUND_S)
            if took is None:
                text = f"replica {server.index} is not ready {READY_BOUND_S} s after {event['kind']}"
                self.report(text, [event["n"]])
                self.world.recover()
            elif took > self.longest[0]:
                self.longest = (took, event["kind"])

    def target(self, event):
        return self.world.servers[event["replica"] % len(self.world.servers)]

    def overlaps(self, begin, end, kinds=None):
        """Whether a fault (of some kinds) was there between two moments, or shortly before: the lease of a replica and
        the retries of its store end later."""
        slack = AFTER_EFFECTS_S["postgres" if self.world.postgres else "sqlite"]
        return any(window[2] <= end and begin <= (window[3] or time.monotonic()) + slack
                   for window in self.windows if kinds is None or window[0] in kinds)

    def kill(self, event):
        server = self.target(event)
        server.kill()
        self.check_gone(server, event)
        time.sleep(event["seconds"])
        server.start()

    def check_gone(self, server, event):
        if wait_until(lambda: not server.leftovers(), GONE_BOUND_S) is None:
            self.report(f"processes of a killed server are left: {server.leftovers()}", [event["n"]])

    def kill_again(self, event):
        """Kills a server, and again while it starts."""
        server = self.target(event)
        server.kill()
        server.start()
        time.sleep(event["seconds"] / 10)
        server.kill()
        self.check_gone(server, event)
        server.start()

    def restart(self, event):
        server = self.target(event)
        code = server.terminate()
        if code != 0:
            self.report(f"a server that was asked to stop ended with {code}", [event["n"]])
            server.kill()
        self.check_gone(server, event)
        server.start()

    def kill_postgres(self, event):
        self.world.postgres.kill()
        time.sleep(event["seconds"])
        self.world.postgres.restart()

    def stop_postgres(self, _event):
        self.world.postgres.restart()

    def pause(self, event):
        server = self.target(event)
        server.signal(signal.SIGSTOP)
        time.sleep(event["seconds"])
        server.signal(signal.SIGCONT)

    def disk_full(self, event):
        self.world.disk.fill()
        time.sleep(event["seconds"])
        self.world.disk.free()
        # PostgreSQL ends when it cannot write its log; an operator starts it again.
        if self.world.postgres and wait_until(self.world.postgres.accepts_connections, 5) is None:
            self.world.postgres.restart()

    def slow_disk(self, event):
        machines = [self.world.postgres.machine] if self.world.postgres else \
            [server.machine for server in self.world.servers]
        for machine in machines:
            machine.set(fsync_ms=event["ms"])
        time.sleep(event["seconds"])
        for machine in machines:
            machine.set()

    def clock(self, event):
        machine = self.target(event).machine
        machine.set(clock_ms=event["ms"])
        time.sleep(event["seconds"])
        machine.set()

    def deploy(self, event):
        """A new release of the tools on every replica, under load."""
        self.world.project.install(event["release"])
        for server in self.world.servers:
            before = server.lines("reloaded")
            server.signal(signal.SIGHUP)
            if wait_until(lambda: server.lines("reloaded") > before, READY_BOUND_S) is None:
                self.report(f"replica {server.index} has not loaded release {event['release']}", [event["n"]])
        self.world.check_release(event)


def run_all(faults, events, begun):
    """A thread that carries out the faults at their times."""

    def work():
        for event in events:
            time.sleep(max(0.0, begun + event["at"] - time.monotonic()))
            faults.run(event)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
