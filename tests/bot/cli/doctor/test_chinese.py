from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import config
from adapters.openai.client import REASONS
from bot.cli import doctor
from bot.cli.doctor.checks import Verdict
from bot.cli.doctor.chinese import CHECKS, SENTENCES, describe_problem, sentence, translate_error, translate_mend
from bot.cli.doctor.interview import WORDS
from bot.cli.setup.trial import NO_EYES, mend_of
from bot.domain.errors import ModelAuth, ModelStalled, Problem
from bot.domain.language import Bilingual
from config.checks import HOW_TO_MAKE_ONE
from tests.cases import each_case

MADE = {"well", "warn", "wrong", "judge", "Probe"}
HAN = re.compile("[\u4e00-\u9fff]")
LETTERS = re.compile("[A-Za-z]{2}")


def literals(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may stand for, as they are written."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from (*literals(body), *literals(other))
        case ast.JoinedStr():
            raise AssertionError(f"an f-string is in one language: {ast.unparse(node)}")
        case _:
            return


def told() -> Iterator[tuple[str, str]]:
    """What the doctor says, by its source: the name of a check, or a sentence."""
    for file in sorted(Path(doctor.__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in {"said", "mend"} or (
                    name.isupper() and " " in "".join(literals(value))
                ):
                    yield from (("sentence", one) for one in literals(value))
                case ast.Call(func=ast.Name(id="Probe"), args=[name, *_]):
                    yield from (("check", one) for one in literals(name))
                case ast.Call(func=ast.Name(id=name), args=[check, *words]) if name in MADE:
                    yield from (("check", one) for one in literals(check))
                    yield from (("sentence", one) for word in words for one in literals(word))
                case ast.Call(func=ast.Name(id="sentence"), args=[english, *_]):
                    yield from (("sentence", one) for one in literals(english))
                case _:
                    pass


def written() -> set[str]:
    """All literals of the doctor and of the settings, except those of the catalogue."""
    folders = Path(doctor.__file__).parent, Path(config.__file__).parent
    files = (file for folder in folders for file in folder.glob("*.py") if file.name != "chinese.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_everything_the_doctor_says_is_there_in_chinese() -> None:
    said = set(told())
    assert len(said) > 150
    assert sorted(one for kind, one in said if kind == "check" and one not in CHECKS) == []
    spoken = {one for kind, one in said if kind == "sentence" and LETTERS.search(one)}
    assert sorted(spoken - {*SENTENCES, WORDS}) == []
    assert sorted({*SENTENCES} - written() - {HOW_TO_MAKE_ONE, NO_EYES}) == []  # those are of others
    assert {*CHECKS} >= {*Verdict}


def test_what_is_wrong_with_a_setting_is_told_as_far_as_it_is_known() -> None:
    said = describe_problem(Problem("LLM_MODEL", "is not set", ""))
    assert (said, said.zh) == ("LLM_MODEL is not set", "LLM_MODEL 没有设置")
    other = describe_problem(Problem("BOT_OWNERS", "'{x}' is no QQ number", ""))
    assert other == other.zh == "BOT_OWNERS '{x}' is no QQ number"


def test_names_and_numbers_stand_where_they_belong() -> None:
    for english, zh in SENTENCES.items():
        values = [f"v{number}" for number in range(english.count("{}"))]
        said = sentence(english, *values)
        assert (said, said.zh) == (english.format(*values), zh.format(*values))
        assert HAN.search(said.zh), english


def test_a_sentence_within_another_is_in_its_language() -> None:
    said = sentence("{} has account {}", Bilingual("a OneBot server", "某个 OneBot 服务"), 5)
    assert (said, said.zh) == ("a OneBot server has account 5", "某个 OneBot 服务 登录的是账号 5")
    assert deepcopy(said).zh == said.zh


@each_case(
    ("english", "said"),
    [
        ("HTTP 401\nno {such} key", "HTTP 401\nno {such} key"),
        ("a.example could not be reached (ConnectError)", "连不上 a.example（ConnectError）"),
        ("", ""),
    ],
)
def test_what_a_service_says_itself_stays_as_it_was_said(english: str, said: str) -> None:
    assert (translate_error(english), translate_error(english).zh) == (english, said)


def test_what_the_connection_to_a_model_said_is_told_in_chinese_too() -> None:
    for _, reason in REASONS:
        said = translate_error(f"m@a.example: {reason} (the system's words)").zh
        assert re.fullmatch("m@a.example：[^a-z]+（the system's words）", re.sub("https?", "", said)), said


@each_case("kind", [ModelAuth, ModelStalled])
def test_the_advice_for_a_model_is_that_of_setup(kind: type[ModelAuth]) -> None:
    mend = mend_of(kind(""))
    assert (translate_mend(mend), translate_mend(mend).zh) == (mend.en, mend.zh)
