"""The terminal of the process, on a real pseudo-terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bot.cli.setup.screen import Screen, on_a_terminal

ROOT = Path(__file__).parents[4]
SCRIPT = """
import typer
from bot.cli.setup.answers import TyperTerminal
from bot.core.language import Bilingual, Language
terminal = TyperTerminal(Language.CHINESE)
try:
    terminal.tell(Bilingual("frost", "霜降"))
    print([terminal.ask("name", default="Frost"), terminal.ask("none"), terminal.ask_secret("key"),
           terminal.confirm("sure")])
except typer.Abort:
    print("left")
"""


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    with on_a_terminal([sys.executable, "-c", SCRIPT], folder=tmp_path, environment=environment) as screen:
        yield screen


def test_answers_are_taken_without_blanks_and_secrets_are_never_shown(screen: Screen) -> None:
    screen.wait_for("霜降")
    screen.wait_for("name [Frost]")
    screen.type("\n")
    screen.wait_for("none:")
    screen.type("  \n")
    screen.wait_for("key: ")
    screen.type("sk-very-secret \n")
    screen.wait_for("sure [y/N]")
    assert "sk-very-secret" not in screen.shown
    screen.type("y\n")
    screen.wait_for("['Frost', '', 'sk-very-secret', True]")
    assert screen.wait() == 0


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_the_end_of_input_leave(screen: Screen, key: str) -> None:
    screen.wait_for("name [Frost]: ")
    screen.type(key)
    screen.wait_for("left")
    assert screen.wait() == 0
