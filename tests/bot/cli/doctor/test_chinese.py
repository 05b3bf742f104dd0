from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from adapters.openai.client import REASONS
from bot.cli import doctor
from bot.cli.doctor.chinese import SENTENCES, chinese
from bot.cli.setup.trial import mend_of
from bot.domain.errors import ModelAuth, ModelStalled
from tests.cases import each_case

NOT_HERE = {"picture.py", "listening.py", "reverse.py", "tools.py", "report.py", "chinese.py"}
"""Modules whose checks the console does not make."""
PUT_TOGETHER = {"x7 x7", "x7: x7", "x7, with x7", "x7 answers in x7 s, x7x7", "has x7 charactersx7"} | {
    f"x7 is {how}" for how in ("online", "offline")
}
"""Of parts that are told elsewhere, of names and numbers alone, and of settings, which say it themselves."""
MADE = {"well": 2, "warn": 3, "wrong": 3}
HAN = re.compile("[\u4e00-\u9fff]")


def filled(node: ast.expr) -> str | None:
    """A sentence of the source with something in each of its places; None for what is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            texts = [part.value if isinstance(part, ast.FormattedValue) else part for part in parts]
            return "".join(filled(one) or "x7" for one in texts)
        case ast.IfExp(body=body):
            return filled(body)
        case _:
            return None


def sentences(file: Path) -> Iterator[str]:
    """Those that a module's checks say: in place, or under the name `said`, `mend` or of a constant."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value="picture"), *_]) if name in MADE:
                continue  # sent by the command alone
            case ast.Call(func=ast.Name(id=name), args=[_, *told]) if name in MADE:
                found = [filled(one) for one in told]
            case ast.Assign(targets=[ast.Name(id="said" | "mend")], value=value):
                found = [filled(value)]
            case _:
                continue
        yield from (one for one in found if one)


def test_each_sentence_of_the_doctor_that_a_page_shows_is_there_in_chinese() -> None:
    folder = Path(doctor.__file__).parent
    said = {one for file in sorted(folder.glob("*.py")) if file.name not in NOT_HERE for one in sentences(file)}
    assert len(said) > 50
    assert [one for one in sorted(said - PUT_TOGETHER) if not HAN.search(chinese(one))] == []


def test_names_and_numbers_stand_where_they_belong() -> None:
    for english, zh in SENTENCES.items():
        places = english.count("{}")
        values = [f"v{number}" for number in range(places)]
        told = chinese(english.format(*values))
        assert told == zh.format(*values), english
        assert HAN.search(told), english


@each_case(
    ("english", "said"),
    [
        ("is 90 s ahead of the model's server", "比模型的服务器快 90 秒"),
        ("m answers in 1.2 s, streamed, first token after 0.8 s", "m 用 1.2 秒答复，流式，首个 token 等了 0.8 秒"),
        (
            "m answers in 1.2 s, in one piece, not streamed, through the proxy http://p:1",
            "m 用 1.2 秒答复，一次发完，不是流式，经过代理 http://p:1",
        ),
        ("m does not answer: HTTP 401\nno {such} key", "m 没有答复：HTTP 401\nno {such} key"),
        ("account 10001 is offline", "账号 10001 不在线"),
        ("has 32 characters; tokens of their own have 1, 2", "有 32 位；单独设了令牌的账号：1, 2"),
        (
            "none of its 2 hosts can be used, as a.example could not be reached (ConnectError)",
            "2 个地址都用不了，比如：连不上 a.example（ConnectError）",
        ),
        ("WEB_PORT is not a number", "WEB_PORT is not a number"),
        ("", ""),
    ],
)
def test_what_a_service_or_a_setting_says_itself_stays_as_it_was_said(english: str, said: str) -> None:
    assert chinese(english) == said


def test_what_the_connection_to_a_model_said_is_told_in_chinese_too() -> None:
    for _, reason in REASONS:
        told = chinese(f"m does not answer: m@a.example: {reason} (the system's words)")
        assert re.fullmatch("m 没有答复：m@a.example：[^a-z]+（the system's words）", re.sub("https?", "", told)), told


@each_case("kind", [ModelAuth, ModelStalled])
def test_the_advice_for_a_model_is_that_of_setup(kind: type[ModelAuth]) -> None:
    mend = mend_of(kind(""))
    assert chinese(mend.en) == mend.zh
