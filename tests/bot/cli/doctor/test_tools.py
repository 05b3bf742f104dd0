from __future__ import annotations

from pathlib import Path

from bot.cli.checks import Outcome
from bot.cli.doctor.tools import check_tools
from config.settings import Settings

BROKEN = "1 / 0\n"
MISSING = """
from frostagent.programs import command_tool

draw = command_tool("draw", "Draws.", ["no-such-program"])
"""


def test_without_a_folder_of_the_operators_all_can_be_used() -> None:
    (check,) = check_tools(Settings())
    assert check.outcome is Outcome.OK
    assert check.said.startswith("all ")


def test_a_broken_file_a_missing_program_and_a_name_of_no_tool_are_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "missing.py").write_text(MISSING)
    checks = check_tools(Settings(tools_dir=tmp_path, tools_deny=("nothing",)))
    assert {check.outcome for check in checks} == {Outcome.WARNING}
    assert [check.said for check in checks] == [
        f"{tmp_path}/broken.py:1: cannot be used (ZeroDivisionError: division by zero)",
        "nothing is in TOOLS_DENY, _APPROVE or _AUDIENCE, but there is no such tool",
        "draw cannot be used: it needs the program no-such-program, which is not in PATH",
    ]
