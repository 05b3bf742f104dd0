from __future__ import annotations

import pytest

from bot.domain.chat import NOTED, AssistantMessage, Message, SystemMessage, UserMessage
from bot.policy.circling import CJK
from bot.prompt.frames import Frames
from bot.prompt.people import People
from bot.prompt.said_back import NOTHING_SHOWN, Shown
from bot.prompt.tidying import tidy
from bot.prompt.wording_en import EN
from bot.prompt.wording_zh import ZH
from tests.data.speech import entries, pairs

CHINESE: tuple[Message, ...] = (
    SystemMessage("你是小霜。"),
    UserMessage("[提问 13:40]\n小红#3: 在吗？"),
    AssistantMessage(NOTED),
    UserMessage("[提问 13:50]\n小红#3: 晚上吃什么好？"),
    AssistantMessage("可以试试楼下新开的那家火锅店。"),
    UserMessage("[提问 13:55]\n小红#3: 周末忙吗？"),
    AssistantMessage("我要加班呢"),
    UserMessage("[提问 13:58]\n阿澈#2: 帮我订票"),
    AssistantMessage("抱歉，这个我没法帮你做到，只能聊天。"),
    UserMessage(
        "[2026-11-24 星期二]\n[群聊记录 14:02-14:09]\n小明#1: 周六爬山去吗\n阿澈#2: 我去\n小红#3: 我要加班\n"
        "老王#4 ↩小明#1「周六爬山去吗」: 三点在东门集合\n一#5: 在\n二#6: 来了\n小红#3: 我要加班呢\n"
        "[提问 14:10]\n小明#1: "
    ),
)
ENGLISH: tuple[Message, ...] = (
    SystemMessage("You are Frost."),
    UserMessage(
        "[2026-11-24 Tuesday]\n[Chat log 14:02-14:09]\nTom#2: my laptop died again\n"
        "Ann#1: we should meet on friday at 7\nTom#2: works for me\n[Asked 14:10]\nBob#3: "
    ),
)


def own_words(question: str, answer: str) -> str:
    """The answer to a question, as it is sent."""
    is_chinese = CJK.search(question) is not None
    *before, last = CHINESE if is_chinese else ENGLISH
    assert isinstance(last, UserMessage)
    people = People.of((*before, UserMessage(last.text + question)))
    shown = Shown(
        people,
        ZH if is_chinese else EN,
        question=question,
        asked=question,
        group="摸鱼群" if is_chinese else "Friends",
        before=1,
    )
    frames = Frames(("小霜", "Frost"), 10001, people)
    return tidy(frames, AssistantMessage(answer), shown=shown).text


def asked(entry: str) -> tuple[str, str]:
    question, _, answer = entry.partition("\n")
    return question, answer


@pytest.mark.parametrize(("question", "answer"), [asked(one) for one in entries("own_words.txt")])
def test_honest_answers_pass_though_they_look_like_what_the_prompt_shows(question: str, answer: str) -> None:
    assert own_words(question, answer) == answer


@pytest.mark.parametrize(("said", "left"), pairs("said_back.txt"))
def test_what_only_says_the_prompt_back_is_cut(said: str, left: str) -> None:
    assert own_words(*asked(said)) == left


def test_there_are_enough_of_both() -> None:
    assert len(set(entries("own_words.txt"))) >= 60
    assert len(set(pairs("said_back.txt"))) >= 70


@pytest.mark.parametrize("answer", entries("honest.txt"))
def test_no_honest_answer_to_nothing_in_particular_is_touched(answer: str) -> None:
    for people in (People.of(CHINESE), People.of((AssistantMessage(NOTED), *ENGLISH))):
        shown = Shown(people, ZH, question="你怎么看？", asked="你怎么看？", group="摸鱼群", before=1)
        assert shown.without(answer) is answer


@pytest.mark.parametrize(("said", "left"), pairs("said_back.txt"))
def test_what_was_cut_once_is_not_cut_again(said: str, left: str) -> None:
    question, _ = asked(said)
    assert not left or own_words(question, left) == left


