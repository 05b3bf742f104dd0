"""What a command hears where nobody is, or nobody answers; and that it hears the end."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.control.client import NoAnswer, NotRunning, ask_bot
from adapters.control.wire import decode, encode
from bot.core.language import Bilingual


class Talk:
    """What was `said` to somebody; he stays until he is told to `leave`."""

    def __init__(self) -> None:
        self.said = b""
        self.leave = threading.Event()


@contextmanager
def saying(path: Path, words: bytes, *, stay: bool = False) -> Iterator[Talk]:
    """Somebody who says these words to whoever comes, and leaves, or stays."""
    talk = Talk()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            talk.said = connection.recv(1000)
            connection.sendall(words)
            if stay:
                talk.leave.wait(10)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        listening.settimeout(10)  # who is not asked does not wait for ever
        thread = threading.Thread(target=serve)
        thread.start()
        yield talk
        talk.leave.set()
        thread.join(10)


def test_a_command_goes_with_its_details(tmp_path: Path) -> None:
    with saying(tmp_path / "control", b"{}") as talk, ask_bot(tmp_path / "control", "forget", user=5):
        pass
    assert talk.said == b'{"command": "forget", "user": 5}\n'


def test_where_nobody_listens_no_bot_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead"))
    for path in (tmp_path / "none", tmp_path / "no folder" / "x", tmp_path / "dead", tmp_path / "file" / "x"):
        with pytest.raises(NotRunning), ask_bot(path, "status"):
            pass


@pytest.mark.parametrize(
    ("words", "told"),
    [(b"", "ended"), (b"not json\n", "ended"), (b'{"half": ', "ended"), (b"[]\n", "cannot be read")],
)
def test_an_answer_that_is_none_is_told(tmp_path: Path, words: bytes, told: str) -> None:
    with (
        saying(tmp_path / "control", words),
        pytest.raises(NoAnswer, match=told),
        ask_bot(tmp_path / "control", "status"),
    ):
        pass


def test_a_bot_that_hangs_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with (
        saying(tmp_path / "control", b"", stay=True),
        pytest.raises(NoAnswer, match=r"said nothing for 0\.05 s"),
        ask_bot(tmp_path / "control", "status", seconds=0.05),
    ):
        pass


def test_the_end_of_a_bot_is_heard(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with saying(path, b'{"pid": 1}\n', stay=True) as talk, ask_bot(path, "stop") as question:
        assert question.answer == {"pid": 1}
        assert not question.wait_for_end(0.05)
        talk.leave.set()
        assert question.wait_for_end(10)


def test_a_text_in_both_languages_comes_over_in_both() -> None:
    both, answer = Bilingual("it stands by", "待命"), {"ok": False, "told": ["plain"], "n": 1}
    read = decode(encode({**answer, "error": both, "told": ["plain", both]}))
    assert read == {**answer, "error": "it stands by", "told": ["plain", "it stands by"]}
    assert isinstance(read, dict)
    assert (read["error"].zh, read["told"][1].zh) == ("待命", "待命")
    assert json.loads(encode(answer)) == answer
