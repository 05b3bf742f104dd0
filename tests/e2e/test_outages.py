"""The whole service while QQ is away, and while its data folder cannot be written: who notices, what is made good.

How the journal alone takes a full disk, a file in its place, a lock or damage: `tests/adapters/storage/test_store.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from adapters.onebot import sockets
from adapters.simulator import actions
from adapters.simulator.call import Done, Params
from adapters.simulator.server import Simulator
from adapters.simulator.world import Person, World
from adapters.storage import database, notices, writer
from bot.app import Service
from bot.outbox.outbox import Outbox
from bot.runtime import background
from tests.e2e.test_restart import life
from tests.fakes import until
from tests.torture.model import Asked, ScriptedModel

ACCOUNT, OWNER, TALKER = 10001, 20001, 20002
ONE, TWO, IDLE = GROUPS = 4242, 4343, 4444
NOBODY = 65534
PATIENCE = 10.0  # seconds for one life; each takes a tenth of one
CANNOT, AGAIN = (line.zh.partition(" (")[0] for line in (notices.CANNOT, notices.AGAIN))


class House:
    """A model, a QQ, and the service between them. What people say is `ago` seconds old.

    QQ goes away when the model is asked for the first step of `away_at`'s answer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ago = 0.0
        self.away_at = ""
        self.model = ScriptedModel(self._on_ask)
        world = World(now=lambda: time.time() - self.ago)
        self.talkers = count(TALKER)
        people = (Person(OWNER, "user1", role="owner"), Person(TALKER, "user2"))
        for group in GROUPS:
            world.add_group(group, f"group {group}", people)
        world.add_friend(people[0])
        self.simulator = Simulator(world)
        self.url = ""
        self._service: Service | None = None

    @property
    def service(self) -> Service:
        assert self._service is not None
        return self._service

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Service]:
        """One life of the service."""
        living = life(self.folder, self.model, self.simulator, self.url, bot_owners={OWNER}, bot_new_group="live")
        async with asyncio.timeout(PATIENCE), living as self._service:
            yield self._service

    async def leave(self) -> None:
        """QQ goes away, and the service notices."""
        await self.simulator.sockets.drop()
        await until(lambda: not self.service.app.peers.accounts())

    async def come_back(self) -> None:
        """QQ is there again."""
        self.simulator.sockets.come_back()
        await self.simulator.wait_connected()

    async def _on_ask(self, asked: Asked) -> None:
        if asked.token == self.away_at and not asked.step:
            await self.leave()

    async def say(self, words: str, *, group: int = ONE, ago: float = 0.0) -> tuple[int, str, int, str]:
        """Somebody who has not spoken says something, so many seconds ago; as what the dispatcher knows it."""
        self.ago = ago
        message_id = await self.simulator.say(words, group_id=group, user_id=next(self.talkers))
        return ACCOUNT, "group", group, str(message_id)

    async def talk(self, words: str, *, group: int = ONE, ago: float = 0.0) -> None:
        """The same, and it is taken, and answered if it is a question."""
        await self.service.wait_settled(await self.say(words, group=group, ago=ago))
        await self.service.wait_idle()

    def said(self, *, group: int = ONE) -> list[str]:
        """What the bot said in a group, as people saw it."""
        return [message.text for message in self.simulator.delivered if message.group_id == group]

    def told(self) -> list[str]:
        """What the bot told its owner."""
        return [message.text for message in self.simulator.delivered if message.user_id == OWNER]

    def prompt(self, token: str) -> str:
        """What the model was first asked for the answer to a question."""
        return next(str(asked.messages) for asked in self.model.asked if asked.token == token)

    def kinds_told(self) -> list[str]:
        """The same, each line up to what is particular about it."""
        return [line.partition(" (")[0] for line in self.told()]

    def rounds(self, token: str) -> list[str]:
        """The answers to earlier questions that the model was told with this one, in order."""
        return re.findall(r"A:q[0-9]", self.prompt(token))

    def journal(self, query: str) -> list[Any]:
        """What another program finds in the journal."""
        with closing(sqlite3.connect(self.folder / "bot.db")) as journal:
            return [row[0] for row in journal.execute(query)]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of a second and more: before the next dial, the next attempt to write, the next look at the journal."""
    monkeypatch.setattr(sockets, "LONGEST_WAIT", 0.02)
    monkeypatch.setattr(writer, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(background, "RETRY", 0.02)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[House]:
    house = House(folder)
    async with house.model, house.simulator:
        house.url = await house.simulator.serve()
        yield house
    assert house.model.invalid == []


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often QQ was asked for the history of each group."""
    counter: Counter[int] = Counter()
    history = actions.get_group_msg_history

    def counted(world: World, params: Params) -> Done:
        counter[params.number("group_id")] += 1
        return history(world, params)

    monkeypatch.setitem(actions.ACTIONS, "get_group_msg_history", counted)
    return counter


