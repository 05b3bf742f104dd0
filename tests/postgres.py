"""A PostgreSQL of the tests' own, from Debian's packages, which can be stopped as by a crash and begun again.

The one that FROST_TEST_POSTGRES names others use as well: nobody stops that one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ports import free_ports

NO_ENGINES = "FROST_TEST_NO_ENGINES"  # as on a machine where nothing but Python and make is installed
INSTALLED = Path("/usr/lib/postgresql")
WITHIN = 50  # seconds in which it starts, or stops
ACCOUNT = "postgres"  # as root it refuses to run


def programs() -> Path | None:
    """Where those of the newest version are: Debian keeps them off the PATH."""
    if os.environ.get(NO_ENGINES):
        return None
    found = sorted(INSTALLED.glob("*/bin/initdb"), key=lambda one: float(one.parts[-3]))
    near = shutil.which("initdb")
    return found[-1].parent if found else Path(near).resolve().parent if near else None


def why_not() -> str:
    """Why there is none; empty where there can be one."""
    if os.environ.get(NO_ENGINES):
        return f"{NO_ENGINES} is set"
    return "" if programs() else "PostgreSQL is not installed (Debian: postgresql)"


@dataclass(frozen=True)
class Postgres:
    """A server with its data in a folder."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://frost@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """Its data, with nothing in it."""
        self._run("initdb", "-U", "frost", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")

    def start(self) -> None:
        """Begin, and return once it can be talked with, what a crash left being mended."""
        own = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-l", str(self.folder / "log"), "-t", str(WITHIN), "-o", f"{own} -c fsync=off", "start")

    def kill(self) -> None:
        """End it as a crash does: nothing is written down, all connections break."""
        self._run("pg_ctl", "-m", "immediate", "-t", str(WITHIN), "stop")

    def _run(self, program: str, *words: str) -> None:
        """As whoever owns the data. Raises CalledProcessError."""
        there = programs()
        assert there is not None, why_not()
        whose = ("runuser", "-u", ACCOUNT, "--") if os.geteuid() == 0 else ()
        command = (*whose, str(there / program), "-D", str(self.folder / "data"), *words)
        with (self.folder / "told").open("ab") as told:
            subprocess.run(command, check=True, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=told, stderr=told)


@contextmanager
def running() -> Iterator[Postgres]:
    """A server while the block runs; nothing is left of it."""
    with TemporaryDirectory(prefix="postgres-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, ACCOUNT)
        server = Postgres(folder, *free_ports(1))
        server.make()
        server.start()
        try:
            yield server
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.kill()
