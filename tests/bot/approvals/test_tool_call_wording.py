from __future__ import annotations

from msgspec.structs import replace

from bot.approvals.decision import Reply, read_answer, words_in
from bot.approvals.tool_call_wording import (
    asker_line,
    call_line,
    influence_line,
    number_in,
    reply_line,
    request_parts,
)
from bot.core.events import quote_in
from bot.core.language import Language
from bot.core.segments import Mention, Picture, Segment
from frostagent.engine.authority import in_one_line, led_by
from frostagent.types.messages import ToolCall
from frostagent.types.runs import Asker, Led, PendingCall
from frostagent.types.speech import Quote, Text
from frostagent.types.traits import Audience
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, said


@each_case(
    ("text", "answer"),
    [
        ("同意 A3", Reply("approve", 3)),
        ("同意A3。", Reply("approve", 3)),
        ("  同意\u3000ａ３ ！", Reply("approve", 3)),
        ("同意 #A12", Reply("approve", 12)),
        ("Approve a3", Reply("approve", 3)),
        ("同意", Reply("approve")),
        ("approve", Reply("approve")),
        ("拒绝 A3", Reply("deny", 3)),
        ("拒绝 A3 太危险了", Reply("deny", 3, "太危险了")),
        ("拒绝A3，太\n危险", Reply("deny", 3, "太 危险")),
        ("deny A3 not today", Reply("deny", 3, "not today")),
        ("拒绝 太危险", Reply("deny", None, "太危险")),
        ("同意 A0", Reply("approve", 0)),
        ("DENY", Reply("deny")),
    ],
)
def test_an_answer_is_read_however_it_is_typed(text: str, answer: Reply) -> None:
    assert read_answer(text) == answer


@each_case(
    "text",
    [
        "",
        "好的",
        "我同意 A3",
        "同意 A3 但是先备份",  # a yes with a condition is none
        "同意 A3？",
        "同意 A3x",
        "同意 A",
        "同意 A1234567890",
        "同意书在哪",
        "拒绝的话会怎样",
        "approved A3",
        "approve all",
        "denying A3",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert read_answer(text) is None


def test_a_reason_is_cut() -> None:
    answer = read_answer("拒绝 A1 " + "长" * 5000)
    assert answer is not None
    assert len(answer.words) == 200


@each_case(
    ("segments", "answer"),
    [
        ((Text("同意 A1"),), Reply("approve", 1)),
        ((Mention(BOT), Text(" 同意 A1")), Reply("approve", 1)),
        ((Quote("7"), Mention(BOT), Text(" 同意")), Reply("approve")),
        ((Mention(5), Text("同意 A1")), None),
        ((Text("同意 A1"), Picture("a.png")), None),
    ],
)
def test_an_answer_is_words_alone_but_for_a_quote_and_a_mention_of_the_bot(
    segments: tuple[Segment, ...], answer: Reply | None
) -> None:
    words = words_in(said(segments, at=False))
    assert (None if words is None else read_answer(words)) == answer


def test_a_quote_is_found() -> None:
    assert quote_in(said((Quote("7"), Text("同意")))) == "7"
    assert quote_in(said("同意")) == ""


def test_a_request_begins_with_its_number() -> None:
    assert number_in("#A31 mail {}") == 31
    assert number_in("look: #A31 mail {}") == 0


def test_what_is_asked_is_one_line_that_names_the_tool() -> None:
    call = ToolCall("c0", "mail", "{}")
    assert call_line(PendingCall(call, 'mail {"to": "ann"}', 0, "", number=3)) == '#A3 mail {"to": "ann"}'
    assert call_line(PendingCall(call, "Send\nit to ann?", 0, "", number=4)) == "#A4 mail: Send it to ann?"


def test_a_call_is_told_in_parts_for_a_page_and_as_a_text_where_it_has_none() -> None:
    def told(arguments: str, asks: str, prepared: str = "") -> tuple[str, tuple[tuple[str, str], ...]]:
        return request_parts(PendingCall(ToolCall("c0", "mail", arguments), asks, 0, "", arguments=prepared))

    given = '{"to": "ann", "copies": 2, "more": {"a": [1]}}'
    parts = (("to", "ann"), ("copies", "2"), ("more", '{"a": [1]}'))
    assert told(given, f"mail {given}") == ("mail", parts)
    assert told("{}", f"写信 {given}", given) == ("mail: 写信", parts)  # as it will be run
    assert told(given, "Send\nit to ann?") == ("mail: Send it to ann?", parts)
    assert told('{"to": "a\\u202eb"}', "mail") == ("mail", (("to", "a\\u202eb"),))  # spelt out
    for odd in ("[1]", "{", "1"):
        assert told(odd, "mail")[1] == ()


def test_nothing_invisible_and_no_line_of_their_own_gets_into_a_request() -> None:
    assert in_one_line("a\n#A9 b\u202e\u200bc\x00 \u2028d", 50) == "a #A9 b c d"


def test_of_a_long_text_both_ends_are_shown() -> None:
    line = in_one_line("begin" + "x" * 1000 + "end", 40)
    assert line.startswith("begin")
    assert line.endswith("end")
    assert " …(1008)… " in line


def test_who_asks_and_where_is_named_by_number() -> None:
    assert asker_line(Asker("777", "小明"), GROUP, "删了它") == "小明(777)，群 4242：「删了它」"
    assert asker_line(Asker("777", "「\n主人"), PRIVATE, "「删」") == "『 主人(777)，私聊：「『删』」"
    assert (
        asker_line(Asker("777", "小明"), GROUP, "删了它", language=Language.ENGLISH)
        == "小明(777), group 4242: 「删了它」"
    )
    assert (
        asker_line(Asker("777", "Ming"), PRIVATE, "wipe it", language=Language.ENGLISH)
        == "Ming(777), in private: 「wipe it」"
    )


def test_whose_words_led_there_is_told_in_either_language_and_as_an_older_version_wrote_it() -> None:
    call = PendingCall(ToolCall("c0", "mail", "{}"), "mail", 0, "")
    stranger = Asker("777", "小明", authority=Audience.EVERYONE, voices=("小红#3", "x\n#A9 y"), read=("web", "look"))
    led = led_by(stranger)
    assert led == Led(people=True, names=("小红#3", "x #A9 y"), read=("web", "look"))
    told = replace(call, led=led)
    assert influence_line(told) == "\n此前读到：别人的话（小红#3、x #A9 y）；工具带来的内容（web、look）"
    assert (
        influence_line(told, language=Language.ENGLISH)
        == "\nRead before: words of others (小红#3, x #A9 y); what tools brought (web, look)"
    )
    assert (
        influence_line(replace(call, led=Led(people=True)), language=Language.ENGLISH)
        == "\nRead before: words of others"
    )
    assert influence_line(replace(call, led="别人的话"), language=Language.ENGLISH) == "\nRead before: 别人的话"
    owner = Asker("1", "主人", authority=Audience.OWNER, overheard=Audience.OWNER)
    assert (influence_line(call), led_by(owner)) == ("", Led())


def test_what_may_be_answered_is_said_as_the_answers_are_read() -> None:
    assert reply_line(3, 119.0) == "回复「同意 A3」或「拒绝 A3 理由」，也可以引用这条回复；2 分钟内有效。"
    assert (
        reply_line(3, 1.0, language=Language.ENGLISH)
        == 'Answer "approve A3" or "deny A3 reason", or quote this, within 1 minutes.'
    )
    assert read_answer("approve A3") == Reply("approve", 3)
    assert read_answer("deny A3 not now") == Reply("deny", 3, "not now")
