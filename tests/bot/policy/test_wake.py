from __future__ import annotations

from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.events import ANONYMOUS, MessageReceived, masked
from bot.core.segments import Mention, Picture, Segment
from bot.policy.wake import (
    EDGE,
    OFFICIAL_BOTS,
    Ignore,
    NeedsQuoted,
    Observe,
    Rules,
    Silence,
    Verdict,
    Wake,
    is_called,
    is_official_bot,
    is_said_to_nobody,
    judge,
)
from frostagent.types.speech import Face, MentionAll, Quote, Text
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, said

RULES = Rules(names=("Frost", "小霜"), owners=frozenset({999}))


def heard(*segments: Segment | str, user: int = 777) -> MessageReceived:
    """Something said in the group, not to anybody."""
    parts = tuple(Text(part) if isinstance(part, str) else part for part in segments)
    return said(parts, at=False, user=user)


def called(text: str, *names: str) -> bool:
    return is_called(heard(text), names or RULES.names)


# --- who and where --------------------------------------------------------------------------------


def test_a_private_message_wakes() -> None:
    assert judge(said("hi", where=PRIVATE), RULES) == Wake("private")


@each_case(
    "segments",
    [
        (Mention(BOT), Text(" hi")),
        (Text("hi "), Mention(BOT)),
        (Mention(BOT),),
        (Mention(5), Mention(BOT)),
        (Quote("7"), Mention(BOT), Text(" why?")),
        (Picture(), Mention(BOT)),
    ],
)
def test_a_mention_wakes_wherever_it_stands(segments: tuple[Segment, ...]) -> None:
    assert judge(heard(*segments), RULES) == Wake("mention")


@each_case(
    "segments", [(Mention(5), Text("hi")), (MentionAll(), Text("开会了")), (Text(f"@{BOT} hi"),), (Picture(),), ()]
)
def test_what_is_said_to_others_or_to_nobody_is_observed(segments: tuple[Segment, ...]) -> None:
    assert judge(heard(*segments), RULES) == Observe()


def test_a_name_wakes_weakly_since_it_may_be_talk_about_the_bot() -> None:
    assert judge(heard("小霜，在吗"), RULES) == judge(heard("小霜真可爱"), RULES) == Wake("name", weak=True)


def test_a_quote_wakes_only_if_it_quotes_the_bot_which_somebody_must_look_up() -> None:
    assert judge(heard(Quote("7"), "why?"), RULES) == NeedsQuoted("7")
    assert judge(heard(Quote("7"), "Frost, why?"), RULES) == NeedsQuoted("7", Wake("name", weak=True))


@each_case(
    ("message", "rules", "verdict"),
    [
        (said("hi", user=5), Rules(blocked=frozenset({5})), Ignore(Silence.BLOCKED)),
        (said("hi", user=5, where=PRIVATE), Rules(blocked=frozenset({5})), Ignore(Silence.BLOCKED)),
        (said("hi", user=masked(7)), Rules(blocked=frozenset({ANONYMOUS})), Ignore(Silence.BLOCKED)),
        (said("hi"), Rules(groups=frozenset({1})), Ignore(Silence.NOT_IN_GROUPS)),
        (said("hi"), Rules(groups=frozenset({4242})), Wake("mention")),
        (said("hi", where=PRIVATE), Rules(groups=frozenset({1})), Wake("private")),
        (said("hi", user=5), Rules(users=frozenset({6})), Observe(Silence.NOT_LISTED)),
        (said("hi", user=5, at=False), Rules(users=frozenset({6})), Observe()),
        (said("hi", user=5, where=PRIVATE), Rules(users=frozenset({6})), Ignore(Silence.NOT_LISTED)),
        (said("hi", user=5), Rules(users=frozenset({5})), Wake("mention")),
        (said("hi", user=2854196301), Rules(), Observe(Silence.ROBOT)),
        (said("hi", user=5), Rules(robots=frozenset({5})), Observe(Silence.ROBOT)),
        (said("hi", user=5, where=PRIVATE), Rules(robots=frozenset({5})), Ignore(Silence.ROBOT)),
        (said((Quote("7"),), user=2854196301, at=False), Rules(), NeedsQuoted("7", against=Silence.ROBOT)),
        (
            said((Quote("7"),), user=5, at=False),
            Rules(users=frozenset({6})),
            NeedsQuoted("7", against=Silence.NOT_LISTED),
        ),
        (
            said((Quote("7"), Text("Frost?")), user=5, at=False),
            Rules(users=frozenset({6}), names=("Frost",)),
            Observe(Silence.NOT_LISTED),
        ),
        (said("hi", user=2854196301), Rules(users=frozenset({2854196301})), Observe(Silence.ROBOT)),
    ],
)
def test_the_lists_decide_who_is_answered_and_who_is_heard(
    message: MessageReceived, rules: Rules, verdict: Verdict
) -> None:
    assert judge(message, rules) == verdict