def test_code_is_not_touched_and_what_stands_beside_it_is() -> None:
    code = "```\n小明: 周六爬山去吗\n你没有回答上面的提问。\n```"
    assert own_words("怎么写？", f"{code}\n你没有回答上面的提问。") == code


def test_an_example_of_the_persona_may_be_followed_and_the_last_words_of_a_round_may_not() -> None:
    example = (UserMessage("[提问]\n小北#9: 感冒了喝什么？"), AssistantMessage("我要加班"))
    latest = (AssistantMessage("我要加班呢"), AssistantMessage("三点在东门集合"))
    people = People.of((CHINESE[0], *example, UserMessage("[提问]\n小北#9: 天气如何"), *latest, CHINESE[-1]))
    shown = Shown(people, question="七乘八是多少？", asked="七乘八是多少？", before=3)
    assert shown.without("我要加班") != ""
    assert shown.without("我要加班呢") != ""
    assert shown.without("三点在东门集合") == ""


@pytest.mark.parametrize(
    ("question", "answer", "left"),
    [
        ("哪位会？", "小明#1", "小明"),
        ("who did it?", "Tom#2", "Tom"),
        ("怎么做？", "小明#1", ""),
        ("怎么做？", "小明", "小明"),
        ("用什么语言好？", "C#12", "C#12"),
        ("what is new?", "Tom#12", "Tom#12"),
    ],
)
def test_a_name_with_its_number_and_no_words_is_no_answer_unless_somebody_is_asked_for(
    question: str, answer: str, left: str
) -> None:
    assert own_words(question, answer) == left


def test_where_nothing_is_known_of_the_prompt_nothing_is_cut() -> None:
    assert NOTHING_SHOWN.without(answer := "你没有回答上面的提问。") is answer


def test_a_question_without_a_question_is_read_with_the_lines_before_it() -> None:
    people = People.of(CHINESE)
    shown = Shown(people, question="帮我看看", asked="大家都怎么说？\n帮我看看")
    assert shown.without("阿澈: 我去") == "阿澈: 我去"
    shown = Shown(people, question="番茄炒蛋怎么做？", asked="大家都怎么说？\n番茄炒蛋怎么做？")
    assert shown.without("阿澈: 我去") == ""


def test_a_model_that_goes_round_holds_nobody_up() -> None:
    """Each of these took minutes where it is not linear."""
    shown = Shown(People.of(CHINESE), question="怎么做？", asked="怎么做？", group="摸鱼群", before=1)
    for endless in (
        "小明: 我去\n" * 20_000,
        "形状像一个长方形，" * 20_000,
        "2026-11-24 星期二，" * 20_000,
        "(" * 50_000,
        "a: " * 50_000,
    ):
        assert len(shown.without(endless)) <= len(endless)


@pytest.mark.parametrize(
    ("before", "question", "answer"),
    [
        ("你好", "早上好呀朋友", "你好！我是霜霜，有什么可以帮你的吗？"),
        ("叫什么名字", "你是谁呀介绍一下自己", "我叫霜，是群里的小助手，很高兴认识大家。"),
        ("谢谢", "懂了懂了 感谢大佬", "不客气！还有什么问题随时问我。"),
        ("谢谢啦", "thanks a lot mate", "You're welcome! Let me know whenever you need anything."),
        ("明天要带伞吗", "下周二还开会吗？", "这个得看老师的安排，群公告里会通知的。"),
    ],
)
def test_who_is_greeted_thanked_or_asked_otherwise_again_is_answered_in_the_same_words(
    before: str, question: str, answer: str
) -> None:
    rounds = UserMessage(f"[提问 14:02]\n小明#1: {before}"), AssistantMessage(answer)
    people = People.of((*rounds, UserMessage(f"[提问 14:10]\n小红#2: {question}")))
    assert Shown(people, question=question, asked=question).without(answer) is answer
