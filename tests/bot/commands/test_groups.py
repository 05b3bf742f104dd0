from __future__ import annotations

import time

from bot.commands.groups import NOBODY, groups_command
from bot.commands.phrases import AWAY
from bot.domain.books import PlaceSum
from bot.memory.modes import Modes
from bot.policy.new_groups import Mode
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import NOW, lines
from tests.fakes import GROUP, PRIVATE, ManualClock, RecordingStore


def modes() -> Modes:
    store = RecordingStore()
    return Modes(store=store, choices=store, clock=ManualClock(NOW))


async def test_an_owner_sees_in_private_where_it_is_in_use() -> None:
    places = (PlaceSum(GROUP, 1200, NOW), PlaceSum(PRIVATE, 3, NOW))
    when = time.strftime("%m-%d %H:%M", time.localtime(NOW))
    command = groups_command(PaperBooks(places=places), held := modes())
    assert await lines(command, where=PRIVATE) == [f"群 4242: 1200, {when}", f"私聊 777: 3, {when}"]
    assert await lines(command) == ["这个请私聊问我。"]
    held.put(GROUP, Mode.ASKED)
    assert await lines(command, where=PRIVATE) == [f"群 4242: 1200, {when}, 等主人的话", f"私聊 777: 3, {when}"]


async def test_nobody_and_no_journal_are_told() -> None:
    assert await lines(groups_command(PaperBooks(), modes()), where=PRIVATE) == [NOBODY[0]]
    assert await lines(groups_command(PaperBooks(away=True), modes()), where=PRIVATE) == [AWAY[0]]