# --- QQ is away -----------------------------------------------------------------------------------


async def test_an_answer_that_is_ready_while_nobody_is_connected_is_said_once_when_somebody_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "bot.outbox.sender")
    async with opened(tmp_path) as house, house.life() as service:
        house.away_at = "q1"
        await house.say("@bot plain#q1")
        await until(lambda: f"cannot send to {ACCOUNT}:group:{ONE} yet" in caplog.text)
        await until(lambda: house.journal("SELECT state FROM sends") == ["queued"])  # where a restart would find it
        assert house.simulator.sent == []
        assert service.app.lanes.active == 1  # the run waits for it
        await house.come_back()
        await house.simulator.wait_delivered(1)
        await service.wait_idle()
        await house.leave()
        await house.come_back()  # once more: what was said is not said again
        await house.talk("@bot plain#q2")
    assert house.said() == ["A:q1", "A:q2"]
    assert house.prompt("q2").count("A:q1") == 1
    assert "排队" not in house.prompt("q2")
    assert house.journal("SELECT state FROM sends") == ["confirmed"] * 2
    assert len(house.simulator.sent) == 2


async def test_a_run_goes_on_without_qq_and_all_it_said_arrives_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults: Any = Outbox.send_all.__kwdefaults__
    monkeypatch.setitem(defaults, "patience", 0.05)
    async with opened(tmp_path) as house, house.life() as service:
        house.away_at = "q1"
        await house.say("@bot pair#q1")
        await until(lambda: len(house.model.asked) == 2)
        await service.app.lanes.wait_idle()
        assert house.simulator.sent == []
        await house.come_back()
        await service.wait_idle()
        await house.talk("@bot plain#q2")
    assert house.said() == ["S:q1-0", "S:q1-1", "F:q1", "A:q2"]
    assert house.prompt("q2").count("queued: QQ is not reachable") == 2
    assert house.prompt("q2").count("排队等待发送") == 1
    assert house.journal("SELECT state FROM sends") == ["confirmed"] * 4
    assert len(house.simulator.sent) == 4


async def test_what_was_missed_is_fetched_once_and_of_it_only_a_young_question_is_answered(
    tmp_path: Path, histories: Counter[int]
) -> None:
    async with opened(tmp_path) as house, house.life() as service:
        await house.talk("@bot plain#q1", ago=500)
        await house.talk("hello there", group=TWO, ago=400)
        assert histories == {ONE: 1}  # older than the process, it may have been answered; nobody was heard before
        await house.leave()
        await house.say("@bot plain#q2", ago=300)
        await house.say("tea time", ago=200)
        await house.say("coffee time", group=TWO, ago=70)
        await house.say("@bot plain#q3", ago=60)
        await house.come_back()
        await house.simulator.wait_delivered(2)  # the group that was heard last is looked at first: now both are
        await house.leave()
        await house.say("@bot plain#q4", group=TWO, ago=50)
        await house.come_back()
        await house.simulator.wait_delivered(3)
        await service.wait_idle()
        await house.talk("@bot plain#q5")
        await house.talk("@bot plain#q6", group=TWO)
    assert histories == {ONE: 3, TWO: 2}  # once more for each time it came back
    assert house.said() == ["A:q1", "A:q3", "A:q5"]
    assert house.said(group=TWO) == ["A:q4", "A:q6"]
    assert [asked.token for asked in house.model.asked] == ["q1", "q3", "q4", "q5", "q6"]
    for token in ("q3", "q5"):
        missed = [house.prompt(token).index(words) for words in ("plain#q1", "plain#q2", "tea time", "plain#q3")]
        assert missed == sorted(missed)
        assert [house.prompt(token).count(words) for words in ("plain#q2", "tea time", "plain#q3")] == [1, 1, 1]
    for token in ("q4", "q6"):
        assert [house.prompt(token).count(words) for words in ("hello there", "coffee time", "plain#q4")] == [1, 1, 1]


# --- the data folder cannot be written ------------------------------------------------------------


