"""A RabbitMQ of the tests' own, from Debian's package; without it, tests that need one are skipped.

FROST_TEST_BROKER names another that may be used, as amqp://127.0.0.1/; everything called frost.* on it is deleted.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.ports import free_ports
from tests.postgres import NO_ENGINES

PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
CONTROL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
STARTED_WITHIN = 50.0  # seconds
GREETING = b"AMQP\x00\x00\x09\x01"


def why_not() -> str:
    """Why there is none; empty where there can be one."""
    if os.environ.get(NO_ENGINES):
        return f"{NO_ENGINES} is set"
    if os.environ.get("FROST_TEST_BROKER") or Path(PROGRAM).exists():
        return ""
    return "RabbitMQ is not installed (Debian: rabbitmq-server)"


@dataclass
class Rabbit:
    """A broker as processes of its own, which can be stopped hard and begun again on what it kept."""

    folder: Path
    ports: list[int] = field(default_factory=lambda: free_ports(3))
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.ports[0]}/"

    @property
    def pid(self) -> int:
        """Of the first of its processes. Raises RuntimeError while there is none."""
        if self._process is None:
            raise RuntimeError("it does not run")
        return self._process.pid

    def start(self) -> None:
        """Begin, and return once it can be talked with. Raises RuntimeError if it may not, or does not."""
        if os.environ.get(NO_ENGINES):
            raise RuntimeError(why_not())
        port, apart, mapper = self.ports
        self.folder.mkdir(exist_ok=True)
        (self.folder / "plugins").write_text("[].")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"frost{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(apart),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "kept"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
        }
        with (self.folder / "told").open("ab") as told:
            self._process = subprocess.Popen(
                [PROGRAM], env=environment, stdin=subprocess.DEVNULL, stdout=told, stderr=told, start_new_session=True
            )
        deadline = time.monotonic() + STARTED_WITHIN
        while not self._talks():
            if time.monotonic() > deadline or self._process.poll() is not None:
                told_last = (self.folder / "told").read_text("utf-8", "replace")[-2000:]
                self.kill()
                raise RuntimeError(f"RabbitMQ did not start: {told_last}")
            time.sleep(0.1)

    def _talks(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.ports[0]), 1) as line:
                line.settimeout(2)
                line.sendall(GREETING)
                return bool(line.recv(8))
        except OSError:
            return False

    def alarm(self, *, on: bool) -> None:
        """Let it have too little memory by far, or enough again."""
        share = "0.000001" if on else "0.6"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"frost{self.ports[0]}@localhost",
            "ERL_EPMD_PORT": str(self.ports[2]),
        }
        words = (CONTROL, "set_vm_memory_high_watermark", share)
        subprocess.run(words, env=environment, check=True, capture_output=True, timeout=STARTED_WITHIN)

    def kill(self) -> None:
        """End it as a power cut does."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def running(folder: Path) -> Iterator[Rabbit]:
    """A broker while the block runs; nothing is left of it."""
    rabbit = Rabbit(folder)
    # Erlang's registry of names: the broker would start one that outlives it.
    names = {"ERL_EPMD_PORT": str(rabbit.ports[2]), "ERL_EPMD_ADDRESS": "127.0.0.1"}
    mapper = subprocess.Popen(["epmd"], env={"PATH": os.environ["PATH"]} | names)
    try:
        rabbit.start()
        yield rabbit
    finally:
        rabbit.kill()
        mapper.kill()
        mapper.wait()
        shutil.rmtree(folder, ignore_errors=True)
