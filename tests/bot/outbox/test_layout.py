"""What is said, as the QQ messages it becomes."""

from __future__ import annotations

import pytest

from bot.core.actions import MergedForward
from bot.core.language import Language
from bot.core.segments import Mention, SendSegment
from bot.outbox.layout import CUT_SHORT, MAX_MESSAGES, in_turns, merged, messages_of
from bot.outbox.pacing import typing_pauses
from frostagent.types.speech import Attachment, Quote, Text
from tests.cases import each_case

AT_ONCE, LEAST, MOST, NODE, MAX_NODES = 3, 0.6, 3.0, 2000, 50
PICTURE = Attachment("image", "base64://aaaa", "a.png")
VOICE = Attachment("record", "base64://bbbb", "b.amr")


def split(*segments: SendSegment, limit: int = 1500) -> list[tuple[SendSegment, ...]]:
    return messages_of(segments, limit=limit)


def test_parts_stay_in_order_in_one_message_with_the_quote_first() -> None:
    assert split(Text("a"), PICTURE, Quote("7"), Mention(5)) == [(Quote("7"), Text("a"), PICTURE, Mention(5))]


def test_a_voice_is_a_message_of_its_own() -> None:
    assert split(Quote("7"), Text("a"), VOICE, Text("b")) == [(Quote("7"), Text("a")), (VOICE,), (Text("b"),)]


def test_long_text_is_sent_in_pieces_and_only_the_first_quotes() -> None:
    assert split(Quote("7"), Text("一二三四。五六七八。"), limit=6) == [
        (Quote("7"), Text("一二三四。")),
        (Text("五六七八。"),),
    ]


def test_text_that_does_not_fit_beside_earlier_text_starts_a_new_message() -> None:
    assert split(Text("abcd"), PICTURE, Text("efgh"), limit=6) == [(Text("abcd"), PICTURE), (Text("efgh"),)]


def test_blank_text_before_long_text_makes_no_message_of_its_own() -> None:
    assert split(Text("  "), Text("x" * 6), limit=6) == [(Text("x" * 6),)]


@each_case("segments", [(), (Text(""),), (Text(" \n"),), (Quote("7"),), (Quote("7"), Text(" "))])
def test_nothing_to_say_is_no_message(segments: tuple[SendSegment, ...]) -> None:
    assert split(*segments) == []


@each_case("marks", ["``````", "```\n```", "```python\n\n```", "```\n\n" * 9])
@each_case("before", [(), (Quote("7"),)])
def test_marks_and_nothing_else_stay_as_they_are_beside_a_quote_too(before: tuple[Quote, ...], marks: str) -> None:
    for limit in (1500, 6):
        said = split(*before, Text(marks), limit=limit)
        assert all(isinstance(message[-1], Text) and message[-1].text.strip() for message in said)
        assert "".join(one.text for message in said for one in message if isinstance(one, Text)).strip()


@each_case(("piece", "language"), [("四个汉字", Language.CHINESE), ("abcd", Language.ENGLISH)])
def test_a_flood_of_pieces_ends_in_a_line_that_says_so_in_its_language(piece: str, language: Language) -> None:
    messages = split(Text("\n\n".join(piece for _ in range(30))), limit=6)
    assert len(messages) == MAX_MESSAGES + 1
    assert messages[-1] == (Text(CUT_SHORT.format(language)),)


def test_markdown_is_told_as_text_piece_by_piece_and_marks_alone_stay() -> None:
    assert split(Text("**一二。**\n\n五六七八。"), limit=8) == [(Text("一二。"),), (Text("五六七八。"),)]
    assert split(Text("---")) == [(Text("---"),)]
    assert split(Text("一二\n\n---"), limit=5) == [(Text("一二"),), (Text("---"),)]


def test_a_short_answer_of_paragraphs_is_said_in_three_turns_at_most() -> None:
    assert in_turns((Quote("7"), Text("好的。\n\n**明天**见"))) == [(Quote("7"), Text("好的。")), (Text("明天见"),)]
    assert in_turns((Text("一二三\n\n四\n\n五\n\n六七八九"),)) == [
        (Text("一二三"),),
        (Text("四\n\n五"),),
        (Text("六七八九"),),
    ]


@each_case(
    "segments",
    [
        (Text("一段而已\n第二行"),),
        (Text("一" * 150 + "\n\n" + "二" * 150),),
        (Text("一\n\n二"), PICTURE),
        (Text("一\n\n---"),),
    ],
)
def test_other_answers_are_not_said_in_turns(segments: tuple[SendSegment, ...]) -> None:
    assert in_turns(segments) == []


def test_code_is_one_turn_whatever_blank_lines_are_in_it() -> None:
    assert in_turns((Text("看：\n\n```\na\n\nb\n```"),)) == [(Text("看："),), (Text("a\n\nb"),)]


def test_what_takes_longer_to_type_comes_later_within_limits() -> None:
    said = typing_pauses([(Text("一" * 90),), (Text("二"),), (Text("三" * 10),), (Text("四" * 90),)])
    assert said == [0.0, LEAST, pytest.approx(1.2), MOST]


def long(segments: tuple[SendSegment, ...]) -> MergedForward | None:
    return merged(segments, messages_of(segments), name="小霜")


def test_what_is_long_is_a_merged_forward_of_nodes_that_qq_takes() -> None:
    text = "\n\n".join(f"**{number}**" + "字" * 990 for number in range(1, 5))
    found = long((Quote("7"), Text(text)))
    assert found is not None
    assert found.name == "小霜"
    assert [node[:1] for node in found.nodes] == ["1", "3"]
    assert all(len(node) <= NODE for node in found.nodes)
    assert "".join(found.nodes).replace("\n", "") == text.replace("*", "").replace("\n", "")


def test_one_character_more_than_a_message_takes_is_a_forward() -> None:
    assert long((Text("字" * 1501),)) == MergedForward(("字" * 1501,), "小霜")
    assert in_turns((Text("一" * 149 + "\n\n" + "二" * 150),)) != []


def test_a_forward_that_would_have_too_many_nodes_says_that_it_was_cut() -> None:
    for letter, language in zip("字a", Language, strict=True):
        found = long((Text(letter * NODE * 60),))
        assert found is not None
        assert (len(found.nodes), found.nodes[-1]) == (MAX_NODES, CUT_SHORT.format(language))


@each_case(
    "segments",
    [
        (Text("字" * 1500),),
        (Text("字" * 700 + "\n\n" + "字" * 798),),
        (Text("字" * 1600), PICTURE),
        (Text("字" * 1600), Mention(5)),
        tuple([VOICE] * (AT_ONCE + 1)),
    ],
)
def test_what_is_short_or_more_than_words_is_no_forward(segments: tuple[SendSegment, ...]) -> None:
    assert long(segments) is None
