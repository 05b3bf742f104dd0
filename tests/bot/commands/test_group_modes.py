from __future__ import annotations

from bot.commands.groups import DONE, WHICH, mode_commands
from bot.commands.phrases import NOT_NOW
from bot.domain.traits import Audience
from bot.memory.modes import Modes
from bot.policy.new_groups import Mode
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore


async def test_an_owner_decides_in_the_group_or_by_its_number_in_private() -> None:
    store = RecordingStore()
    modes = Modes(store=store, choices=store, clock=ManualClock(NOW))
    lifted = list[Mode]()
    live, shadow, off = mode_commands(modes, lambda: lifted.append(modes.of(GROUP)))
    assert await lines(off) == [DONE[Mode.OFF][0].format(group=4242)]
    assert modes.of(GROUP) is Mode.OFF
    assert await lines(live, "4242", where=PRIVATE) == [DONE[Mode.LIVE][0].format(group=4242)]
    assert modes.of(GROUP) is Mode.LIVE
    for words in ("", "everywhere", "4242" * 5):
        assert await lines(off, words, where=PRIVATE) == [WHICH[0].format(name="off")]
    store.trouble = True
    assert await lines(off) == [NOT_NOW[0]]
    assert modes.of(GROUP) is Mode.LIVE
    store.trouble = False
    assert await lines(shadow) == [DONE[Mode.SHADOW][0].format(group=4242)]
    assert lifted == [Mode.OFF, Mode.LIVE, Mode.SHADOW]


def test_all_three_are_for_owners_alone() -> None:
    store = RecordingStore()
    modes = Modes(store=store, choices=store, clock=ManualClock(NOW))
    assert [each.audience for each in mode_commands(modes, lambda: None)] == [Audience.OWNER] * 3
