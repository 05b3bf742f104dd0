"""What a check says."""

from __future__ import annotations

from bot.cli.doctor.checks import Check, Verdict, warn, well, wrong, wrong_settings
from bot.domain.errors import Problem


def test_only_what_is_well_needs_no_mend() -> None:
    assert well("clock", "agrees") == Check("clock", Verdict.OK, "agrees", "")
    assert warn("clock", "is late", "Set it") == Check("clock", Verdict.WARNING, "is late", "Set it")
    assert wrong("clock", "is late", "Set it").verdict is Verdict.PROBLEM


def test_a_problem_of_the_settings_keeps_its_name_and_its_mend() -> None:
    (check,) = wrong_settings("settings", [Problem("LLM_MODEL", "is not set", "Set it")])
    assert check == wrong("settings", "LLM_MODEL is not set", "Set it")