def test_accounts_of_our_own_and_robots_that_became_known_do_not_wake() -> None:
    message = said("hi", user=5)
    assert judge(message, RULES, accounts={5}) == judge(message, RULES, robots={5}) == Observe(Silence.ROBOT)


def test_what_is_said_to_all_wakes_where_the_operator_wants_it() -> None:
    message = heard(MentionAll(), "开会了")
    assert judge(message, Rules()) == Observe()
    assert judge(message, Rules(at_all=True)) == Wake("all", weak=True)


@each_case("text", ["/ai 天气", "  /AI天气", "／ai", "!天气", "！天气"])
def test_a_prefix_wakes_weakly(text: str) -> None:
    assert judge(heard(text), Rules(prefixes=("/ai", "！"))) == Wake("prefix", weak=True)


@each_case("text", ["/airport", "说 /ai 吧", "", "/a"])
def test_what_only_looks_like_a_prefix_does_not(text: str) -> None:
    assert judge(heard(text), Rules(prefixes=("/ai", ""))) == Observe()


def test_only_words_without_mention_or_quote_are_said_to_nobody() -> None:
    assert is_said_to_nobody(heard("hi", Picture()))
    for other in (Mention(5), MentionAll(), Quote("7")):
        assert not is_said_to_nobody(heard("hi", other))
    assert not is_said_to_nobody(heard(" ", Picture()))


def test_an_owner_is_answered_whatever_the_lists_of_people_say() -> None:
    rules = Rules(owners=frozenset({999}), users=frozenset({1}), blocked=frozenset({999}))
    assert judge(said("hi", user=999, where=PRIVATE), rules) == Wake("private")
    assert judge(said("hi", user=999), rules) == Wake("mention")


def test_not_even_an_owner_is_heard_in_a_group_that_is_not_on_the_list() -> None:
    rules = Rules(owners=frozenset({999}), groups=frozenset({1}))
    assert judge(said("hi", user=999), rules) == Ignore(Silence.NOT_IN_GROUPS)


@each_case(("first", "last"), OFFICIAL_BOTS)
def test_official_bots_are_known_from_the_first_number_to_the_last(first: int, last: int) -> None:
    assert is_official_bot(first)
    assert is_official_bot(last)
    assert not is_official_bot(first - 1)
    assert not is_official_bot(last + 1)


@each_case("user", [3328144510, 2854196301, 2854216399, 66600000, 3889000000, 4010000000])
def test_robots_of_qq_itself_wake_nobody_by_a_mention(user: int) -> None:
    assert judge(said("hi", user=user), RULES) == Observe(Silence.ROBOT)


@given(st.integers(1, 10**10), st.booleans(), st.booleans(), st.booleans())
def test_a_blocked_person_who_is_no_owner_never_wakes(user: int, private: bool, listed: bool, at: bool) -> None:
    rules = Rules(blocked=frozenset({user}), users=frozenset({user} if listed else ()))
    assert isinstance(judge(said("hi", user=user, at=at, where=PRIVATE if private else GROUP), rules), Ignore)


# --- called by name -------------------------------------------------------------------------------


