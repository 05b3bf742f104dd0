from __future__ import annotations

from bot.chat.coalescer import (
    is_addressed_to_bot,
    is_bare_mention,
    is_for_others,
    looks_unfinished,
    shows_something,
)
from bot.core.events import MessageReceived
from bot.core.segments import Card, File, Forward, Mention, Picture, Record, Segment
from frostagent.types.speech import Face, MentionAll, Quote, Text
from tests.cases import each_case
from tests.fakes import BOT, PRIVATE, said


def alone(*segments: Segment) -> MessageReceived:
    return said(segments, where=PRIVATE)


@each_case(
    "words",
    [
        "帮我看看",
        "我想问",
        "look at it",
        "在吗",
        "在吗？",
        "你好",
        "Hello!",
        "请问一下",
        "有人吗",
        "are you there?",
        " ",
    ],
)
def test_a_few_words_that_neither_end_nor_ask_and_a_greeting_are_a_beginning(words: str) -> None:
    assert looks_unfinished(said(words))
    assert looks_unfinished(said(words, where=PRIVATE))


@each_case(
    "words",
    [
        "明天下雨吗",
        "几点了",
        "what time",
        "讲个笑话。",
        "好的！",
        "用Python写一个快速排序的函数",
        "tell me about the sea",
    ],
)
def test_what_ends_or_asks_or_is_long_is_finished(words: str) -> None:
    assert not looks_unfinished(said(words))


def test_eleven_characters_may_go_on_and_twelve_are_a_sentence() -> None:
    assert looks_unfinished(said("帮我把这个表格排好看点"))
    assert not looks_unfinished(said("帮我把这个表格排好看一点"))


def test_a_picture_alone_is_a_beginning_and_one_with_a_question_is_none() -> None:
    picture = Picture(url="https://x.test/1")
    assert looks_unfinished(alone(picture))
    assert not looks_unfinished(alone(picture, Text("这是什么")))
    assert [shows_something(alone(one)) for one in (picture, Forward("1"), File("a"), Card("json"))] == [True] * 4
    assert [shows_something(alone(one)) for one in (Text("a"), Face("1"), Quote("1"), Record("a"))] == [False] * 4


def test_what_is_spoken_and_a_quote_without_words_are_finished() -> None:
    assert not looks_unfinished(alone(Record("a.amr")))
    assert not looks_unfinished(said((Quote("7"),)))


def test_a_call_is_bare_where_nothing_stands_beside_it() -> None:
    assert is_bare_mention(said(" \n"))
    others = (Text("hi"), Face("1"), Picture(), Quote("7"), Mention(5))
    assert [is_bare_mention(said((one,))) for one in others] == [False] * 5
    assert not is_bare_mention(said((), where=PRIVATE))


def test_a_line_that_mentions_or_quotes_somebody_is_for_others() -> None:
    assert [is_for_others(alone(one)) for one in (Mention(5), MentionAll(), Quote("7"))] == [True] * 3
    assert not is_for_others(alone(Mention(BOT), Text("hi")))


def test_a_quote_or_a_mention_of_oneself_is_for_nobody_else() -> None:
    mine, his = said("周六去", user=5, at=False), said("周日去", user=6, at=False)
    quoting = said((Quote("7"), Text("八点")), user=5, at=False)
    assert [is_for_others(quoting, quoted) for quoted in (mine, his, None)] == [False, True, True]
    assert not is_for_others(said((Quote("7"), Mention(5), Text("八点")), user=5, at=False), mine)
    assert is_for_others(said((Quote("7"), Mention(6), Text("八点")), user=5, at=False), mine)


def test_in_private_all_is_said_to_the_bot_and_in_a_group_what_mentions_it() -> None:
    assert is_addressed_to_bot(said("在吗", where=PRIVATE))
    assert is_addressed_to_bot(said("在吗"))
    assert not is_addressed_to_bot(said("在吗", at=False))
    assert not is_addressed_to_bot(said((Mention(5), Text("在吗")), at=False))
