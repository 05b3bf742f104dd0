"""Answered once, whatever becomes of the journal at a start: by what QQ shows, and by a ledger of effects."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from adapters.onebot import sockets
from adapters.onebot.calls import OneBotCalls
from adapters.simulator import actions
from adapters.simulator.call import Action, Done, Params
from adapters.simulator.faults import Fault
from adapters.simulator.world import World, event_of
from adapters.storage import database, writer
from bot.app import Service
from bot.chat import unconfirmed
from bot.chat.deduplicator import Past
from bot.runtime import background
from tests.e2e.test_faults import shorten
from tests.e2e.test_outages import ONE, TWO, House
from tests.e2e.test_restart import life
from tests.fakes import said, until
from tests.fallback_lines import ENGLISH, LOST, SORRY
from tests.torture import bells
from tests.torture.model import Asked


class Square(House):
    """A house with a bell, and a ledger of who rang it; every history that is asked for is counted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tools = folder / "tools"
        self.tools.mkdir()
        shutil.copy(bells.__file__, self.tools)
        self.histories: Counter[int] = Counter()
        self.hangs = ""

    @property
    def rung(self) -> list[str]:
        """What the tool did."""
        ledger = self.tools / bells.LEDGER.name
        return ledger.read_text("utf-8").splitlines() if ledger.exists() else []

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Service]:
        living = life(self.folder, self.model, self.simulator, self.url, tools_dir=self.tools)
        async with asyncio.timeout(20), living as self._service:
            yield self._service

    async def _on_ask(self, asked: Asked) -> None:
        await super()._on_ask(asked)
        if asked.kind + str(asked.step) == self.hangs:
            await asyncio.get_running_loop().create_future()

    async def reconnect(self) -> None:
        """The socket drops and comes back, and every place that was heard is caught up with."""
        before = self.histories.total()
        places = len(self.service.app.active_conversations._heard)
        await self.leave()
        await self.come_back()
        await until(lambda: self.histories.total() >= before + places)
        await self.service.wait_idle()

    async def recovered(self, past: Past) -> None:
        """The journal was read, and this is what it knows of earlier processes."""
        seen = self.service.app.seen
        await until(lambda: seen.past_of(said("long ago")) is past)

    async def repeat(self, *identities: tuple[int, str, int, str], anew: bool = False) -> None:
        """The server tells events once more; `anew`: as if they were said just now."""
        world = self.simulator.world
        for identity in identities:
            event = event_of(world, world.messages.find(int(identity[-1])))
            await self.simulator.push({**event, "time": int(time.time()) + 1} if anew else event)
        await self.service.app.seen.wait(await self.say("tea time"))


@pytest.fixture
async def square(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Square]:
    for module, name, seconds in (
        (sockets, "LONGEST_WAIT", 0.02),
        (writer, "LONGEST_PAUSE", 0.05),
        (background, "RETRY", 0.02),
        (database, "BUSY", 0.05),
        (database, "BUSY_MIGRATING", 0.05),
        (unconfirmed, "LAG", 0.05),
    ):
        monkeypatch.setattr(module, name, seconds)
    house = Square(tmp_path)
    for name in ("get_group_msg_history", "get_friend_msg_history"):
        monkeypatch.setitem(actions.ACTIONS, name, _counted(house, name))
    async with house.model, house.simulator:
        house.url = await house.simulator.serve()
        yield house


