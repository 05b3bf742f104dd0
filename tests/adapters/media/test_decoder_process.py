"""The process that unpacks pictures, a real one: what it shows and refuses, how it ends, that nothing is left."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest
from PIL import Image

from adapters.media.decoder_process import DecoderProcess
from adapters.media.folder import MediaFolder
from adapters.media.landlock import landlock_version
from frostagent.types.errors import MediaError
from tests.adapters.media import hostile
from tests.cases import each_case
from tests.fakes import until

LONG = 60.0  # seconds; more than any of this takes, however busy the machine is
SMALL = 2000  # bytes; larger pictures are what the stand-ins below stumble over
HONEST, LARGE = hostile.encoded("PNG"), hostile.noise(60, "PNG")

# The real program, but for what it does with large pictures.
STAND_IN = """
import os, sys
from adapters.media import decoder
real = decoder.write_jpeg
def write(data):
    if len(data) > 2000:
        {large}
    return real(data)
decoder.write_jpeg = write
decoder.main()
"""
HANG = "while True: pass"

Make: TypeAlias = Callable[..., DecoderProcess]


def standing_in(large: str, *, idle: float = 60) -> Sequence[str]:
    return sys.executable, "-P", "-c", STAND_IN.format(large=large), str(idle), str(os.getpid())


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes a decoder; closes every one it made."""
    async with AsyncExitStack() as stack:

        def decoder(**options: object) -> DecoderProcess:
            made = DecoderProcess(**{"seconds": LONG, "patience": LONG, **options})  # type: ignore[arg-type]  # as given
            stack.push_async_callback(made.aclose)
            return made

        yield decoder


def is_red(jpeg: bytes) -> bool:
    picture = Image.open(io.BytesIO(jpeg), formats=("JPEG",))
    dot = picture.getpixel((5, 5))
    assert isinstance(dot, tuple)
    return picture.size == (hostile.SIDE, hostile.SIDE) and dot[0] > 240 and max(dot[1:]) < 20


async def why(decoding: Awaitable[bytes]) -> str:
    with pytest.raises(MediaError) as caught:
        await decoding
    return str(caught.value)


def is_gone(pid: int | None) -> bool:
    """Not there any more, not even as a zombie."""
    assert pid is not None
    return not psutil.pid_exists(pid)


def is_dead(pid: int) -> bool:
    """Not running; whoever took it over from its parent may not have buried it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# --- what is shown, what is refused ---------------------------------------------------------------


async def test_it_is_started_when_it_is_first_needed_and_stays_for_the_next(make: Make) -> None:
    decoder = make()
    assert decoder.pid is None
    assert is_red(await decoder.decode(HONEST))
    pid = decoder.pid
    assert pid is not None
    for kind in ("JPEG", "PNG", "GIF", "WEBP", "BMP"):
        assert is_red(await decoder.decode(hostile.encoded(kind)))
    assert decoder.pid == pid


async def test_what_is_no_picture_that_is_read_starts_nothing(make: Make) -> None:
    decoder = make()
    told = {name: await why(decoder.decode(data())) for name, data in hostile.FOREIGN.items()}
    assert [name for name, text in told.items() if "it is no picture but " not in text] == []
    assert told["TIFF in a .jpg"] == "it is no picture but TIFF"
    assert told["web page"] == "it is no picture but a web page"
    assert decoder.pid is None


async def test_after_each_harmful_picture_an_honest_one_is_shown(make: Make) -> None:
    decoder = make()
    for name, data in hostile.HARMFUL.items():
        assert await why(decoder.decode(data())), name
        assert is_red(await decoder.decode(HONEST)), name


async def test_after_each_tiring_picture_an_honest_one_is_shown_by_the_same_process(make: Make) -> None:
    decoder = make()
    assert is_red(await decoder.decode(HONEST))
    pid = decoder.pid
    for name, data in hostile.TIRING.items():
        with suppress(MediaError):
            assert (await decoder.decode(data())).startswith(b"\xff\xd8\xff"), name
        assert is_red(await decoder.decode(HONEST)), name
    assert decoder.pid == pid


async def test_pictures_asked_for_at_once_each_get_their_own(make: Make) -> None:
    decoder = make()
    sides = range(20, 40)
    async with asyncio.TaskGroup() as group:
        asked = {side: group.create_task(decoder.decode(hostile.encoded("PNG", side=side))) for side in sides}
    for side, task in asked.items():
        assert Image.open(io.BytesIO(task.result())).size == (side, side)


# --- what goes wrong ------------------------------------------------------------------------------


async def test_what_takes_too_long_is_ended_and_nothing_is_left_of_it(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    decoder = make(command=standing_in(HANG), seconds=0.5)
    async with asyncio.TaskGroup() as group:
        refused = group.create_task(why(decoder.decode(LARGE)))
        await until(lambda: decoder.pid)
        pid = decoder.pid
    assert refused.result() == "it was not unpacked in 0.5 s"
    assert decoder.pid is None
    assert is_gone(pid)
    assert "not unpacked in 0.5 s" in caplog.text


async def test_after_one_that_hung_the_next_has_a_new_process(make: Make) -> None:
    decoder = make(command=standing_in(HANG))
    assert is_red(await decoder.decode(HONEST))
    pid = decoder.pid
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):  # whoever asked does not wait any longer
            await decoder.decode(LARGE)
    assert is_gone(pid)
    assert is_red(await decoder.decode(HONEST))
    assert decoder.pid != pid


@pytest.mark.parametrize(
    ("large", "said"),
    [
        ("os.kill(os.getpid(), 11)", "ended the process that did it (-11)"),
        ("os._exit(3)", "ended the process that did it (3)"),
        ("bytearray(2**30)", "ended the process that did it (1)"),
        ("os.write(1, b'\\xff' * 9)", "ended the process that did it (-9)"),
    ],
    ids=["a crash", "an exit", "too much memory", "an answer without end"],
)
async def test_after_one_that_broke_the_process_the_next_has_a_new_one(make: Make, large: str, said: str) -> None:
    decoder = make(command=standing_in(large))
    assert is_red(await decoder.decode(HONEST))
    pid = decoder.pid
    assert said in await why(decoder.decode(LARGE))
    assert is_gone(pid)
    assert is_red(await decoder.decode(HONEST))


SPEAKS_ON = """
import os, struct, sys
size = struct.unpack(">I", sys.stdin.buffer.read(4))[0]
sys.stdin.buffer.read(size)
os.write(1, {answer!r})
while True:
    os.write(1, {more!r})
    {then}
