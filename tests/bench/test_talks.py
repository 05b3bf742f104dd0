"""The talks can be read and played, and what of our prompt stands in an answer is counted; no model is judged here."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from adapters.offline.brain import Thought
from tests.bench import talks
from tests.bench.leftovers import FORMS, Room
from tests.bench.listening import words_of
from tests.bench.model import stream, whole
from tests.bench.replay import nothing_happens
from tests.bench.talks import TALKS, Answer, Line, Script, figures, play, read_line
from tests.cases import each_case
from tests.torture.model import Asked, ScriptedModel

ROOM = Room(
    "饭搭子", ("小明", "阿澈"), ("小霜",), ["周六去香山吧", "八点半？"], "前面不写名字，名字后面不带号码。要叫谁看"
)
SHORT = Script(
    "饭搭子",
    tuple(map(read_line, ["小明: 周六去香山吧", "阿澈 >小明: @bot 几点？", "小明: @bot 在哪？", "+阿澈: @bot 谢谢"])),
)


def test_there_are_ten_talks_of_several_people_and_half_of_them_are_long() -> None:
    scripts = [Script.read(path.read_text("utf-8")) for path in sorted(TALKS.glob("*.txt"))]
    assert len(scripts) == 10
    assert all(len(script.people) >= 3 and sum(line.asks for line in script.lines) >= 3 for script in scripts)
    assert sum(len(script.lines) >= 35 for script in scripts) == 5


def test_a_line_says_who_speaks_whom_he_quotes_and_whether_he_asks() -> None:
    assert read_line("Dr. K: https://a.b: c") == Line("Dr. K", "https://a.b: c")
    assert read_line("+小明 >阿澈: @bot 几点") == Line("小明", "@bot 几点", quoted="阿澈", at_once=True)
    assert read_line("小明: @bot 几点").asks
    with pytest.raises(ValueError, match="nobody says this line"):
        read_line("几点")


@each_case(
    ("said", "form"),
    [
        ("[提问 14:10] 好", "heading"),
        ("问问小明#2", "number"),
        ("小明: 好", "speaker"),
        ("[10:22] 阿澈: 好", "speaker"),
        ("17#1: 好", "speaker"),
        ("我记得是周六去香山吧", "log line"),
        ("好(02-11-24 星期二，我们的群)", "moment"),
        ("饭搭子", "moment"),
        ("（已回答）", "stand-in"),
        ("你没有回答上面的提问。", "notice"),
        ("好，前面不写名字，名字后面不带号码。", "rules"),
        ("几点集合", "question"),
        ("好\n好\n好", "circle"),
        ("**好**", "markdown"),
    ],
)
def test_each_form_is_found(said: str, form: str) -> None:
    assert form in FORMS
    assert form in ROOM.forms(said, "几点集合？")
    assert ROOM.forms("九点，东门。阿澈说他会晚一点。", "几点集合？") == ()


@each_case("body", [stream("周六九点，东门集合，别忘了带水"), whole("周六九点，东门集合，别忘了带水")])
def test_the_words_of_an_answer_are_read_in_either_form(body: bytes) -> None:
    assert words_of(body.partition(b"\r\n\r\n")[2]) == "周六九点，东门集合，别忘了带水"


def test_an_answer_that_broke_off_before_it_began_has_no_words() -> None:
    assert words_of(b"") == words_of(b"\r\n") == ""


async def test_a_talk_is_played_to_a_bot_of_its_own_and_each_answer_is_told_with_what_it_quotes() -> None:
    def answer(asked: Asked) -> Thought:
        return Thought("九点（阿澈说的）" if "几点" in asked.messages[-1]["content"] else "不客气")

    async with ScriptedModel(nothing_happens, answer) as model:
        heard = [one async for one in play([SHORT], model.base_url, model="x")]
    answers = [one for one in heard if isinstance(one, Answer)]
    assert heard[:3] == [SHORT, *SHORT.lines[:2]]
    assert [(one.line.words, one.quotes_it) for one in answers] == [
        ("@bot 几点？", True),
        ("@bot 在哪？", True),
        ("@bot 谢谢", True),
    ]
    assert answers[0].told() == "  >> 九点（阿澈说的）"
    assert answers[0].exchanges[0].said == "九点（阿澈说的）"
    assert "   3 answers" in figures(answers)


async def test_what_somebody_said_before_he_asked_is_talk_and_no_part_of_his_question() -> None:
    """Lines are as far apart as people's, though nobody waits between them."""
    script = Script("饭搭子", tuple(map(read_line, ["小明: 周六去香山吧", "阿澈: 去", "小明: @bot 几点？"])))
    async with ScriptedModel(nothing_happens, lambda _: Thought("九点")) as model:
        heard = [one async for one in play([script], model.base_url, model="x")]
    answer = heard[-1]
    assert isinstance(answer, Answer)
    shown = answer.exchanges[0].messages[-1]["content"]
    before, _, question = shown.partition("[提问")
    assert "小明#1: 周六去香山吧\n阿澈#2: 去\n" in before
    assert question.splitlines()[1] == "小明#1: 几点？"


def test_what_quotes_nobody_or_is_silent_is_told() -> None:
    line = read_line("小明: @bot 几点")
    assert Answer(line, "九点").told() == "  >> 九点    [quotes somebody else]"
    assert Answer(line).told().endswith("[silence]")
    counted = figures(
        [Answer(line, "九点"), Answer(line), Answer(line, "小明: 好", quotes_it=True, forms=("speaker",))]
    )
    for what in ("1 quote somebody else", "1 silent", "1 with a frame", "1   speaker", "0   markdown"):
        assert f"   {what}" in counted


def test_without_a_model_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[Any]
) -> None:
    monkeypatch.setattr(sys, "argv", ["talks"])
    with pytest.raises(SystemExit) as ended:
        talks.main()
    assert ended.value.code == 2
    assert "--model-url" in capsys.readouterr().err
