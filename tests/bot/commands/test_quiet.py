from __future__ import annotations

import time

from bot.commands.phrases import NOT_NOW
from bot.commands.quiet import BAD, ENDED, HOW, MUTED, NOT, quiet_command
from bot.commands.quiet import NOW as IS_QUIET
from bot.domain.traits import Audience
from bot.memory.wishes import Wish, Wishes
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, ManualClock, RecordingStore


async def test_a_groups_admins_ask_for_quiet_see_it_and_end_it() -> None:
    store = RecordingStore()
    wishes = Wishes(store=store, choices=store, clock=ManualClock(NOW))
    command = quiet_command(wishes, lambda _: False)
    assert command.audience is Audience.GROUP_ADMIN
    assert await lines(command) == [NOT[0], HOW[0]]
    until = time.strftime("%H:%M", time.localtime(NOW + 600))
    assert await lines(command, "10", "分钟") == [f"好，安静到 {until}；期间我照样看消息。"]
    assert wishes.of(GROUP) == Wish(is_mute=False, until=NOW + 600)
    assert await lines(command) == [f"安静到 {until}", HOW[0]]
    later = time.strftime("%m-%d %H:%M", time.localtime(NOW + 3 * 86400))
    assert await lines(command, "3d", chinese=False) == [f"Fine, quiet until {later}; I go on reading."]
    assert await lines(command, "forever") == [BAD[0]]
    store.trouble = True
    assert await lines(command, "1h") == await lines(command, "off") == [NOT_NOW[0]]
    store.trouble = False
    assert await lines(command, "OFF") == [ENDED[0]]
    assert wishes.of(GROUP) is None


async def test_quiet_of_other_kinds_is_told_too() -> None:
    store = RecordingStore()
    wishes = Wishes(store=store, choices=store, clock=ManualClock(NOW))
    command = quiet_command(wishes, lambda where: where == GROUP)
    assert await lines(command) == [IS_QUIET[0], HOW[0]]
    await wishes.keep(GROUP, Wish(is_mute=True))
    assert await lines(command) == [MUTED[0], HOW[0]]
