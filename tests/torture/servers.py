"""The processes under test: replicas of the server and their PostgreSQL, with what can be done to them."""
import http.client
import json
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Everything is ready again within this time after a fault, also on a busy machine.
READY_BOUND_S = 30
# What a killed server leaves behind is gone after this.
GONE_BOUND_S = 10
REQUEST_TIMEOUT_S = 100


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds):
    """How long it took; None if the condition did not become true."""
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        if condition():
            return time.monotonic() - begun
        time.sleep(0.05)
    return None


class Machine:
    """Clock and disk of a process that is started with `environment`; see preload.c. Without a compiler, neither can
    fail."""

    def __init__(self, folder, library, name):
        self.library, self.path = library, folder / f"control-{name}"
        self.path.write_bytes(bytes(16))
        self.path.chmod(0o644)
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 16)

    def environment(self):
        preload = {"LD_PRELOAD": str(self.library)} if self.library else {}
        return {**os.environ, **preload, "TORTURE_CONTROL": str(self.path)}

    def set(self, clock_ms=0, fsync_ms=0):
        struct.pack_into("<qq", self.memory, 0, clock_ms, fsync_ms)


def compile_library(folder):
    """The library of `preload.c`, or why there is none."""
    library = folder / "preload.so"
    if not shutil.which("cc"):
        return None, "no C compiler: the clock does not jump and the disk is not slow"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("preload.c"), "-ldl"]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if compiled.returncode != 0:
        return None, f"preload.c does not compile: {compiled.stderr[-500:]}"
    library.chmod(0o755)
    return library, None


class Disk:
    """A small file system in memory, which can be filled."""

    def __init__(self, path, megabytes):
        path.mkdir()
        self.path, self.ballast = path, path / "ballast"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", path],
                                 capture_output=True, text=True)
        self.is_mounted = mounted.returncode == 0
        self.problem = None if self.is_mounted else \
            f"the disk is never full, since a file system cannot be mounted: {mounted.stderr.strip()}"

    def fill(self):
        with self.ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def free(self):
        self.ballast.unlink(missing_ok=True)

    def unmount(self):
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.path], check=False)


class Postgres:
    def __init__(self, folder, machine):
        self.folder, self.machine = folder, machine
        self.url = self.script("start", folder).strip()

    def script(self, *arguments):
        return subprocess.run([ROOT / "scripts/postgres", *arguments], check=True, stdout=subprocess.PIPE, text=True,
                              env=self.machine.environment()).stdout

    def process(self):
        try:
            return int((self.folder / "data/postmaster.pid").read_text().split()[0])
        except (OSError, IndexError, ValueError):
            return None

    def accepts_connections(self):
        try:
            socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(self.url).port), timeout=2).close()
            return True
        except OSError:
            return False

    def kill(self):
        """kill -9 of the main process; the others notice, and end."""
        process = self.process()
        if process:
            os.kill(process, signal.SIGKILL)

    def restart(self):
        """Stops it at once, if it runs, and starts it. The processes of a killed one may take a moment to end."""
        for attempt in range(20):
            try:
                self.script("restart", self.folder)
                return
            except subprocess.CalledProcessError:
                if attempt == 19:
                    raise
                time.sleep(0.5)

    def stop(self):
        subprocess.run([ROOT / "scripts/postgres", "stop", self.folder], check=False, stderr=subprocess.DEVNULL)


class Disconnected(Exception):
    """No whole response came: whether the request was carried out is not known."""


def read_until(response, deadline):
    """The body. A stream that keeps its connection alive, but does not end, is given up."""
    text = b""
    while chunk := response.read1(1 << 16):
        text += chunk
        if time.monotonic() > deadline:
            raise Disconnected("the response does not end")
    return text


class Server:
    """A replica. It keeps its port when it is started again."""

    def __init__(self, index, project, store_url, machine):
        self.index, self.project, self.store_url, self.machine = index, project, store_url, machine
        self.port, self.log = free_port(), project.folder / f"server-{index}.log"
        self.process, self.past, self.key = None, [], None

    def start(self):
        command = [self.project.binary, "serve", "--artifact", self.project.artifact, "--listen",
                   f"127.0.0.1:{self.port}", "--store", self.store_url]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.project.folder, stdout=subprocess.DEVNULL, stderr=log,
                                            env=self.machine.environment(), start_new_session=True)
        self.past.append(self.process.pid)

    def request(self, method, path, body=None, timeout=REQUEST_TIMEOUT_S):
        """Status and body of the response; a body that is not JSON is text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = read_until(response, time.monotonic() + timeout).decode()
        except (OSError, http.client.HTTPException) as error:
            raise Disconnected(repr(error)) from error
        finally:
            connection.close()
        try:
            return response.status, json.loads(text) if text else None
        except ValueError:
            return response.status, text

    def is_ready(self):
        try:
            return self.request("GET", "/readyz", timeout=5)[0] == 200
        except Disconnected:
            return False

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        """SIGTERM; the exit code, None if it does not end."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            return None

    def lines(self, text):
        """How many lines of the log contain a text."""
        return sum(text in line for line in self.log.read_text(errors="replace").splitlines())

    def leftovers(self, but=None):
        """Processes of runs of this replica, except those of one run."""
        marker, found = f"TORTURE_CONTROL={self.machine.path}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                session, state = int(fields[3]), fields[0]
                is_ours = session in self.past or marker in (folder / "environ").read_bytes().split(b"\0")
            except (OSError, IndexError):
                continue
            if is_ours and state != "Z" and session != but:
                found.append(int(folder.name))
        return found
