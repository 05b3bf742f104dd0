from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.server import Simulator
from adapters.simulator.wire import text
from adapters.simulator.world import demo_world
from bot.budget.limits import NOTHING, Amount
from bot.budget.trial_account import TrialAccount
from bot.core.console_views import CostSum
from bot.core.erasure import SubjectErased
from bot.core.query_results import UsageSum
from bot.core.trial_group import Source, TrialLimits, TrialLine, TrialOptions
from bot.trial import simulated_trial
from bot.trial.isolated_settings import isolated_settings
from bot.trial.simulated_trial import (
    LONGEST_NAME,
    MAX_LINES,
    MISSED,
    MOST_GUESTS,
    MOST_SOURCES,
    Album,
    Guests,
    SimulatedTrial,
    picture_of,
)
from config.settings import Settings
from config.values import Owners
from frostagent.cancellation import background
from frostagent.types.errors import MediaError
from tests.bot.budget.till import unlimited
from tests.bot.commands.books import PaperBooks
from tests.fakes import ManualClock, RecordingStore, until


class Running:
    """A service that answers nothing, with a journal of these sums."""

    def __init__(self, *, decoded: bytes = b"jpeg") -> None:
        self.sums: tuple[CostSum, ...] | None = ()
        self.amount = NOTHING
        self.followers: list[Callable[[SubjectErased], None]] = []
        self.settled: list[Any] = []
        self.committed = 0

        async def decode(data: bytes) -> bytes:
            if data == b"bad":
                raise MediaError("it is none")
            return decoded + data

        self.app = SimpleNamespace(
            spending=SimpleNamespace(taken=lambda _: self.amount),
            lanes=SimpleNamespace(active=0, waiting=0),
            forgetting=SimpleNamespace(follow=self.followers.append),
            journal=SimpleNamespace(shown=self, commit=self.commit),
            decoder=SimpleNamespace(decode=decode),
        )

    async def costs(self, *, since: float, by: str) -> tuple[CostSum, ...] | None:
        assert (since, by) == (0.0, "model")
        return self.sums

    async def commit(self) -> None:
        self.committed += 1

    async def wait_idle(self) -> None:
        pass

    async def wait_settled(self, identity: Any) -> None:
        self.settled.append(identity)


def group(*, account: TrialAccount | None = None) -> tuple[SimulatedTrial, Running, Simulator]:
    simulator = Simulator(world := demo_world())
    trial, running = SimulatedTrial(world, wanted=TrialOptions(), account=account), Running()
    service: Any = running
    trial.connect(service, simulator)
    return trial, running, simulator


def sent(*segments: dict[str, Any]) -> SentMessage:
    return SentMessage(5, segments, group_id=4242)


def picture(data: bytes) -> dict[str, Any]:
    return {"type": "image", "data": {"file": f"base64://{base64.b64encode(data).decode()}"}}


async def test_before_it_is_connected_nobody_is_heard() -> None:
    trial = SimulatedTrial(demo_world(), wanted=TrialOptions())
    assert not await trial.say("user1", "hello")
    await trial.inject_fault("timeout")
    assert trial.lines == ()
    with pytest.raises(RuntimeError):
        assert trial.is_busy


async def test_members_speak_and_whoever_is_none_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    trial, running, simulator = group()
    monkeypatch.setattr(simulated_trial, "FOUND_WITHIN", 0.001)
    for who in ("bot", "nobody", ""):
        assert not await trial.say(who, "forged")
    assert await trial.say("user2", "@user1 hi", b"-p")
    said, missed = trial.lines
    assert (said.who, said.text, said.pictures, missed) == (
        "user2",
        "@user1 hi",
        (1,),
        TrialLine("", MISSED, happened="missed"),
    )
    assert simulator.missed == [int(said.message_id)]  # no bot has dialled
    assert trial.feed.number == 2
    assert not running.settled
    stored = simulator.world.messages.find(int(said.message_id))
    assert stored.author == simulator.world.people(4242)["user2"]
    assert [one["type"] for one in stored.segments] == ["image", "at", "text"]
    assert "url" not in stored.segments[0]["data"]
    assert simulator.world.contents == {"picture1.jpg": b"jpeg-p"}
    assert await trial.picture(1) == b"jpeg-p"
    with pytest.raises(MediaError):
        await trial.say("user2", "x", b"bad")
    assert len(trial.lines) == 2
    await trial.settle()
    assert running.committed


async def test_what_the_bot_says_is_shown_without_the_mark_of_an_answer_and_with_its_pictures() -> None:
    trial, _, _ = group()
    reply = {"type": "reply", "data": {"id": "9"}}
    trial.note_sent(sent(reply, text("two\nlines"), picture(b"one"), picture(b"bad")))
    trial.note_gesture(Gesture("poke", user_id=20001))
    line, poke = trial.lines
    assert (line.who, line.message_id, line.pictures) == ("bot", "5", (1, 2))
    assert line.text == "two\nlines"
    assert (poke.who, poke.text) == ("bot", "[pokes user1]")
    assert await trial.picture(1) == await trial.picture(1) == b"jpegone"
    with pytest.raises(MediaError):
        await trial.picture(2)
    assert trial.feed.number == 2