class Disk:
    """A folder of somebody whom permissions stop, though root runs the tests: from `hand_over` on we are nobody."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def hand_over(self) -> None:
        """From now on we are somebody with no rights but to what is in the folder."""
        if os.geteuid() != 0:
            return
        if not all(parent.stat().st_mode & stat.S_IXOTH for parent in self.folder.parents):
            pytest.skip(f"only root may go to {self.folder}, and nobody stops root: TMPDIR names another place")
        try:
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        except PermissionError as error:
            pytest.skip(f"nobody stops this root, and it may not become somebody else: {error}")

    def protect(self) -> None:
        """Nothing in it can be made, changed or deleted any more."""
        for path in (*self.folder.iterdir(), self.folder):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)

    def release(self) -> None:
        """The owner may write again."""
        for path in (self.folder, *self.folder.iterdir()):
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IWUSR)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """In a place to which everybody may go, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    disk = Disk(folder)
    user = os.geteuid()
    try:
        yield disk
    finally:
        os.seteuid(user)
        disk.release()
        shutil.rmtree(folder)


def logged(caplog: pytest.LogCaptureFixture, words: str) -> int:
    """How many lines for the operator say so."""
    return sum(words in record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


async def test_a_folder_that_cannot_be_written_from_the_start(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    """Told once; answered from memory; and once it can be written, the past and what was said meanwhile are there."""
    caplog.set_level("DEBUG", "adapters.storage.batches")
    async with opened(disk.folder) as house:
        async with house.life():
            await house.talk("@bot plain#q1")
        disk.hand_over()
        disk.protect()
        async with house.life():
            await house.talk("@bot plain#q2")
            await house.talk("tea time")
            await house.talk("@bot plain#q3")
            await until(lambda: caplog.text.count("a batch cannot be written") > 2)
            assert house.kinds_told() == [CANNOT]
            disk.release()
            await until(lambda: len(house.told()) > 1)
            await house.talk("@bot plain#q4")
        async with house.life():
            await house.talk("@bot plain#q5")
    assert house.kinds_told() == [CANNOT, AGAIN]
    assert str(disk.folder) in house.told()[0]
    assert house.told()[1].endswith("，丢了 0 条。")
    assert [logged(caplog, CANNOT), logged(caplog, AGAIN)] == [1, 1]
    assert house.said() == ["A:q1", "A:q2", "A:q3", "A:q4", "A:q5"]
    assert [house.rounds(token) for token in ("q2", "q3")] == [[], ["A:q2"]]  # the past cannot be read, either
    assert house.rounds("q4") == ["A:q1", "A:q2", "A:q3"]
    assert house.rounds("q5") == ["A:q1", "A:q2", "A:q3", "A:q4"]
    assert [house.prompt(token).count("tea time") for token in ("q2", "q3", "q4", "q5")] == [0, 1, 1, 1]


async def test_a_folder_that_cannot_be_written_any_more_is_noticed_when_the_journal_is_opened_anew(
    disk: Disk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is open stays writable: until another program locks it for too long nothing is wrong, and then all is."""
    caplog.set_level("DEBUG", "adapters.storage.batches")
    monkeypatch.setattr(database, "BUSY", 0.05)
    async with opened(disk.folder) as house:
        async with house.life():  # what is imported late is, while we may read it
            await house.talk("@bot plain#q1")
        disk.hand_over()
        async with house.life():
            await house.talk("@bot plain#q2")
            with closing(sqlite3.connect(disk.folder / "bot.db", isolation_level=None)) as other:
                closed = "SELECT count(*) FROM turns WHERE closed IS NOT NULL"
                other.execute(closed).close()  # else it is opened when it is too late
                disk.protect()
                await house.talk("@bot plain#q3")
                await until(lambda: other.execute(closed).fetchall() == [(3,)])
                assert house.told() == []
                other.execute("BEGIN IMMEDIATE").close()
                await house.talk("@bot plain#q4")
                await until(house.told)
            await until(lambda: caplog.text.count("attempt to write a readonly database") > 2)
            await house.talk("@bot plain#q5")
            disk.release()
            await until(lambda: len(house.told()) > 1)
        async with house.life():
            await house.talk("@bot plain#q6")
    assert house.kinds_told() == [CANNOT, AGAIN]
    assert [logged(caplog, CANNOT), logged(caplog, AGAIN)] == [1, 1]
    assert house.said() == ["A:q1", "A:q2", "A:q3", "A:q4", "A:q5", "A:q6"]
    assert house.rounds("q5") == ["A:q1", "A:q2", "A:q3", "A:q4"]
    assert house.rounds("q6") == ["A:q1", "A:q2", "A:q3", "A:q4", "A:q5"]
