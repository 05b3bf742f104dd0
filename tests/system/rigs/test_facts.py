"""The conversation of facts can be read and played, and what became of each is counted; no model is judged here."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from adapters.offline.brain import Thought
from bot.prompt.extraction import INSTRUCTIONS_ZH
from tests.bench import facts
from tests.bench.facts import TALKS, Outcome, Question, Result, Talk, play
from tests.bench.replay import nothing_happens
from tests.bench.talks import Answer, read_line
from tests.torture.model import Asked, ScriptedModel

SHORT = Talk.read(
    "饭搭子\n小明: 我对花生过敏\n阿澈: 我养了一只橘猫\n"
    + "".join(f"小明: @bot 第{number}个问题是什么？\n" for number in range(8))
    + "---\n阿澈: @bot 小明对什么过敏？ = 小明 花生\n小明: @bot 阿澈养了什么？ = 阿澈 白鹅\n"
)


def test_there_are_sixty_lines_with_eight_questions_and_six_facts_each_told_by_whom_it_is_about() -> None:
    (talk,) = (Talk.read(path.read_text("utf-8")) for path in TALKS.glob("*.txt"))
    lines = talk.script.lines
    assert (len(lines), sum(line.asks for line in lines), len(talk.questions)) == (60, 8, 6)
    for question in talk.questions:
        assert any(line.name == question.whom and question.word in line.words for line in lines)
        assert question.whom in question.line.words
        assert question.whom != question.line.name
        assert question.word not in question.line.words


def test_a_question_without_its_answer_is_none() -> None:
    with pytest.raises(ValueError, match="values to unpack"):
        Talk.read("饭搭子\n小明: 早\n---\n阿澈: @bot 小明对什么过敏？")


async def test_facts_are_kept_over_a_restart_and_told_with_the_question_they_are_about() -> None:
    def answer(asked: Asked) -> Thought:
        content = asked.messages[-1]["content"]
        if asked.messages[0]["content"] == INSTRUCTIONS_ZH:
            numbers = dict(re.findall(r"(\d)\. (#\d)", content))
            rows = [("对花生过敏", 1), ("养了一只橘猫", 2), ("住在火星", 2)]
            told = [{"about": numbers[str(place)], "fact": words, "lines": [place]} for words, place in rows]
            return Thought(json.dumps(told, ensure_ascii=False))
        return Thought(content.rpartition("[记得]\n")[2].strip() if "[记得]" in content else "不知道")

    async with ScriptedModel(nothing_happens, answer) as model:
        done = await play(SHORT, model.base_url, model="x")
    assert done.facts == (("小明", "对花生过敏"), ("阿澈", "养了一只橘猫"))
    assert [(one.kept, one.told, one.is_right) for one in done.outcomes] == [(True, True, True), (False, False, False)]
    assert "对花生过敏" in done.outcomes[0].answer.sent
    assert done.others == (("阿澈", "养了一只橘猫"),)
    assert "kept 1 of 2, told 1 of 2, answered 1 of 2\nkept besides: 1\n" in done.told()


def test_what_is_kept_of_somebody_else_is_none_of_its_fact() -> None:
    question = Question(read_line("阿澈: @bot 小明对什么过敏？"), "小明", "花生")
    outcome = Outcome(question, kept=False, told=False, answer=Answer(question.line, "花生"))
    done = Result(SHORT, (("阿澈", "对花生过敏"), ("", "对花生过敏")), (outcome,), 1.0)
    assert done.others == done.facts
    assert "kept: the group: 对花生过敏" in done.told()
    assert "-     -     right @bot 小明对什么过敏？  >> 花生" in done.told()


def test_without_a_model_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[Any]
) -> None:
    monkeypatch.setattr(sys, "argv", ["facts"])
    with pytest.raises(SystemExit) as ended:
        facts.main()
    assert ended.value.code == 2
    assert "--model-url" in capsys.readouterr().err