def _counted(house: Square, name: str) -> Action:
    history = actions.ACTIONS[name]

    def counted(world: World, params: Params) -> Done:
        house.histories[params.number("group_id" if "group" in name else "user_id")] += 1
        return history(world, params)

    return counted


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Another program has the journal for itself: it can be neither written nor read."""
    other = sqlite3.connect(folder / "bot.db", isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE").close()
    other.execute("BEGIN EXCLUSIVE").close()
    try:
        yield
    finally:
        other.close()


def damage(folder: Path) -> None:
    """The journal is none any more."""
    for file in folder.glob("bot.db*"):
        file.unlink()
    (folder / "bot.db").write_bytes(b"not a database at all " * 1000)


async def ask_four(house: Square) -> None:
    """Two questions in each group, with words and effects, all of them answered."""
    async with house.life():
        for number, (kind, group) in enumerate([("ring", ONE), ("plain", ONE), ("ring", TWO), ("tool", TWO)], 1):
            await house.talk(f"@bot {kind}#q{number}", group=group)
    assert house.said() == ["F:q1", "A:q2"]
    assert house.said(group=TWO) == ["F:q3", "S:q4", "F:q4"]
    assert house.rung == ["ring q1", "ring q3"]


async def test_what_was_answered_is_not_answered_again_while_the_journal_is_locked_and_once_it_is_not(
    square: Square,
) -> None:
    await ask_four(square)
    sent, rung = len(square.simulator.sent), square.rung
    async with square.life():
        pass  # what was written ahead is in the tables now
    with locked(square.folder):
        async with square.life():
            await square.recovered(Past.UNREAD)
            for group in (ONE, TWO):
                await square.talk("tea time", group=group)
            await square.reconnect()
            await square.talk("@bot plain#q5")
            assert len(square.simulator.sent) == sent + 1
    async with square.life() as service:
        await square.talk("coffee time")
        await square.reconnect()
        await square.talk("@bot plain#q6", group=TWO)
        await service.wait_idle()
    assert square.said() == ["F:q1", "A:q2", "A:q5"]
    assert square.said(group=TWO) == ["F:q3", "S:q4", "F:q4", "A:q6"]
    assert square.rung == rung


async def test_what_was_answered_is_not_answered_again_when_the_journal_comes_back_in_the_same_life(
    square: Square,
) -> None:
    await ask_four(square)
    async with square.life():
        pass
    lock = locked(square.folder)
    with lock:
        living = square.life()
        service = await living.__aenter__()
        await square.talk("tea time")
        await square.reconnect()
    before = square.histories.total()
    await until(lambda: square.histories.total() >= before + 2)  # the journal is read, and says where we were
    await square.talk("@bot plain#q5", group=TWO)
    await service.wait_idle()
    await living.__aexit__(None, None, None)
    assert square.said() == ["F:q1", "A:q2"]
    assert square.said(group=TWO) == ["F:q3", "S:q4", "F:q4", "A:q5"]
    assert square.rung == ["ring q1", "ring q3"]


async def test_what_was_answered_is_not_answered_again_where_the_journal_was_set_aside(square: Square) -> None:
    await ask_four(square)
    damage(square.folder)
    async with square.life():
        await square.recovered(Past.LOST)
        for group in (ONE, TWO):
            await square.talk("tea time", group=group)
        await square.reconnect()
        await square.talk("@bot plain#q5", group=TWO)
    assert square.said() == ["F:q1", "A:q2"]
    assert square.said(group=TWO) == ["F:q3", "S:q4", "F:q4", "A:q5"]
    assert square.rung == ["ring q1", "ring q3"]


async def test_what_was_answered_is_not_answered_again_with_an_empty_journal(square: Square) -> None:
    await ask_four(square)
    for file in square.folder.glob("bot.db*"):
        file.unlink()
    async with square.life():
        for group in (ONE, TWO):
            await square.talk("tea time", group=group)
        await square.leave()
        await square.say("@bot ring#q5")
        await square.come_back()
        await until(lambda: "F:q5" in square.said())
        await square.talk("@bot plain#q6", group=TWO)
    assert square.said() == ["F:q1", "A:q2", "F:q5"]
    assert square.said(group=TWO) == ["F:q3", "S:q4", "F:q4", "A:q6"]
    assert square.rung == ["ring q1", "ring q3", "ring q5"]


async def test_who_was_cut_off_after_an_effect_is_asked_to_ask_again_where_the_journal_was_set_aside(
    square: Square,
) -> None:
    square.hangs = "ring1"
    async with square.life():
        await square.say("@bot ring#q1")
        await until(lambda: square.rung == ["ring q1"])
    square.hangs = ""
    damage(square.folder)
    async with square.life():
        await square.recovered(Past.LOST)
        await square.talk("tea time")
        await square.reconnect()
        await until(square.said)
        await square.reconnect()
        await square.talk("@bot plain#q2")
    assert square.said() == [ENGLISH[SORRY], "A:q2"]
    assert square.rung == ["ring q1"]


async def test_a_question_that_was_taken_twice_without_the_journal_is_answered_once(
    square: Square, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "RETRY", 60.0)
    square.hangs = "plain0"
    async with square.life():
        questions = [await square.say(f"@bot plain#q{number}") for number in (1, 2, 3)]
        for question in questions:
            await square.service.app.seen.wait(question)
    with locked(square.folder):
        living = square.life()
        await living.__aenter__()
        await square.repeat(*questions, anew=True)
    rows = "SELECT count(*) FROM messages"
    await until(lambda: square.journal(rows) == [7])
    await living.__aexit__(None, None, None)
    square.hangs = ""
    async with square.life() as service:
        await until(lambda: len(square.said()) >= 3)
        await square.talk("@bot plain#q4")
        await service.wait_idle()
    assert square.said() == ["A:q1", "A:q2", "A:q3", "A:q4"]


async def test_what_a_server_repeats_is_not_answered_again_but_what_nobody_took_is_once_the_journal_is_read(
    square: Square,
) -> None:
    square.simulator.world.now = lambda: time.time() - 5
    async with square.life() as service:
        questions = [await square.say(f"@bot ring#q{number}") for number in (1, 2)]
        for question in questions:
            await service.wait_settled(question)
    missed = await square.say("@bot ring#q3")
    square.simulator.world.now = time.time
    with locked(square.folder):
        living = square.life()
        service = await living.__aenter__()
        await square.repeat(*questions, missed)
        await square.talk("@bot plain#q4")
        assert square.said() == ["F:q1", "F:q2", "A:q4"]
    await until(lambda: "F:q3" in square.said())
    await living.__aexit__(None, None, None)
    assert square.said() == ["F:q1", "F:q2", "A:q4", "F:q3"]
    assert square.rung == ["ring q1", "ring q2", "ring q3"]


# --- an answer that got lost ----------------------------------------------------------------------


async def test_who_asked_for_an_answer_that_never_arrived_is_asked_to_ask_again_once(
    square: Square, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, OneBotCalls.__init__, "deadline", 0.2)
    async with square.life() as service:
        square.simulator.faults.arm(Fault.LOST)
        await square.say("@bot plain#q1")
        await until(lambda: not square.simulator.faults.armed)  # it is on the wire, and lost
        await square.leave()
        await square.come_back()
        await until(lambda: ENGLISH[LOST] in square.said())
        await square.reconnect()
        await square.talk("@bot plain#q2")
        await service.wait_idle()
    async with square.life():
        await square.talk("@bot plain#q3")
    assert square.said() == [ENGLISH[LOST], "A:q2", "A:q3"]
    assert square.journal("SELECT state FROM sends ORDER BY id") == ["dropped", *["confirmed"] * 3]


async def test_who_asked_for_an_answer_that_was_on_the_wire_at_the_end_is_asked_to_ask_again_once(
    square: Square,
) -> None:
    async with square.life():
        square.simulator.faults.arm(Fault.LOST)
        await square.say("@bot plain#q1")
        await until(lambda: not square.simulator.faults.armed)
    for number in (2, 3):
        async with square.life():
            await until(lambda: ENGLISH[LOST] in square.said())
            await square.talk(f"@bot plain#q{number}")
    assert square.said() == [ENGLISH[LOST], "A:q2", "A:q3"]


async def test_an_answer_that_arrived_though_nobody_said_so_is_not_asked_for_again(square: Square) -> None:
    async with square.life():
        square.simulator.faults.arm(Fault.SILENCE)
        await square.say("@bot plain#q1")
        await square.simulator.wait_delivered(1)
    async with square.life():
        await until(lambda: square.journal("SELECT state FROM sends") == ["confirmed"])
        await square.talk("@bot plain#q2")
    assert square.said() == ["A:q1", "A:q2"]
