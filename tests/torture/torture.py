"""Servers under seeded load and faults, and an independent model that checks what they promise: see scripts/torture."""
import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import plan
from faults import Faults, run_all
from load import Load
from model import Model
from project import Project
from servers import GONE_BOUND_S, READY_BOUND_S, ROOT, Disk, Machine, Postgres, Server, compile_library, wait_until
from standins import Service

LOAD_THREADS = 64


class World:
    """Everything that runs."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="toolwright-torture-"))
        # PostgreSQL has a user of its own.
        self.folder.chmod(0o755)
        self.servers, self.postgres, self.disk = [], None, None
        self.service = Service()

    def start(self, binary, store, replicas):
        self.library, no_library = compile_library(self.folder)
        self.disk = Disk(self.folder / "disk", 1536 if store == "postgres" else 256)
        for problem in filter(None, [no_library, self.disk.problem]):
            print(f"torture: {problem}", flush=True)
        self.project = Project(self.folder, binary, self.service.url)
        key = self.project.run("keys", "create", "driver", "--role", "admin").strip()
        self.store_url = f"sqlite:{self.disk.path / 'state.db'}"
        if store == "postgres":
            self.postgres = Postgres(self.disk.path / "postgres", Machine(self.folder, self.library, "postgres"))
            self.store_url = self.postgres.url
        for index in range(replicas):
            server = Server(index, self.project, self.store_url, Machine(self.folder, self.library, f"server-{index}"))
            server.key = key
            self.servers.append(server)
            server.start()

    def wait_ready(self):
        for server in self.servers:
            if wait_until(server.is_ready, READY_BOUND_S) is None:
                sys.exit(f"replica {server.index} does not start; its log is {server.log}")

    def can(self, kind):
        if kind == "disk_full":
            return self.disk.is_mounted
        return self.library is not None if kind in ("clock", "slow_disk") else True

    def recover(self):
        """Ends all faults, so that the run can go on after one of them has not ended as it should."""
        self.disk.free()
        for server in self.servers:
            server.machine.set()
            server.signal(signal.SIGCONT)
        if self.postgres:
            self.postgres.machine.set()
            if not self.postgres.accepts_connections():
                self.postgres.restart()
        for server in self.servers:
            if server.process.poll() is not None:
                server.start()

    def check_release(self, event):
        """New sessions have the new tools, on every replica."""
        for server in self.servers:
            name, release = f"deploy{event['n']}-{server.index}", event["release"]
            self.load.session({"n": event["n"], "session": name, "to": server.index})
            put = {"n": event["n"], "session": name, "id": "c1", "tool": "put", "value": 1, "slow": 0}
            call = self.load.call_of(put)
            answer = self.load.send_call(call, server.index, event["n"])
            if answer.kind == "ok" and answer.envelope["data"]["release"] != release:
                self.report(f"a new session on replica {server.index} has release "
                            f"{answer.envelope['data']['release']}, not {release}", [event["n"]])

    def stop(self, report):
        """All servers end when they are asked to, and leave nothing."""
        for server in self.servers:
            code = server.terminate()
            if code != 0:
                report(f"replica {server.index} was asked to stop, and ended with {code}", [])
        for server in self.servers:
            if wait_until(lambda: not server.leftovers(), GONE_BOUND_S) is None:
                report(f"processes of replica {server.index} are left: {server.leftovers()}", [])

    def clean(self, is_kept):
        for server in self.servers:
            if server.process and server.process.poll() is None:
                server.kill()
        if self.postgres:
            self.postgres.stop()
        if not self.disk:
            return
        if is_kept and not self.postgres:
            shutil.copytree(self.disk.path, self.folder / "store", dirs_exist_ok=True)
        self.disk.unmount()
        if not is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def drive(load, events, begun):
    """Carries out the load at its times, by a limited number of callers."""
    slots, threads, late = threading.Semaphore(LOAD_THREADS), [], 0.0

    def work(event):
        try:
            load.perform(event)
        finally:
            slots.release()

    for event in events:
        time.sleep(max(0.0, begun + event["at"] - time.monotonic()))
        slots.acquire()
        late = max(late, time.monotonic() - begun - event["at"])
        thread = threading.Thread(target=work, args=(event,), daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return late


def run(world, settings, events, violations):
    report = lambda text, numbers: violations.append((text, numbers))
    world.report = report
    load = world.load = Load(world, report)
    faults = Faults(world, report)
    world.wait_ready()
    begun = time.monotonic()
    fault_kinds = set(plan.FAULTS[settings["store"]])
    fault_thread = run_all(faults, [event for event in events if event["kind"] in fault_kinds], begun)
    late = drive(load, [event for event in events if event["kind"] not in fault_kinds], begun)
    fault_thread.join()
    world.recover()
    world.wait_ready()
    load.settle()
    heads = world.folder / "heads.jsonl"
    heads.write_text(world.project.run("audit", "heads", "--store", world.store_url))
    ended = load.end_sessions()
    world.stop(report)
    try:
        world.project.run("audit", "verify", "--heads", heads, "--store", world.store_url)
    except RuntimeError as error:
        report(f"the audit does not verify: {error}", [])
    model = Model(load, world.service, faults, settings["store"])
    model.check()
    export = world.project.run("audit", "export", "--store", world.store_url)
    model.check_audit(line for line in export.splitlines() if line)
    violations += model.violations
    return load, faults, model, ended, late


def summarise(settings, load, faults, model, ended, late, seconds):
    counts = model.counts
    kinds = [window[0] for window in faults.windows]
    print(f"seed {settings['seed']}, {settings['store']}, {settings['replicas']} replicas, "
          f"{settings['minutes']:g} minutes of load, {seconds / 60:.1f} in all; at most {late:.1f} s late")
    print("faults: " + (", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds))) or "none")
          + f"; ready again after at most {faults.longest[0]:.1f} s ({faults.longest[1] or 'none'})")
    statuses = sorted(load.requests.items())
    print("requests: " + ", ".join(f"{'lost' if status == 0 else status} {count}" for status, count in statuses))
    for name in sorted(counts):
        print(f"  {name}: {counts[name]}")
    print(f"  sessions ended: {ended}")


def save_answers(load, effects, path):
    with path.open("w") as file:
        for call in load.calls.values():
            answers = [vars(answer) for answer in call.answers]
            file.write(json.dumps({**vars(call), "answers": answers, "effects": effects.get(call.key, [])}) + "\n")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=5.0)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--replicas", type=int, help="servers on one PostgreSQL; 3 unless it is set, 1 on SQLite")
    parser.add_argument("--seed", type=int, help="the events are made from it; chosen at random unless it is set")
    parser.add_argument("--binary", type=Path, required=True, help="the program `toolwright`")
    parser.add_argument("--replay", type=Path, help="target/torture/SEED-STORE.jsonl of an earlier run")
    chosen = parser.parse_args()
    if chosen.store == "sqlite" and chosen.replicas not in (None, 1):
        parser.error("--replicas must be 1 with --store sqlite: one server at a time uses the file")
    return chosen


def main():
    chosen = arguments()
    if chosen.replay:
        settings, events = plan.read(chosen.replay)
    else:
        seed = random.SystemRandom().randrange(1 << 32) if chosen.seed is None else chosen.seed
        replicas = chosen.replicas or (3 if chosen.store == "postgres" else 1)
        settings = {"seed": seed, "minutes": chosen.minutes, "store": chosen.store, "replicas": replicas}
        events = plan.Planner(seed, chosen.minutes * 60, chosen.store, replicas).make()
        plan.write(ROOT / f"target/torture/{seed}-{chosen.store}.jsonl", settings, events)
    name = f"{settings['seed']}-{settings['store']}"
    print(f"torture: {len(events)} events in target/torture/{name}.jsonl", flush=True)
    begun, violations = time.monotonic(), []
    # So that nothing is left when the run is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("torture: stopped"))
    world, is_done = World(), False
    try:
        world.start(chosen.binary.resolve(), settings["store"], settings["replicas"])
        result = run(world, settings, events, violations)
        is_done = True
    finally:
        world.clean(is_kept=bool(violations) or not is_done)
    summarise(settings, *result, time.monotonic() - begun)
    save_answers(result[0], world.service.effects, ROOT / f"target/torture/{name}.answers.jsonl")
    for text, numbers in violations:
        print(f"violation (events {', '.join(map(str, numbers)) or 'none'}): {text}")
    if violations:
        print(f"the logs are in {world.folder}, the answers in target/torture/{name}.answers.jsonl")
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
