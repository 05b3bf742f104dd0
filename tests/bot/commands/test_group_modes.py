from __future__ import annotations

from bot.commands.group_modes import DONE, WHICH, live_command, off_command
from bot.commands.phrases import NOT_NOW
from bot.memory.modes import Modes
from bot.policy.new_groups import Mode
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore


async def test_an_owner_decides_in_the_group_or_by_its_number_in_private() -> None:
    store = RecordingStore()
    modes = Modes(store=store, choices=store, clock=ManualClock(NOW))
    assert await lines(off_command(modes)) == [DONE[Mode.OFF][0].format(group=4242)]
    assert modes.of(GROUP) is Mode.OFF
    assert await lines(live_command(modes), "4242", where=PRIVATE) == [DONE[Mode.LIVE][0].format(group=4242)]
    assert modes.of(GROUP) is Mode.LIVE
    for words in ("", "everywhere"):
        assert await lines(off_command(modes), words, where=PRIVATE) == [WHICH[0].format(name="off")]
    store.trouble = True
    assert await lines(off_command(modes)) == [NOT_NOW[0]]
    assert modes.of(GROUP) is Mode.LIVE