def test_pictures_are_those_that_a_message_carries_itself() -> None:
    elsewhere = {"type": "image", "data": {"file": "https://example.com/x.png"}}
    broken = {"type": "image", "data": {"file": "base64://a"}}
    voice = {"type": "record", "data": {"file": "base64://eA=="}}
    large = {"type": "image", "data": {"file": "base64://" + "A" * (simulated_trial.MAX_PICTURE * 4 // 3 + 4)}}
    assert [picture_of(one) for one in (elsewhere, broken, voice, large, text("x"))] == [b""] * 5
    assert picture_of(picture(b"x")) == b"x"


def test_the_oldest_pictures_make_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_trial, "MAX_PICTURES", 10)
    dropped = list[int]()
    album = Album(dropped.append)
    assert [album.add(b"x" * 4) for _ in range(4)] == [1, 2, 3, 4]
    assert dropped == [1, 2]
    assert album.get(4) == b"xxxx"
    with pytest.raises(MediaError):
        album.get(1)
    album.replace(1, b"y")
    album.replace(3, b"z")
    assert album.get(3) == b"z"
    with pytest.raises(MediaError):
        album.get(1)


async def test_whoever_asked_joins_by_his_name_and_nobody_by_that_of_the_bot() -> None:
    trial, _, _ = group()
    for name, joins in (
        ("小明", "小明"),
        ("BOT", "BOT·"),
        ("", "user1"),
        (" a\n b ", "a b"),
        ("x" * 99, "x" * LONGEST_NAME),
    ):
        trial.propose(name, "今天？")
        assert trial.draft == TrialLine(joins, "今天？")
        assert joins in trial.people
    assert "bot" not in trial.people


async def test_what_is_said_on_a_terminal_is_there_too() -> None:
    trial, _, simulator = group()
    said = await simulator.say_line("user2: @bot hi @user1")
    assert said is not None
    trial.note_said(said)
    assert trial.lines == (TrialLine("user2", "[@bot] hi [@user1]", str(said)),)


async def test_faults_are_those_of_the_list_and_what_comes_of_them_is_told() -> None:
    trial, _, simulator = group()
    await trial.inject_fault("timeout")
    await trial.inject_fault("drop 9")
    assert trial.lines == (TrialLine("", "!timeout: timeout next", happened="timeout"),)
    assert [str(one) for one in simulator.faults.armed] == ["timeout next"]


async def test_the_newest_lines_are_kept() -> None:
    trial, _, _ = group()
    for number in range(MAX_LINES + 5):
        trial.note("", str(number))
    assert len(trial.lines) == MAX_LINES
    assert trial.lines[-1].text == str(MAX_LINES + 4)


async def test_what_it_took_is_what_the_journal_and_the_day_know_also_when_it_is_over() -> None:
    trial, running, _ = group()
    assert await trial.taken() == UsageSum()
    running.sums = CostSum("a", UsageSum(2, 100, 50, 20, 0.1, 1)), CostSum("b", UsageSum(1, 10, 0, 5, 0.2))
    running.amount = Amount(200.0, 0.25)  # a request that was broken off, or is under way
    assert await trial.taken() == UsageSum(3, 175, 50, 25, 0.1 + 0.2, 1)
    running.sums = None  # it cannot be read now
    running.amount = Amount(200.0, 0.5)
    assert await trial.taken() == UsageSum(3, 175, 50, 25, 0.5, 1)
    trial.close()
    running.sums = (CostSum("a", UsageSum(9)),)
    assert (await trial.taken()).requests == 3
    assert (trial.ceiling, trial.lacks) == (None, "")


async def test_one_that_the_bot_pays_for_is_heard_until_its_ceiling_is_reached() -> None:
    ceiling = TrialLimits("m", 1.0, 1000, 4)
    account = TrialAccount(
        ceiling, store=RecordingStore(), books=PaperBooks(), spending=unlimited(), clock=ManualClock()
    )
    trial, running, _ = group(account=account)
    running.sums = (CostSum("a", UsageSum(3, 100)),)
    assert (trial.ceiling, trial.lacks, await trial.taken()) == (ceiling, "", UsageSum(3, 100))
    for number in range(4):
        await account.admit(number)
    assert (trial.lacks, await trial.taken()) == ("used_up", UsageSum(4, 100))  # one took nothing
    await trial.say("user1", "more")
    assert trial.lines == ()


async def test_what_takes_too_long_was_said_or_was_not_as_its_line_is_there_or_is_not() -> None:
    trial, running, _ = group()

    async def wait(*_: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    slow: Any = running
    slow.wait_idle = wait
    assert await trial.say("user1", "a story", patience=0.01)  # its answer goes on
    running.app.decoder.decode = wait
    assert not await trial.say("user2", "look", b"large", patience=0.01)
    assert [line.text for line in trial.lines if line.who] == ["a story"]


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_the_end_of_what_comes_of_a_line_is_news_also_where_nobody_waits_for_it(
    elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_trial, "FOUND_WITHIN", 0.001)
    trial, running, simulator = group()
    idle, waiting = asyncio.Event(), 0

    async def wait() -> None:
        nonlocal waiting
        waiting += 1
        await idle.wait()

    slow: Any = running
    slow.wait_idle = wait
    async with asyncio.timeout(30), background(trial.line_watcher.run()):
        if elsewhere:
            trial.note_said(await simulator.say([text("a story")], user_id=20001))
        else:
            assert await trial.say("user1", "a story", patience=0.01)
        await until(lambda: waiting)
        known = len(trial.lines)
        assert trial.feed.number == known
        idle.set()
        await until(lambda: trial.feed.number > known)
    assert trial.feed.number == known + 1


async def test_what_was_said_is_let_go_of_where_anybody_is_forgotten() -> None:
    trial, running, simulator = group()
    trial.note_sent(sent(text("you said so"), picture(b"one")))
    trial.propose("小明", "今天？", Source(777, 4242))
    for follower in running.followers:
        follower(SubjectErased(user=20001))
    assert (trial.lines, trial.draft) == ((), None)
    with pytest.raises(MediaError):
        await trial.picture(1)
    assert trial.feed.number == 2
    assert (trial.has_words_of(777, 0), trial.has_words_of(778, 0)) == (True, False)
    assert not simulator.world.contents


async def test_a_line_that_is_let_go_of_while_it_is_said_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_trial, "FOUND_WITHIN", 0.001)
    trial, _, simulator = group()
    say = simulator.say

    async def meanwhile(*given: Any, **more: Any) -> int:
        trial.erase()
        return await say(*given, **more)

    monkeypatch.setattr(simulator, "say", meanwhile)
    await trial.say("user1", "hello")
    assert [line.text for line in trial.lines] == [MISSED]


def test_so_many_are_there_at_a_time_and_whoever_joined_first_leaves() -> None:
    world = demo_world()
    guests, before = Guests(world), len(world.people(4242))
    for number in range(MOST_GUESTS):
        assert guests.admit(f"guest{number}", None) == f"guest{number}"
    assert guests.admit("user1", None) == "user1"  # who is there already is no guest
    assert guests.admit("Guest0", None) == "guest0"
    assert len(world.people(4242)) == before + MOST_GUESTS
    guests.admit("one more", None)
    there = world.people(4242)
    assert len(there) == before + MOST_GUESTS
    assert ("guest0" in there, "guest1" in there, "user1" in there, "one more" in there) == (False, True, True, True)


def test_whose_words_were_brought_is_known_and_of_very_many_they_may_be_anybodys() -> None:
    guests = Guests(demo_world())
    guests.admit("a", Source(5, 77))
    guests.admit("b", Source(6))
    guests.admit("c", None)
    asked = ((5, 0), (0, 77), (6, 0), (7, 0), (0, 78), (0, 0))
    assert [guests.may_have_words_of(*one) for one in asked] == [True, True, True, False, False, False]
    for number in range(MOST_SOURCES):
        guests.admit("d", Source(1000 + number))
    assert guests.may_have_words_of(7, 0)


def test_what_is_set_for_qq_and_where_the_bot_keeps_things_is_set_otherwise() -> None:
    somebody = frozenset({7})
    given = Settings(
        bot_owners=Owners({7, 8}, {8}),
        bot_groups=somebody,
        bot_users=somebody,
        bot_block=somebody,
        bot_quiet="00:00-23:59",
        bot_quiet_mode="all",
        bot_role="worker",
        broker_url=SecretStr("amqp://127.0.0.1:9/"),
        console_port=9,
        web_port=9,
    )
    made = given.model_copy(update=isolated_settings(given, "/tmp/x"))
    assert (made.store_url, made.media_dir) == (SecretStr("sqlite:////tmp/x/journal.db"), Path("/tmp/x/media"))
    assert (made.bot_groups, made.bot_users, made.bot_block, made.bot_owners) == (frozenset(),) * 4
    assert (made.bot_quiet, made.bot_new_group, made.bot_digest, made.bot_loop) == ((), "live", None, 0)
    assert (made.bot_user_rate, made.bot_group_rate) == (None, None)
    assert (made.has_broker, made.bot_role, made.onebot_mode, made.console_port, made.web_port) == (
        False,
        "all",
        "forward",
        0,
        0,
    )
    owners = isolated_settings(given, "/tmp/x", people=frozenset({8, 9}))["bot_owners"]
    assert (set(owners), set(owners.quiet)) == ({8}, {8})
