from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

from msgspec.structs import replace

from bot.approvals.decision import NO_OWNER
from bot.approvals.tool_call_wording import NOT_PROMISED, TOO_LONG, TOO_MANY, UNREACHABLE
from bot.approvals.tool_calls import SAID_NO
from bot.build import build_rules
from bot.commands import reasons
from bot.commands.reasons import (
    BREAKS,
    CALLS,
    FAILURES,
    NOTHING,
    SILENCES,
    STOPS,
    deciding,
    deciding_denial,
    deciding_end,
    end_of,
    words_of,
)
from bot.core.documents import NEEDS_LIBRARIES
from bot.core.events import MessageReceived
from bot.core.journal import ENDINGS
from bot.core.language import Bilingual, bilingual
from bot.memory.personas import House
from bot.policy.wake import Called, Silence
from config.settings import Settings
from frostagent.types.errors import ModelError, ToolDenied, ToolUnavailable
from frostagent.types.runs import Stop
from frostagent.types.speech import MentionAll, Text
from frostagent.words import ENGLISH
from tests.bot.hall import Hall
from tests.cases import each_case
from tests.fakes import ScriptedModel, said, words
from tests.owners import both

ROOT = Path(reasons.__file__).parents[2]
CHINESE = re.compile("[\u4e00-\u9fff]")
KIND = re.compile(r"""(?:error ?= ?|text = |state, |GIVEN_UP = )f?"([a-z_]+): """)
"""How a run that fails, or is stopped by no word, says of which kind that is, where it is no ModelError."""

OTHERWISE = {"bot_user_rate": "0", "bot_group_rate": "0", "bot_loop": "0", "bot_stale": "0"}
"""The values that switch off what has a default."""

ALL = (*CALLS.values(), *SILENCES.values(), *STOPS.values())


def kinds(error: type[ModelError] = ModelError) -> Iterator[str]:
    yield error.kind
    for one in error.__subclasses__():
        yield from kinds(one)


def test_every_reason_there_is_stands_in_the_table_with_what_decides_it() -> None:
    assert set(CALLS) == set(get_args(Called))
    assert set(SILENCES) == set(Silence)
    assert set(STOPS) == set(Stop)


def test_every_kind_of_failure_says_what_decides_it() -> None:
    rooms = (ROOT / "frostagent/engine", ROOT / "bot/chat")
    told = {kind for room in rooms for file in room.glob("*.py") for kind in KIND.findall(file.read_text("utf-8"))}
    assert {"limit", "deadline", "tool", "empty", "bug"} <= told
    ours = {*kinds(), *told} - {"interrupted"}  # an end of its own
    assert ours == {*FAILURES, *BREAKS}
    assert not FAILURES.keys() & BREAKS.keys()


def test_only_what_nothing_decides_has_no_setting() -> None:
    undecided = {one for one in ALL if one.deciding == NOTHING}
    assert {one.words.en for one in undecided} == {
        *("written in private", "mentioned", "quoted me", "asked again after a crash"),
        *("found after a reconnect, answered or too old", "answered", "failed", "was interrupted by a restart"),
    }


def test_each_setting_that_is_named_is_one() -> None:
    known = {name.upper() for name in Settings.model_fields}
    words = [text for one in ALL for text in both(one.deciding)] + [
        text for one in (*FAILURES.values(), *BREAKS.values()) for text in both(one)
    ]
    words += [reasons.CALLED_BY, *(text for _, one in reasons.DENIED_BY for text in both(one or ""))]
    named = {name for text in words for name in re.findall(r"[A-Z]+_[A-Z_]+(?![A-Z_…])", text)}
    assert named <= known
    begun = {name for text in words for name in re.findall(r"([A-Z_]+_)…", text)}
    assert (
        {name for name in begun if any(one.startswith(name) for one in known)}
        == begun
        == {
            "BOT_DAY_COST_",
            "BOT_DAY_TOKENS_",
        }
    )


def test_in_chinese_it_is_chinese_and_in_english_english() -> None:
    assert [one.words.zh for one in ALL if not CHINESE.search(one.words.zh)] == []
    assert [one.words.en for one in ALL if CHINESE.search(one.words.en + both(one.decides)[1])] == []


def test_what_an_older_journal_holds_is_told_as_it_stands() -> None:
    assert both(words_of("of before")) == ("of before", "of before")
    assert deciding("of before") == NOTHING
    assert both(end_of("of before")) == ("of before", "of before")
    assert (end_of(""), deciding_end(""), deciding_end("answered"), deciding_end("x")) == (
        reasons.GOES_ON.fill(),
        None,
        None,
        None,
    )


def test_a_failure_is_decided_by_its_kind() -> None:
    assert deciding_end("failed", "model_not_found: no such model") == bilingual("LLM_MODEL")
    assert deciding_end("failed", "bug: KeyError") == NOTHING


