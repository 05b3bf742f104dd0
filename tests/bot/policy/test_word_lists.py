from __future__ import annotations

from msgspec.structs import replace

from bot.domain.actions import Attachment, Merged, SendMessage, SentSegment
from bot.domain.segments import Card, File, Link, Markdown, Mention, Quote, Text
from bot.policy.word_lists import POLITE, said_in, screened
from bot.prompt.language import tongue_of
from tests.fakes import GROUP, said

ZH, EN = POLITE


def bad(text: str) -> bool:
    return "坏" in text.replace(" ", "").replace("。", "") or "毒药" in text.replace("\n", "")


def shown(*messages: tuple[SentSegment, ...]) -> list[tuple[SentSegment, ...]]:
    actions = tuple(SendMessage(GROUP, segments) for segments in messages)
    return [action.segments for action in screened(actions, bad, tongue_of)]


def test_a_sentence_that_is_withheld_is_a_polite_line_and_the_rest_is_said() -> None:
    assert shown((Quote("1"), Text("你好！这是坏话。再见"), Mention(5))) == [
        (Quote("1"), Text(f"你好！{ZH}再见"), Mention(5))
    ]
    assert shown((Text("坏。坏！好\n坏\n好"),)) == [(Text(f"{ZH}好\n{ZH}\n好"),)]
    good = (Text("都好。"), Attachment("image", "base64://", "cat.png"))
    assert shown(good) == [good]


def test_what_is_withheld_only_together_leaves_nothing_of_it() -> None:
    polite = (Text(ZH),)
    assert shown((Text("毒"), Text("药"))) == [polite]
    assert shown((Text("毒\n药"),)) == [polite]
    assert shown((Quote("1"), Text("毒")), (Text("药"),)) == [(Quote("1"), Text(ZH)), polite]
    assert shown((Text("给你"), Attachment("file", "base64://", "坏.txt"))) == [polite]
    assert shown((Mention(5, "坏人"), Text("好"))) == [polite]


def test_each_message_of_a_forward_is_looked_at() -> None:
    assert shown((Merged(("好", "坏事。好事"), "霜"),)) == [(Merged(("好", f"{ZH}好事"), "霜"),)]
    assert shown((Merged(("好",), "坏霜"),)) == [(Text(ZH),)]


def test_all_that_somebody_reads_of_a_question_is_its_words() -> None:
    parts = (
        *(Text("一"), Markdown("二"), File(name="三"), Link("share", title="四", content="五")),
        *(Card("json", prompt="六", title="七", description="八"), Mention(5, "九")),
    )
    assert said_in(replace(said(""), segments=(part,)) for part in parts) == "一二三四五六七八"
