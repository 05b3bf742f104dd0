"""What is measured, as a process of its own: started in an empty folder, on a core of its own, read from outside."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.bench.driver import TOKEN
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
ENDED_WITHIN = 15.0  # seconds
TOLD = 3000  # characters of a log that a failure repeats


@dataclass(frozen=True, slots=True)
class Subject:
    """A program that answers on OneBot: its name in the report, its module and words, the tree it is run from, and the
    settings of each of its processes, beside those of all.
    """

    name: str
    words: tuple[str, ...]
    root: Path = ROOT
    parts: tuple[Mapping[str, str], ...] = ({},)


BOT = Subject("bot", ("bot", "run"))
UNJOURNALED = Subject("unjournaled", ("tests.bench.unjournaled", "run"))
FLOOR = Subject("floor", ("tests.bench.floor",))


@dataclass(frozen=True, slots=True)
class Running:
    """A started subject. Everything counts the whole trees of its processes."""

    processes: tuple[psutil.Process, ...]
    url: str

    def cpu(self) -> float:
        """Seconds of processor used so far."""
        return sum(time.clock_gettime(cpu_clock(one.pid)) for one in self._tree())

    def memory(self) -> float:
        """What is resident now, in MiB."""
        return sum(read_status(one.pid, "VmRSS") for one in self._tree())

    def peak(self) -> float:
        """What was resident at most, in MiB."""
        return sum(read_status(one.pid, "VmHWM") for one in self._tree())

    def _tree(self) -> list[psutil.Process]:
        return [one for each in self.processes for one in (each, *each.children(recursive=True))]


def cpu_clock(pid: int) -> int:
    """Linux's clock of all that a process has computed, in nanoseconds; /proc counts in steps of 10 ms.

    The number is what clock_getcpuclockid(3) gives: the inverted id, then CPUCLOCK_SCHED.
    """
    return (~pid << 3) | 2


def read_status(pid: int, field: str) -> float:
    """A size in /proc/PID/status, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


@contextmanager
def sharing_cores(bot_cpu: int | None) -> Iterator[Sequence[int]]:
    """Keep ourselves off the bot's core while the block runs; the cores for it: all of them where there is only one."""
    cores = os.sched_getaffinity(0)
    chosen = min(cores) if bot_cpu is None else bot_cpu
    rest = cores - {chosen}
    if not rest:
        yield tuple(cores)
        return
    os.sched_setaffinity(0, rest)
    try:
        yield (chosen,)
    finally:
        os.sched_setaffinity(0, cores)


@asynccontextmanager
async def running(subject: Subject, *, model: str, cores: Sequence[int]) -> AsyncIterator[Running]:
    """The subject's processes while the block runs."""
    port = free_port()
    common = settings_of(subject, model=model, port=port)
    async with AsyncExitStack() as stack:
        processes = [
            await stack.enter_async_context(process_of(subject, {**common, **part}, cores=cores))
            for part in subject.parts
        ]
        yield Running(tuple(psutil.Process(one.pid) for one in processes), url_of(port))


def url_of(port: int) -> str:
    """Where a subject waits for its OneBot server."""
    return f"ws://127.0.0.1:{port}/"


def settings_of(subject: Subject, *, model: str, port: int) -> dict[str, str]:
    """The environment of every process of a subject: nothing of it holds anything back."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(subject.root),
        "PYTHONUTF8": "1",
        "LLM_BASE_URL": model,
        "LLM_API_KEY": "sk-bench",
        "LLM_MODEL": "bench",
        "ONEBOT_HOST": "127.0.0.1",
        "ONEBOT_PORT": str(port),
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "BOT_SEND_RATE": "0",
        "BOT_PACE": "0",
        "BOT_STEER": "0",
        "BOT_LOOP": "0",
        "BOT_NEW_GROUP": "live",
        "BOT_USER_RATE": "0",
        "BOT_GROUP_RATE": "0",
        "BOT_DEBOUNCE": "0",
        "WEB_PORT": "0",
        "LOG_LEVEL": "WARNING",
    }


@asynccontextmanager
async def process_of(
    subject: Subject, environment: Mapping[str, str], *, cores: Sequence[int]
) -> AsyncIterator[Process]:
    """One process while the block runs, in an empty folder. What it logged is told where the block fails."""
    with TemporaryDirectory(prefix="bench-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *subject.words),
                cwd=folder,
                env=environment,
                stdin=DEVNULL,
                stdout=output,
                stderr=STDOUT,
            )
        os.sched_setaffinity(process.pid, cores)
        try:
            yield process
        except BaseException as error:
            error.add_note(f"{subject.name} told:\n{log.read_text('utf-8', 'replace')[-TOLD:]}")
            raise
        finally:
            await end(process)


async def end(process: Process) -> None:
    """Ask the process to end, and see that it does."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(ENDED_WITHIN):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@asynccontextmanager
async def serving_model() -> AsyncIterator[str]:
    """The model server as a process; its base url."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.model"), cwd=ROOT, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(ENDED_WITHIN):
            port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        await end(process)
