from __future__ import annotations

import time

from bot.commands.phrases import NOT_NOW, STILL_QUIET
from bot.commands.quiet import ALWAYS, BAD, DONE, ENDED, GOES_ON, HOW, MUTED, NOT, quiet_command
from bot.conversation.intake.quiet_hours import QuietHours
from bot.core.command import Command
from bot.memory.modes import Modes
from bot.memory.quiet_overrides import QuietOverride, QuietOverrides
from bot.policy.quiet import Hours
from bot.policy.wake import Rules
from frostagent.types.traits import Audience
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, ManualClock, RecordingStore, same_rules


def quiet(*hours: Hours) -> tuple[Command, QuietOverrides, RecordingStore]:
    """The command where the settings have these hours."""
    store, clock = RecordingStore(), ManualClock(NOW)
    quiet_overrides = QuietOverrides(store=store, choices=store, clock=clock)
    modes = Modes(store=store, choices=store, clock=clock)
    quiet_hours = QuietHours(
        rules=Rules(quiet=hours), local=same_rules, quiet_overrides=quiet_overrides, modes=modes, clock=clock
    )
    return quiet_command(quiet_overrides, quiet_hours.is_hour, quiet_hours.end), quiet_overrides, store


def clock_at(seconds: float) -> str:
    return time.strftime("%H:%M", time.localtime(NOW + seconds))


async def test_a_groups_admins_ask_for_quiet_see_it_and_end_it() -> None:
    command, wishes, store = quiet()
    assert command.audience is Audience.GROUP_ADMIN
    assert await lines(command) == [NOT[0], HOW[0]]
    until = clock_at(600)
    assert await lines(command, "10", "分钟") == [f"好，安静到 {until}；期间我照样看消息。"]
    assert wishes.of(GROUP) == QuietOverride(is_mute=False, until=NOW + 600)
    assert await lines(command) == [f"安静到 {until}", HOW[0]]
    later = time.strftime("%m-%d %H:%M", time.localtime(NOW + 3 * 86400))
    assert await lines(command, "3d", chinese=False) == [f"Fine, quiet until {later}; I go on reading."]
    assert await lines(command, "forever") == [BAD[0]]
    store.trouble = True
    assert await lines(command, "1h") == await lines(command, "off") == [NOT_NOW[0]]
    store.trouble = False
    assert await lines(command, "OFF") == [ENDED[0]]
    assert wishes.of(GROUP) is None


async def test_what_is_told_is_what_holds_afterwards() -> None:
    there = time.localtime(NOW)
    begins = there.tm_hour * 60 + there.tm_min
    command, _, _ = quiet(Hours(begins, (begins + 15) % 1440))
    ends = clock_at(900 - there.tm_sec)
    assert await lines(command) == [f"安静到 {ends}", HOW[0]]
    assert (await lines(command, "10m"))[0] == GOES_ON[0].format(until=clock_at(600))
    assert await lines(command) == [f"安静到 {ends}", HOW[0]]
    assert (await lines(command, "20m"))[0] == DONE[0].format(until=clock_at(1200))
    assert await lines(command, chinese=False) == [f"quiet until {clock_at(1200)}", HOW[1]]
    assert await lines(command, "off") == [STILL_QUIET[0]]


async def test_where_the_settings_have_it_always_quiet_no_end_is_told() -> None:
    command, wishes, _ = quiet(Hours(0, 1440))
    assert await lines(command) == [ALWAYS[0], HOW[0]]
    await wishes.keep(GROUP, QuietOverride(is_mute=False, until=NOW + 60))
    assert await lines(command, chinese=False) == [ALWAYS[1], HOW[1]]


async def test_a_silence_is_not_ended_by_asking_for_quiet() -> None:
    command, wishes, _ = quiet()
    await wishes.keep(GROUP, QuietOverride(is_mute=True))
    assert [await lines(command, *words) for words in ((), ("10m",), ("off",))] == [[MUTED[0]]] * 3
    assert wishes.of(GROUP) == QuietOverride(is_mute=True)
