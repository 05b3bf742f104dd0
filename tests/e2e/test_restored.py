"""The whole service on a backup that was put back: what it had is there, and nothing is answered or sent twice."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from adapters.storage.backup import back_up, restore
from bot.chat.deduplicator import Past
from bot.core.conversation import Conversation
from bot.core.jobs import Job, JobKind, JobMade
from tests.e2e.test_answered_once import Square, square
from tests.e2e.test_outages import ONE, TWO
from tests.fakes import until
from tests.fallback_lines import ENGLISH, SORRY

__all__ = ["square"]


def save(house: Square) -> Path:
    """A backup, made while the bot runs or not."""
    target = house.folder.parent / f"{house.folder.name}.tgz"
    back_up(house.folder / "bot.db", target, files=(), version="1", force=True)
    return target


def begin_anew(house: Square) -> None:
    for old in house.folder.glob("bot.db*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def put_back(house: Square, file: Path, *, elsewhere: bool = False) -> None:
    """Restored where it was, or on another computer, which has nothing else."""
    if elsewhere:
        begin_anew(house)
    with file.open("rb") as stream:
        restore(house.folder / "bot.db", stream, version="1", stamp="then", shown=file.name)


def reminded(house: Square) -> int:
    """How many reminders were said."""
    return sum("⏰" in message.text for message in house.simulator.delivered)


def is_at(house: Square, step: str) -> bool:
    """Whether the model was asked for that step."""
    return any(f"{asked.kind}{asked.step}" == step for asked in house.model.asked)


async def test_what_was_answered_after_the_backup_is_not_answered_again(square: Square) -> None:
    async with square.life():
        await square.talk("@bot plain#q1")
        saved = save(square)
        await square.talk("@bot ring#q2")
        await square.talk("@bot tool#q3", group=TWO)
    sent, rung = len(square.simulator.sent), square.rung
    for elsewhere in (False, True):
        put_back(square, saved, elsewhere=elsewhere)
        async with square.life() as service:
            await square.recovered(Past.LOST)
            for group in (ONE, TWO):
                await square.talk("tea time", group=group)
            await square.reconnect()
            await service.wait_idle()
        assert (len(square.simulator.sent), square.rung) == (sent, rung)
    async with square.life():
        await square.talk("@bot plain#q4")
    assert square.said() == ["A:q1", "F:q2", "A:q4"]
    assert "A:q1" in square.prompt("q4")  # what it remembers is what the backup had


async def test_who_asked_between_the_backup_and_the_restore_without_an_answer_is_asked_to_ask_again(
    square: Square,
) -> None:
    async with square.life():
        await square.talk("tea time")
        saved = save(square)
        await square.talk("@bot plain#q1")
    put_back(square, saved)
    await square.say("@bot ring#q2")
    async with square.life():
        await square.recovered(Past.LOST)
        await square.talk("coffee time")
        await square.reconnect()
        await until(lambda: len(square.said()) == 2)
        await square.reconnect()
        await square.talk("@bot plain#q3")
    assert square.said() == ["A:q1", ENGLISH[SORRY], "A:q3"]
    assert not square.rung  # the bot may have rung it before the restore


async def test_an_answer_that_was_under_way_during_the_backup_is_not_given_twice(square: Square) -> None:
    """The turn is open in the backup, and was closed after it; its effects are not done again."""
    house = square
    for kind, hangs in (("plain", "plain0"), ("ring", "ring1")):
        house.hangs = hangs
        async with house.life():
            asked = await house.say(f"@bot {kind}#q1")
            await house.service.app.seen.wait(asked)
            await until(partial(is_at, house, hangs))
            saved = save(house)
        house.hangs = ""
        async with house.life() as service:  # asked again, or told that it was cut off
            await house.talk("tea time")
            await house.reconnect()
            await until(house.said)
            await service.wait_idle()
        before, rung = house.said(), house.rung
        assert len(before) == 1
        put_back(house, saved)
        async with house.life() as service:
            await house.talk("coffee time")
            await house.reconnect()
            await service.wait_idle()
        assert (house.said(), house.rung) == (before, rung)
        house.simulator.delivered.clear()
        begin_anew(house)


async def test_a_reminder_that_came_after_the_backup_is_not_said_again(square: Square) -> None:
    """Neither one that waited in the backup, nor one whose words were under way; a later one is said."""
    jobs = "SELECT count(*) FROM jobs WHERE wake IS NOT NULL"
    async with square.life() as service:
        for number, seconds in ((1, 1.0), (2, 3600.0)):
            made = service.app.clock.now()
            job = Job(
                number=number,
                where=Conversation(10001, "group", ONE),
                maker=20001,
                kind=JobKind.TEXT,
                words=f"R:{number}",
                made=made,
                due=made + seconds,
                wake=made + seconds,
            )
            assert await service.app.store.commit(JobMade(job))
        saved = save(square)
        service.app.scheduler.look()
        await until(lambda: square.journal(jobs) == [1], seconds=10)
    assert reminded(square) == 1
    put_back(square, saved)
    async with square.life() as service:
        await square.talk("coffee time")
        await square.reconnect()
        await until(lambda: square.journal(jobs) == [1], seconds=10)
        await service.wait_idle()
    assert reminded(square) == 1


async def test_a_send_that_waited_during_the_backup_is_not_sent_again(square: Square) -> None:
    async with square.life():
        await square.talk("tea time")
        await square.say("@bot plain#q1")
        square.away_at = "q1"
        await until(lambda: not square.service.app.peers.accounts())
        await until(lambda: square.journal("SELECT state FROM sends") == ["queued"])
        saved = save(square)
        square.away_at = ""
        await square.come_back()
        await until(square.said)
    assert square.said() == ["A:q1"]
    put_back(square, saved)
    async with square.life() as service:
        await square.talk("coffee time")
        await square.reconnect()
        await service.wait_idle()
    assert square.said() == ["A:q1"]
