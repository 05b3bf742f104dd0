"""What a check says."""

from __future__ import annotations

from bot.cli.doctor.checks import Verdict, warn, well, wrong, wrong_settings
from bot.domain.errors import Problem


def test_only_what_is_well_needs_no_mend() -> None:
    checks = well("clock", "agrees"), warn("clock", "is late", "Set it"), wrong("clock", "is late", "Set it")
    assert [(one.check, one.verdict, one.said, one.mend) for one in checks] == [
        ("clock", Verdict.OK, "agrees", ""),
        ("clock", Verdict.WARNING, "is late", "Set it"),
        ("clock", Verdict.PROBLEM, "is late", "Set it"),
    ]


def test_a_sentence_of_the_catalogue_is_there_in_both_languages() -> None:
    check = warn("clock", "could not be compared: the model's server does not answer", "See what `model` says")
    assert (check.said.zh, check.mend.zh) == ("没法对时：模型的服务器没有答复", "看“模型”那一行")


def test_a_problem_of_the_settings_keeps_its_name_and_its_mend() -> None:
    (check,) = wrong_settings("settings", [Problem("LLM_MODEL", "is not set", "Set it")])
    assert check == wrong("settings", "LLM_MODEL is not set", "Set it")