"""


@each_case(
    ("answer", "more", "then"),
    [
        (b"\0\0\0\0\2ok", b"x" * 65536, "pass"),  # without end
        (b"\0\0\0\0\2ok", b"\0\0\0\0\4fake", "sys.stdin.buffer.read(1)"),  # the next one's answer
        (b"\0\0\0\0\2ok\0\0\0\0\4fake", b"", "sys.stdin.buffer.read(1)"),
    ],
)
async def test_one_that_speaks_unasked_is_ended_before_the_next(answer: bytes, more: bytes, then: str) -> None:
    script = SPEAKS_ON.format(answer=answer, more=more, then=then)
    decoder = DecoderProcess(command=(sys.executable, "-c", script), seconds=LONG, patience=LONG)
    try:
        for _ in range(2):
            assert await decoder.decode(HONEST) == b"ok"
            await until(lambda: decoder.pid is None)
    finally:
        await decoder.aclose()


async def test_a_refusal_comes_in_bounded_words(make: Make) -> None:
    decoder = make(command=standing_in("raise decoder.MediaError('x' * 5000)"))
    assert await why(decoder.decode(LARGE)) == "x" * 200


async def test_pictures_behind_one_that_hangs_do_not_wait_for_ever(make: Make) -> None:
    decoder = make(command=standing_in(HANG), patience=0.5)
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(why(decoder.decode(data))) for data in (LARGE, HONEST, HONEST)]
    assert {task.result() for task in waiting} == {"0.5 s were not enough for it and those before it"}


async def test_while_pictures_hang_files_are_sent(make: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")
    decoder, folder = make(command=standing_in(HANG)), MediaFolder(tmp_path, web=None)
    async with asyncio.TaskGroup() as group:
        hanging = [group.create_task(decoder.decode(LARGE)) for _ in range(50)]
        await until(lambda: decoder.pid)
        for _ in range(20):
            assert (await folder.attach("file", path="a.txt")).name == "a.txt"
        assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()


async def test_one_that_never_stays_is_told_and_is_not_started_for_ever(make: Make, tmp_path: Path) -> None:
    ledger = tmp_path / "starts"
    script = f"open({str(ledger)!r}, 'a').write('started ')"
    decoder = make(command=(sys.executable, "-c", script))
    assert await why(decoder.decode(HONEST)) == "the process that unpacks pictures does not stay"
    assert ledger.read_text() == "started started "


async def test_one_that_cannot_be_started_is_told(make: Make, tmp_path: Path) -> None:
    decoder = make(command=(str(tmp_path / "nothing"),))
    assert await why(decoder.decode(HONEST)) == (
        "the process that unpacks pictures cannot be started (No such file or directory)"
    )
    assert decoder.pid is None


# --- its life -------------------------------------------------------------------------------------


async def test_it_ends_when_it_is_idle_and_is_started_again(make: Make) -> None:
    decoder = make(idle=0.05)
    for _ in range(3):
        assert is_red(await decoder.decode(HONEST))
        await until(lambda: decoder.pid is None)


async def test_it_is_closed_with_the_bot_and_opens_again_when_needed(make: Make) -> None:
    decoder = make()
    await decoder.aclose()
    for _ in range(2):
        assert is_red(await decoder.decode(HONEST))
        pid = decoder.pid
        await decoder.aclose()
        assert decoder.pid is None
        assert is_gone(pid)


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_it_inherits_no_secret_and_no_open_file(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-a-secret")
    decoder = make()
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        await decoder.decode(HONEST)
    proc = Path(f"/proc/{decoder.pid}")
    names = {line.partition("=")[0] for line in (proc / "environ").read_text().split("\0") if line}
    assert names == {"LANG", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
    assert "secret" not in (proc / "environ").read_text() + (proc / "cmdline").read_text()
    assert not any("open" in str(link.readlink()) for link in (proc / "fd").iterdir())
    assert os.getpgid(decoder.pid or 0) == decoder.pid, "a Ctrl+C in the terminal is not for it"


REACHES = """
import os, socket, subprocess
def tried():
    yield "reads", lambda: open({secret!r}).read()
    yield "lists", lambda: os.listdir({folder!r})
    yield "writes", lambda: open({secret!r}, "w")
    yield "deletes", lambda: os.remove({secret!r})
    yield "sees the bot", lambda: open(f"/proc/{{os.getppid()}}/environ").read()
    yield "runs", lambda: os.execv("/bin/true", ["true"])
    if {version} >= 4:
        yield "connects", lambda: socket.create_connection(("127.0.0.1", {port}), 5)
    if {version} >= 6:
        yield "signals", lambda: os.kill(os.getppid(), 0)
