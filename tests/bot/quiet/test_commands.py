from __future__ import annotations

import time

from bot.core.command import NOT_NOW, Command
from bot.quiet.commands import (
    ALWAYS,
    BAD,
    DONE,
    ENDED,
    GOES_ON,
    HOW,
    LIFTED,
    MUTE_DONE,
    MUTED,
    NOT,
    STILL_QUIET,
    mute_command,
    quiet_command,
    unmute_command,
)
from bot.quiet.quiet_hours import QuietHours, QuietOverride
from bot.quiet.rule import Hours, QuietRule
from frostagent.types.traits import Audience
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, ManualClock, RecordingStore
from tests.settings import kept_settings


def quiet(*hours: Hours) -> tuple[Command, QuietHours, RecordingStore]:
    """The command where the settings have these hours."""
    store, clock = RecordingStore(), ManualClock(NOW)
    kept = QuietHours(rule_of=lambda _: QuietRule(hours), settings=kept_settings(store), clock=clock)
    return quiet_command(kept), kept, store


def clock_at(seconds: float) -> str:
    return time.strftime("%H:%M", time.localtime(NOW + seconds))


async def test_a_groups_admins_ask_for_quiet_see_it_and_end_it() -> None:
    command, wishes, store = quiet()
    assert command.audience is Audience.GROUP_ADMIN
    assert await lines(command) == [NOT.zh, HOW.zh]
    until = clock_at(600)
    assert await lines(command, "10", "分钟") == [f"好，安静到 {until}；期间我照样看消息。"]
    assert wishes.override(GROUP) == QuietOverride(is_mute=False, until=NOW + 600)
    assert await lines(command) == [f"安静到 {until}", HOW.zh]
    later = time.strftime("%m-%d %H:%M", time.localtime(NOW + 3 * 86400))
    assert await lines(command, "3d", chinese=False) == [f"Fine, quiet until {later}; I go on reading."]
    assert await lines(command, "forever") == [BAD.zh]
    store.trouble = True
    assert await lines(command, "1h") == await lines(command, "off") == [NOT_NOW.zh]
    store.trouble = False
    assert await lines(command, "OFF") == [ENDED.zh]
    assert wishes.override(GROUP) is None


async def test_what_is_told_is_what_holds_afterwards() -> None:
    there = time.localtime(NOW)
    begins = there.tm_hour * 60 + there.tm_min
    command, _, _ = quiet(Hours(begins, (begins + 15) % 1440))
    ends = clock_at(900 - there.tm_sec)
    assert await lines(command) == [f"安静到 {ends}", HOW.zh]
    assert (await lines(command, "10m"))[0] == GOES_ON.zh.format(until=clock_at(600))
    assert await lines(command) == [f"安静到 {ends}", HOW.zh]
    assert (await lines(command, "20m"))[0] == DONE.zh.format(until=clock_at(1200))
    assert await lines(command, chinese=False) == [f"quiet until {clock_at(1200)}", HOW.en]
    assert await lines(command, "off") == [STILL_QUIET.zh]


async def test_where_the_settings_have_it_always_quiet_no_end_is_told() -> None:
    command, wishes, _ = quiet(Hours(0, 1440))
    assert await lines(command) == [ALWAYS.zh, HOW.zh]
    await wishes.keep_quiet(GROUP, NOW + 60)
    assert await lines(command, chinese=False) == [ALWAYS.en, HOW.en]


async def test_a_silence_is_not_ended_by_asking_for_quiet() -> None:
    command, wishes, _ = quiet()
    await wishes.mute(GROUP)
    assert [await lines(command, *words) for words in ((), ("10m",), ("off",))] == [[MUTED.zh]] * 3
    assert wishes.override(GROUP) == QuietOverride(is_mute=True)


async def test_a_groups_admins_silence_the_bot_and_let_it_speak_again() -> None:
    store, rule = RecordingStore(), QuietRule()
    kept = QuietHours(rule_of=lambda _: rule, settings=kept_settings(store), clock=ManualClock(NOW))
    mute, unmute = mute_command(kept), unmute_command(kept)
    assert mute.audience is unmute.audience is Audience.GROUP_ADMIN
    assert await lines(mute) == [MUTE_DONE.zh]
    assert kept.override(GROUP) == QuietOverride(is_mute=True)
    store.trouble = True
    assert await lines(unmute) == await lines(mute) == [NOT_NOW.zh]
    store.trouble = False
    rule = QuietRule((Hours(0, 1440),))
    assert await lines(unmute) == [STILL_QUIET.zh]
    rule = QuietRule()
    assert await lines(unmute, chinese=False) == [LIFTED.en]
    assert kept.override(GROUP) is None