@each_case(
    "text",
    [
        "小霜", "小霜在吗", "小霜，在吗", "小霜：在吗", " 小霜 在吗", "@小霜 在吗", "\n小霜\n在吗", "小霜……", "小霜~~~",
        "小霜～", "小霜😊在吗", "😊小霜在吗", "\u200b小霜在吗", "　小霜　在吗", "——小霜", "小霜❤️", "在吗小霜",
        "在吗，小霜？", "谢谢小霜！！！", "晚安小霜😊", "晚安小霜❤️", "晚安小霜👍🏻", "晚安，小霜～～", "晚安小霜——",
        "晚安小霜 \u200d",
        "frost", "Frost", "FROST!", "Frost, are you there?", "frost are you there", "frost: hi", "frost... hi",
        "frost - hi", "frost—hi", "thanks, Frost!", "thanks frost", "are you there, Frost :", "Ｆｒｏｓｔ，在吗",
        "frost在吗", "谢谢frost", "Frost-你好", "frost's\nfrost",
    ],
)  # fmt: skip
def test_a_name_at_the_beginning_or_the_end_calls(text: str) -> None:
    assert called(text)


@each_case(
    "text",
    [
        "", " ", "！？", "😊", "我觉得小霜挺好的", "今天小霜没来", "大霜，在吗", "小 霜在吗", "“小霜”是谁",
        "「小霜」好看吗", "《小霜》",
        "I like frost in winter", "defrost", "please defrost", "permafrost!", "frosty weather", "Frosties", "frost2",
        "2frost", "frost-bitten toes", "frost_bite", "frost's bug", "frost’s bug", "hoar-frost", "no_frost", "fros",
        "rost", "f r o s t",
    ],
)  # fmt: skip
def test_talk_about_the_bot_or_of_other_words_does_not(text: str) -> None:
    assert not called(text)


@each_case(
    ("text", "name"),
    [
        ("AI画个猫", "AI"),
        ("ai 你好", "AI"),
        ("bot2 hi", "bot2"),
        ("霜降", "霜"),
        ("C++好学吗", "C++"),
        ("straße, hi", "STRASSE"),
    ],
)
def test_any_name_an_operator_gives_is_heard(text: str, name: str) -> None:
    assert called(text, name)


@each_case(("text", "name"), [("C 语言好学吗", "C++"), ("aim high", "AI"), ("bot22 hi", "bot2")])
def test_a_part_of_another_name_is_not_the_name(text: str, name: str) -> None:
    assert not called(text, name)


@each_case("names", [(), ("",), ("  ",), ("！？",)])
def test_a_bot_without_a_name_cannot_be_called(names: tuple[str, ...]) -> None:
    assert not is_called(heard("hi"), names)
    assert not is_called(heard(""), names)


def test_only_words_are_listened_to() -> None:
    assert is_called(heard(Face("1"), "小霜", Picture(), "在吗"), RULES.names)
    assert not is_called(heard(Mention(5, "小霜"), "在吗"), RULES.names)


@given(st.text(max_size=20), st.sampled_from(["小霜", "Frost"]))
def test_whoever_says_the_name_and_a_comma_calls(text: str, name: str) -> None:
    assert called(f"{name}，{text}")
    assert called(f"{text}，{name}")


@given(st.text(), st.text(max_size=5))
def test_no_text_and_no_name_breaks_it(text: str, name: str) -> None:
    assert isinstance(called(text, name), bool)


HOSTILE = {"marks": "a" + "\u0301\u0323" * 120_000, "blanks": "\u3000" * 480_000, "ligatures": "\ufdfa" * 480_000}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_of_a_long_text_only_the_ends_are_brought_into_one_form(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes quadratic time: 480 kB of marks held everybody up for many seconds."""
    folded: list[int] = []

    def counting(form: Literal["NFKC"], unfolded: str) -> str:
        folded.append(len(unfolded))
        return normalize(form, unfolded)

    monkeypatch.setattr("bot.policy.wake.normalize", counting)
    assert not called(text, "小霜")
    assert sum(folded) <= 2 * EDGE + len("小霜")


@each_case("text", HOSTILE.values())
def test_a_name_at_an_end_of_a_long_text_calls_and_in_its_middle_not(text: str) -> None:
    assert called(f"小霜，{text}")
    assert called(f"{text}，小霜！")
    assert not called(f"x{text}，小霜，{text}x")
    assert not called(f"x{text}defrost", "frost")