def test_fallbacks_decide_nothing_unless_there_are_any() -> None:
    naming = {kind: told for kind, told in FAILURES.items() if isinstance(told, str) and "LLM_FALLBACKS" in told}
    assert len(naming) > 4
    for kind, told in naming.items():
        assert deciding_end("failed", f"{kind}: x") == bilingual(told)
        alone = deciding_end("failed", f"{kind}: x", has_fallbacks=False)
        others = told.replace(", LLM_FALLBACKS", "").replace("LLM_FALLBACKS", "")
        assert alone == (bilingual(others) if others else reasons.NO_OTHER.fill()), kind
    for kind in FAILURES.keys() - naming.keys():
        assert deciding_end("failed", f"{kind}: x", has_fallbacks=False) == deciding_end("failed", f"{kind}: x")


def test_each_ending_has_words() -> None:
    told = {ending: end_of(ending) for ending in ENDINGS}
    assert len(set(told.values())) == len(told)
    assert all(both(words) != (str(ending), str(ending)) for ending, words in told.items())


def test_of_a_failure_whose_kind_nobody_knows_or_may_hear_nothing_is_said_to_decide() -> None:
    assert deciding_end("failed", "of before: x") is deciding_end("failed") is None
    told = {kind for kind in FAILURES if deciding_end("failed", f"{kind}: x", is_owner=False) is not None}
    assert told == {"day_spent"}
    assert deciding_end("failed", "day_spent: x", is_owner=False) == bilingual(reasons.DAY)


async def reasons_of(events: tuple[MessageReceived, ...], **given: object) -> set[str]:
    """Why these woke the bot or did not, with these settings."""
    house = Hall(ScriptedModel(*[words("ok")] * 9), build_rules(Settings.model_validate(given)))
    async with asyncio.timeout(30), house.outbox.open(), house.lanes.open(house.lane.do):
        house.late.preload([], [])
        for event in events:
            await house.take(event)
        return {one.reason for one in house.verdicts} | {one.reason for one in house.hearing.ignored}


ROBOT = said("hi", user=2854196301)
DECIDED = [
    ("bot_block", "777", Silence.BLOCKED, (said("hi"),)),
    ("bot_groups", "1", Silence.NOT_IN_GROUPS, (said("hi"),)),
    ("bot_users", "5", Silence.NOT_LISTED, (said("hi"),)),
    ("bot_robots", "777", Silence.ROBOT, (said("hi"),)),
    ("bot_user_rate", "2/60", Silence.USER, tuple(said("hi") for _ in range(3))),
    ("bot_group_rate", "2/60", Silence.GROUP, tuple(said("hi", user=user) for user in (5, 6, 7))),
    ("bot_loop", "3", Silence.LOOP, tuple(said("hi") for _ in range(4))),
    ("bot_stale", "120", Silence.STALE, (said("hi", at=False), replace(said("hi"), time=said("").time - 122))),
    ("bot_name", "小霜", "name", (said("小霜，在吗", at=False),)),
    ("bot_aliases", "小霜", "name", (said("小霜，在吗", at=False),)),
    ("bot_prefixes", "/ai", "prefix", (said("/ai hi", at=False),)),
    ("bot_at_all", "true", "all", (said((MentionAll(), Text("hi")), at=False),)),
    ("bot_chance", "1", "chance", (said("hi", at=False),)),
]


@each_case(("name", "value", "reason", "events"), DECIDED)
async def test_the_setting_that_is_named_decides_it(
    name: str, value: str, reason: str, events: tuple[MessageReceived, ...]
) -> None:
    assert name.upper() in deciding(reason).replace(",", "").split()
    otherwise = OTHERWISE.get(name, Settings.model_fields[name].default)
    assert reason in await reasons_of(events, **{name: value})
    assert reason not in await reasons_of(events, **{name: otherwise})


async def test_quiet_hours_decide_that_it_is_quiet_and_their_mode_for_whom() -> None:
    always = {"bot_quiet": "00:00-12:00,12:00-24:00"}
    weak, strong = said("小霜，在吗", at=False), said("hi")
    assert await reasons_of((weak, strong), bot_name="小霜", **always) == {Silence.QUIET, "mention"}
    assert await reasons_of((strong,), **always, bot_quiet_mode="all") == {Silence.QUIET}
    assert await reasons_of((weak, strong), bot_name="小霜") == {"name", "mention"}
    assert {"BOT_QUIET", "BOT_QUIET_MODE"} <= set(deciding(Silence.QUIET).replace(",", "").split())


