"""The control socket, from both ends: real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.control import server
from adapters.control.client import NotRunning, ask_bot
from adapters.control.server import ControlServer


async def fine() -> Mapping[str, Any]:
    return {"how": "好"}


async def told(*, user: int = 0) -> Mapping[str, Any]:
    return {"user": user}


async def broken() -> Mapping[str, Any]:
    raise RuntimeError("secret words")


@asynccontextmanager
async def listening(path: Path) -> AsyncIterator[None]:
    control = ControlServer(path)
    async with control.open():
        await control.listen({"fine": fine, "broken": broken, "told": told})
        yield


def answer(path: Path, command: str) -> dict[str, Any]:
    with ask_bot(path, command) as question:
        return question.answer


async def raw(path: Path, *data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    for piece in data:
        writer.write(piece)
    writer.write_eof()
    said = await reader.read()
    writer.close()
    return said


async def test_a_command_is_answered_and_nobody_else_may_ask(tmp_path: Path) -> None:
    path = tmp_path / "control"
    before = os.umask(0)
    try:
        async with listening(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert await asyncio.to_thread(answer, path, "fine") == {"how": "好"}
            assert await asyncio.to_thread(answer, path, "fine") == {"how": "好"}
    finally:
        os.umask(before)
    assert not path.exists()
    with pytest.raises(NotRunning):
        answer(path, "fine")


async def test_what_is_no_command_or_breaks_is_an_error_in_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "control"
    async with listening(path):
        assert "there are: fine, broken, told" in (await asyncio.to_thread(answer, path, "shutdown"))["error"]
        told = (await asyncio.to_thread(answer, path, "broken"))["error"]
        assert "secret" not in told
        assert "the log says why" in told
        for junk in (b"\n", b"[]\n", b'{"command": ["fine"]}\n', b"\xff\n", b"17\n", b"[" * 4000 + b"\n", b""):
            assert "error" in json.loads(await raw(path, junk))
        assert await raw(path, b"x" * 10_000) == b""  # longer than any question
        assert await asyncio.to_thread(answer, path, "fine") == {"how": "好"}
    assert "secret words" in caplog.text


async def test_a_command_gets_the_details_of_the_question(tmp_path: Path) -> None:
    path = tmp_path / "control"
    async with listening(path):
        assert json.loads(await raw(path, b'{"command": "told", "user": 5}\n')) == {"user": 5}
        assert json.loads(await raw(path, b'{"command": "told"}\n')) == {"user": 0}


OTHERS = [
    '{"command": "told", "who": 5}',
    '{"command": "fine", "user": 5}',
    '{"command": "told", "user": "%"}',
    '{"command": "told", "user": "5"}',
    '{"command": "told", "user": true}',
    '{"command": "told", "user": null}',
    '{"command": "told", "user": [5]}',
    '{"command": "told", "user": {"5": 5}}',
    '{"command": "told", "user": 5.5}',
    '{"command": "told", "user": 1e400}',
    '{"command": "told", "user": 5} {}',
]


async def test_details_that_a_command_does_not_take_are_refused_and_it_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "control"
    async with listening(path):
        answers = {other: json.loads(await raw(path, other.encode() + b"\n")) for other in OTHERS}
    taken = {
        other: told for other, told in answers.items() if "is not asked for like that" not in told.get("error", "")
    }
    assert set(taken) == {OTHERS[-1]}  # no JSON at all
    assert "no such command" in taken[OTHERS[-1]]["error"]


async def test_who_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ASKED_WITHIN", 0.01)
    path = tmp_path / "control"
    async with listening(path):
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        writer.close()


async def test_the_socket_of_a_bot_that_died_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with listening(path):
        assert await asyncio.to_thread(answer, path, "fine") == {"how": "好"}


async def test_the_socket_of_a_bot_that_lives_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "control"
    async with listening(path):
        async with listening(path):
            pass
        assert "do not reach this bot" in caplog.text
        assert await asyncio.to_thread(answer, path, "fine") == {"how": "好"}


async def test_a_socket_that_is_another_ones_by_now_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "control"
    async with listening(path):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.is_socket()


async def test_a_folder_that_is_missing_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "control"
    async with listening(path):
        assert await asyncio.to_thread(answer, path, "fine") == {"how": "好"}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["a file", "no place for a folder", "a name that is too long"])
async def test_where_it_cannot_listen_it_says_so_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    places = {
        "a file": tmp_path / "file",
        "no place for a folder": tmp_path / "file" / "control",
        "a name that is too long": tmp_path / ("x" * 150),
    }
    (tmp_path / "file").write_text("kept")
    async with listening(places[what]):
        pass
    assert caplog.text.count("do not reach this bot") == 1
    assert (tmp_path / "file").read_text() == "kept"


async def test_without_a_path_it_listens_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    control = ControlServer(None)
    async with control.open():
        await control.listen({})
    assert not caplog.text
