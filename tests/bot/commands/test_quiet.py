from __future__ import annotations

import time

from bot.commands.phrases import NOT_NOW, STILL_QUIET
from bot.commands.quiet import BAD, DONE, ENDED, GOES_ON, HOW, MUTED, NOT, quiet_command
from bot.commands.quiet import NOW as IS_QUIET
from bot.domain.traits import Audience
from bot.memory.wishes import Wish, Wishes
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, ManualClock, RecordingStore


async def test_a_groups_admins_ask_for_quiet_see_it_and_end_it() -> None:
    store = RecordingStore()
    wishes = Wishes(store=store, choices=store, clock=ManualClock(NOW))
    command = quiet_command(wishes, lambda *_: False)
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


async def test_what_is_told_is_what_holds_afterwards() -> None:
    store = RecordingStore()
    wishes = Wishes(store=store, choices=store, clock=ManualClock(NOW))
    command = quiet_command(wishes, lambda where, at: where == GROUP and at < NOW + 900)
    assert await lines(command) == [IS_QUIET[0], HOW[0]]
    assert [(await lines(command, words))[0][-10:] for words in ("10m", "20m")] == [GOES_ON[0][-10:], DONE[0][-10:]]
    assert await lines(command, "off") == [STILL_QUIET[0]]


async def test_a_silence_is_not_ended_by_asking_for_quiet() -> None:
    store = RecordingStore()
    wishes = Wishes(store=store, choices=store, clock=ManualClock(NOW))
    command = quiet_command(wishes, lambda *_: False)
    await wishes.keep(GROUP, Wish(is_mute=True))
    assert [await lines(command, *words) for words in ((), ("10m",), ("off",))] == [[MUTED[0]]] * 3
    assert wishes.of(GROUP) == Wish(is_mute=True)