def test_what_a_group_may_have_of_its_own_by_the_file_of_groups_names_that_file() -> None:
    denied = deciding_denial("kick", ENGLISH.only_for.format(name="kick", who="owner"))
    decided = {
        "quiet": (deciding(Silence.QUIET),),
        "chance": (deciding("chance"), bilingual(reasons.CALLED_BY)),
        "chime_in": (deciding("chime 8"),),
        "day": (deciding(Silence.DAY), deciding_end("out_of_budget"), deciding_end("failed", "day_spent: x")),
        "audiences": (denied,),
    }
    assert {field.name for field in fields(House)} - {
        "persona",
        "rules",
        "welcome",
        "farewell",
        "join",
        "recap",
    } == decided.keys()
    for name, told in decided.items():
        assert ["GROUPS_FILE" in text for one in told for text in both(one or "")] == [True] * 2 * len(told), name


STORED = [
    ("kick may not be run. Do without it.", reasons.BY_NAME.fill()),
    ("kick is only for group admins, in their own words alone. Tell the asker so.", bilingual(reasons.AUDIENCES)),
    ("the tool call was denied: the owner said no: not now", reasons.BY_WORD),
    ("the tool call was denied: nobody allowed it in time", reasons.IN_TIME),
    ("the tool call was denied: no owner of the bot could be reached", reasons.NONE_REACHED),
    ("the tool call was denied: the bot has no owner who could be asked (BOT_OWNERS is empty)", reasons.NO_ONE),
    ("the tool call was denied: its arguments are too long to be shown to the owner", None),
    ("the tool call was denied: a subagent cannot wait for somebody's word. Do without it", None),
    (
        (
            "the tool call was denied: 3 requests of this asker wait for the owner's word already, this one was not "
            "made. Do not try again; say that those must be decided first"
        ),
        None,
    ),
    (
        (
            "the tool call was denied: what was allowed cannot be written down at the moment, so it was not done; it "
            "may be asked for later"
        ),
        None,
    ),
]
"""Sentences as journals hold them, which are never changed here: whoever changes one in the code adds the new one."""


@each_case(("sentence", "decides"), STORED)
def test_what_denied_a_call_is_known_of_the_rows_that_journals_hold(sentence: str, decides: Bilingual | None) -> None:
    assert deciding_denial("kick", f"error: {sentence} [TOOL_DENIED]") == decides


def test_a_library_that_is_missing_is_named() -> None:
    told = ToolUnavailable(f"{NEEDS_LIBRARIES} [文件 没有安装读 PDF 和电子书的库]").told
    assert deciding_denial("look", told) == reasons.INSTALL.fill()


async def test_of_robots_that_qq_tells_of_no_setting_is_said_to_decide_alone() -> None:
    assert await reasons_of((ROBOT,), bot_users="2854196301", bot_groups="4242") == {Silence.ROBOT}
    assert deciding(Silence.ROBOT) != "BOT_ROBOTS"


def test_what_denied_a_call_is_found_by_what_the_model_was_told() -> None:
    def by(told: str) -> Bilingual | None:
        return deciding_denial("kick", ToolDenied(told).told)

    assert by(ENGLISH.denied.format(name="kick")) == reasons.BY_NAME.fill()
    assert by(ENGLISH.only_for.format(name="kick", who="owner")) == bilingual("TOOLS_AUDIENCE, GROUPS_FILE")
    assert by(ENGLISH.not_allowed.format(reason="not today")) == reasons.BY_WORD
    assert (
        by(ENGLISH.denied.format(name="ban"))
        is by(f"x {ENGLISH.denied.format(name='kick')}")
        is deciding_denial("kick", "")
        is None
    )


def test_of_a_word_that_was_waited_for_is_told_only_what_is_true() -> None:
    def by(reason: str) -> Bilingual | None:
        return deciding_denial("kick", ToolDenied(ENGLISH.not_allowed.format(reason=reason)).told)

    assert by(SAID_NO) == by(f"{SAID_NO}: {NO_OWNER}") == reasons.BY_WORD
    assert [by(NO_OWNER), by(UNREACHABLE)] == [reasons.NO_ONE, reasons.NONE_REACHED]
    assert ["BOT_OWNERS" in text for told in (reasons.NO_ONE, reasons.NONE_REACHED) for text in both(told)] == [
        True
    ] * 4
    assert by(ENGLISH.nobody_answered) == reasons.IN_TIME
    assert {by(reason) for reason in (TOO_MANY, TOO_LONG, NOT_PROMISED, ENGLISH.nobody_to_ask)} == {None}


def test_what_was_stopped_is_decided_by_a_word_only_where_somebody_said_it() -> None:
    assert deciding_end("stopped") == STOPS[Stop.STOPPED].deciding
    assert ["/stop" in text for text in both(STOPS[Stop.STOPPED].deciding)] == [True, True]
    for is_owner in (True, False):
        told = [deciding_end("stopped", f"{kind}: x", is_owner=is_owner) for kind in BREAKS]
        assert told == [bilingual(one) for one in BREAKS.values()]
    assert [one for told in BREAKS.values() for one in both(told) if "/stop" in one] == []
