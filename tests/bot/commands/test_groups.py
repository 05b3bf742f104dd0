from __future__ import annotations

import time

from bot.commands.groups import DONE, NOBODY, WHICH, groups_command, mode_commands
from bot.core.command import AWAY, NOT_NOW
from bot.core.query_results import PlaceSum
from bot.memory.modes import Mode, Modes
from frostagent.types.traits import Audience
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, PRIVATE, RecordingStore
from tests.settings import kept_settings


def modes() -> Modes:
    store = RecordingStore()
    return Modes(settings=kept_settings(store), choices=store)


async def test_an_owner_sees_in_private_where_it_is_in_use() -> None:
    places = (PlaceSum(GROUP, 1200, NOW), PlaceSum(PRIVATE, 3, NOW))
    when = time.strftime("%m-%d %H:%M", time.localtime(NOW))
    command = groups_command(PaperBooks(places=places), held := modes())
    assert await lines(command, where=PRIVATE) == [f"群 4242: 1200, {when}", f"私聊 777: 3, {when}"]
    assert await lines(command) == ["这个请私聊问我。"]
    held.put(GROUP, Mode.ASKED)
    assert await lines(command, where=PRIVATE) == [f"群 4242: 1200, {when}, 等主人的话", f"私聊 777: 3, {when}"]


async def test_nobody_and_no_journal_are_told() -> None:
    assert await lines(groups_command(PaperBooks(), modes()), where=PRIVATE) == [NOBODY.zh]
    assert await lines(groups_command(PaperBooks(away=True), modes()), where=PRIVATE) == [AWAY.zh]


async def test_an_owner_decides_in_the_group_or_by_its_number_in_private() -> None:
    store = RecordingStore()
    modes = Modes(settings=kept_settings(store), choices=store)
    lifted = list[Mode]()
    live, shadow, off = mode_commands(modes, lambda: lifted.append(modes.of(GROUP)))
    assert await lines(off) == [DONE[Mode.OFF].zh.format(group=4242)]
    assert modes.of(GROUP) is Mode.OFF
    assert await lines(live, "4242", where=PRIVATE) == [DONE[Mode.LIVE].zh.format(group=4242)]
    assert modes.of(GROUP) is Mode.LIVE
    for words in ("", "everywhere", "4242" * 5):
        assert await lines(off, words, where=PRIVATE) == [WHICH.zh.format(name="off")]
    store.trouble = True
    assert await lines(off) == [NOT_NOW.zh]
    assert modes.of(GROUP) is Mode.LIVE
    store.trouble = False
    assert await lines(shadow) == [DONE[Mode.SHADOW].zh.format(group=4242)]
    assert lifted == [Mode.OFF, Mode.LIVE, Mode.SHADOW]


def test_all_three_are_for_owners_alone() -> None:
    store = RecordingStore()
    modes = Modes(settings=kept_settings(store), choices=store)
    assert [each.audience for each in mode_commands(modes, lambda: None)] == [Audience.OWNER] * 3
