"""What a check says."""

from __future__ import annotations

from bot.cli.checks import Outcome, failure, failures, ok, warning
from bot.core.language import Bilingual, Phrase
from frostagent.types.errors import Problem


def test_only_what_is_well_needs_no_fix() -> None:
    checks = ok("clock", "agrees"), warning("clock", "is late", "Set it"), failure("clock", "is late", "Set it")
    assert [(one.name, one.outcome, one.said, one.fix) for one in checks] == [
        ("clock", Outcome.OK, "agrees", ""),
        ("clock", Outcome.WARNING, "is late", "Set it"),
        ("clock", Outcome.PROBLEM, "is late", "Set it"),
    ]


def test_a_check_says_it_in_both_languages() -> None:
    check = warning("clock", Phrase("慢 {seconds} 秒", "is {seconds} s late"), Phrase("调一下", "Set it"), seconds=3)
    assert (check.said, check.fix) == ("is 3 s late", "Set it")
    assert (check.said.zh, check.fix.zh) == ("慢 3 秒", "调一下")


def test_a_problem_of_the_settings_keeps_its_name_and_its_fix() -> None:
    what = Bilingual("is not set", "没有设置")
    (check, other) = failures("settings", [Problem("LLM_MODEL", what, "Set it"), Problem("X", "is '{x}'", "")])
    assert check == failure("settings", "LLM_MODEL is not set", "Set it")
    assert (check.said.zh, check.fix.zh) == ("LLM_MODEL 没有设置", "Set it")
    assert other.said == other.said.zh == "X is '{x}'"
