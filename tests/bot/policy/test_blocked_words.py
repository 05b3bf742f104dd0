from __future__ import annotations

from msgspec.structs import replace

from bot.core.actions import MergedForward, SendMessage, SentSegment
from bot.core.blocked_words import LONGEST, fold_text
from bot.core.segments import (
    Card,
    File,
    Keyboard,
    Link,
    Location,
    Markdown,
    Mention,
    Picture,
    Record,
    Sticker,
    Transfer,
)
from bot.policy.blocked_words import POLITE, screen_continuation, screen_messages, words_said, words_shown
from bot.prompt.prompt_language import language_of_text
from frostagent.types.speech import Attachment, Face, Quote, Text
from tests.fakes import BOT, GROUP, said

ZH, EN = POLITE.zh, POLITE.en


def bad(text: str) -> bool:
    return "坏" in text.replace(" ", "").replace("。", "") or "毒药" in text.replace("\n", "")


def shown(*messages: tuple[SentSegment, ...]) -> list[tuple[SentSegment, ...]]:
    actions = tuple(SendMessage(GROUP, segments) for segments in messages)
    return [action.segments for action in screen_messages(actions, bad, language_of_text)]


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


def behind(earlier: str, *messages: tuple[SentSegment, ...], looked: list[str] | None = None) -> list[str]:
    """The words of the messages behind what was said earlier; `looked` gets all that is looked at."""

    def withholds(text: str) -> bool:
        (looked if looked is not None else []).append(text)
        return bad(fold_text(text)) or "头尾" in fold_text(text).replace("中", "")

    actions = tuple(SendMessage(GROUP, segments) for segments in messages)
    return [action.words for action in screen_continuation(earlier, actions, withholds, language_of_text)]


def test_words_that_go_on_from_what_was_said_are_withheld_together_with_it_and_the_rest_is_said() -> None:
    assert behind("给你毒", (Text("药吧。再见"),)) == [f"{ZH}再见"]
    assert behind("给你毒", (Quote("1"), Text("吧。药")), (Text("药"),)) == ["吧。药", "药"]
    assert behind("", (Text("药"),)) == ["药"]
    assert behind("毒", (Text("\u200b"), Mention(5, "小明")), (Text("药"),)) == ["\u200b@小明", "药"]
    assert behind("毒", (Text("\u200b \n"),), (Text("药。好"),)) == ["\u200b \n", f"{ZH}好"]
    assert behind("毒" + "\u200b 　" * LONGEST, (Text("药"),)) == [ZH]
    assert behind("头", (Text("中" * 9 + "尾。好。尾"),)) == [f"{ZH}好。尾"]
    assert behind("毒" + "好" * LONGEST, (Text("药"),)) == ["药"]


def test_all_is_withheld_where_no_sentence_of_it_is_the_one() -> None:
    assert behind("给你毒", (Text("好。"), Attachment("file", "base64://", "药.txt"))) == ["好。"]
    assert behind("给你毒", (Attachment("file", "base64://", "药.txt"),), (Text("再见"),)) == [ZH, ZH]
    assert behind("头", *[(Text("中" * LONGEST),)] * 3, (Text("尾"),)) == [ZH] * 4


def test_what_was_said_before_its_words_came_on_the_list_withholds_nothing_behind_it() -> None:
    assert behind("这是坏话。", (Text("再见。好的"),)) == ["再见。好的"]


def test_many_sentences_behind_what_was_said_take_linear_time() -> None:
    looked: list[str] = []
    text = "药。" + "好。" * 20_000
    assert behind("毒" * LONGEST, (Text(text),), looked=looked) == [ZH + "好。" * 20_000]
    assert sum(map(len, looked)) < 4 * (LONGEST + len(text))
    looked.clear()
    text = "中。" * 20_000 + "尾"
    assert behind("头" * LONGEST, (Text(text),), looked=looked) == [text]  # a stop between is another word
    assert sum(map(len, looked)) < 4 * (LONGEST + len(text))


def test_each_message_of_a_forward_is_looked_at() -> None:
    assert shown((MergedForward(("好", "坏事。好事"), "霜"),)) == [(MergedForward(("好", f"{ZH}好事"), "霜"),)]
    assert shown((MergedForward(("好",), "坏霜"),)) == [(Text(ZH),)]


def test_all_that_somebody_reads_of_a_question_is_its_words() -> None:
    parts = (
        *(Text("一"), Markdown("二"), File(name="三"), Link("share", title="四", content="五")),
        *(Card("json", prompt="六", title="七", description="八"), Mention(5, "九")),
    )
    assert words_said(replace(said(""), segments=(part,)) for part in parts) == "一二三四五六七八"


def test_all_that_a_prompt_shows_of_somebodys_choosing_is_shown() -> None:
    parts = (
        *(Text("一"), Mention(5, "二"), Mention(BOT, "我"), Picture(summary="三"), Sticker(summary="四")),
        *(Record(text="五"), Face("1", "六"), Transfer("flash_file", "七"), Keyboard(("八", "九"))),
        *(Location("十", "甲"), Link("share", title="乙", url="丙", content="丁"), Card("json", url="戊")),
    )
    assert words_shown(replace(said(""), segments=(part,)) for part in parts) == "一二三四五六七八九十甲乙丁丙戊"