done = []
for name, act in tried():
    try:
        act()
        done.append(name)
    except PermissionError:
        pass
raise decoder.MediaError("it reached: " + ", ".join(done))
"""


@pytest.mark.system
@pytest.mark.skipif(not landlock_version(), reason="the system has no Landlock")
async def test_it_reaches_no_file_no_server_and_no_process(make: Make, tmp_path: Path) -> None:
    secret = tmp_path / ".env"
    secret.write_text("LLM_API_KEY=sk-a-secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        version, port = landlock_version(), server.getsockname()[1]
        reaches = REACHES.format(secret=str(secret), folder=str(tmp_path), version=version, port=port)
        decoder = make(command=standing_in(f"exec({reaches!r}, globals())"))
        assert await why(decoder.decode(LARGE)) == "it reached: "
    assert secret.read_text() == "LLM_API_KEY=sk-a-secret"
    assert psutil.Process(decoder.pid).rlimit(psutil.RLIMIT_NPROC) == (0, 0)
    assert is_red(await decoder.decode(HONEST))


BOT = """
import asyncio, sys
import {loop}
from adapters.media.decoder_process import DecoderProcess
from tests.adapters.media.test_decoder_process import standing_in, HANG
HONEST, LARGE = {honest!r}, {large!r}
async def main():
    decoder = DecoderProcess(command=standing_in(HANG) if {hangs} else None, seconds=60, patience=60)
    await decoder.decode(HONEST)
    print(decoder.pid, flush=True)
    await decoder.decode(LARGE)
    await asyncio.Event().wait()
{loop}.run(main())
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends with its input only")
@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_it_dies_with_a_bot_that_is_killed_also_in_the_middle_of_a_picture(loop: str, hangs: bool) -> None:
    script = BOT.format(honest=HONEST, large=LARGE, hangs=hangs, loop=loop)
    bot = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=Path(__file__).parents[3], stdout=asyncio.subprocess.PIPE
    )
    assert bot.stdout is not None
    pid = int(await bot.stdout.readline())
    assert psutil.pid_exists(pid)
    bot.send_signal(signal.SIGKILL)
    await bot.wait()
    await until(lambda: is_dead(pid))


IMPORTS = """
import asyncio, sys
from adapters.media.decoder_process import DecoderProcess
from adapters.media.attachments import PictureSight
async def main():
    decoder = DecoderProcess(seconds=60)
    shown = len(await decoder.decode({honest!r}))
    await decoder.aclose()
    print(shown > 0, [name for name in sys.modules if name.split(".")[0] == "PIL"])
asyncio.run(main())
"""


@pytest.mark.system
async def test_the_bot_itself_imports_no_decoder_at_all() -> None:
    script = IMPORTS.format(honest=HONEST)
    bot = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=Path(__file__).parents[3], stdout=asyncio.subprocess.PIPE
    )
    told, _ = await bot.communicate()
    assert told == b"True []\n"
