"""The bot is muted while it is about something there."""

from __future__ import annotations

import asyncio

import pytest

from bot.approvals.decision import Reply
from bot.approvals.tool_call_wording import EXPIRED, UNDONE, WITHDRAWN, waiting_line
from bot.chat.tasks import Task
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused
from bot.core.events import Connected, MemberChange, MessageReceived, Muted, Role
from bot.core.journal import MessageObserved, TurnClosed
from bot.core.ports import JoinedGroup, Member
from bot.policy.wake import Silence, Wake
from bot.prompt import render
from bot.prompt.wording_zh import ZH
from frostagent.cancellation import background
from frostagent.types.messages import ToolMessage
from frostagent.types.runs import Stop
from frostagent.types.speech import Quote, Text
from tests.bot.chat.test_stop_handler import RULES, hanging
from tests.bot.chat.test_turn import OWNER
from tests.bot.hall import Hall, became, hall, muted, recalled
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import BOT, GROUP, calls, said, until, words

OTHER = Conversation(BOT, "group", 4343)


async def test_a_run_under_way_ends_and_it_is_written_down_why() -> None:
    async with hanging(words("next")) as house:
        await house.take(muted(60))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.stop is Stop.STOPPED
        assert closed.round[-1] == render.history_note(ZH, ZH.about.broken_off)
        told = [(one.message_id, one.reason, one.until - house.clock.now()) for one in house.verdicts]
        assert told[-1] == ("q1", Silence.MUTED, 60)
        robot = said("hello!", message_id="r", user=2854196301)
        await house.take(robot, said("hello?", message_id="q2"), muted(0), said("and now?", message_id="q3"))
        assert [one.until - house.clock.now() for one in house.verdicts if one.message_id == "q2"] == [60]
        assert [one.until for one in house.verdicts if one.message_id in ("r", "q3")] == [0, 0]
        assert house.transport.texts == ["next"]
        assert len(house.model.requests) == 2


async def test_what_its_asker_had_still_said_is_overheard() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(said("more", message_id="2"))
        await house.take(muted(60))
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["2"]
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("2", Silence.MUTED)


async def test_who_was_stopped_by_a_person_was_not_by_the_mute() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(said("停", message_id="s"))
        await house.take(muted(60))
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.round[-1] == render.history_note(ZH, ZH.about.stopped)
        assert Silence.MUTED not in {one.reason for one in house.verdicts}


@each_case("event", [muted(60, user_id=5), muted(0)])
async def test_what_mutes_somebody_else_ends_nothing(event: Muted) -> None:
    async with hanging() as house:
        await house.dispatcher.handle(event)
        assert not any(live.cancelled for live in house.live.at(GROUP))
        assert len(house.live.at(GROUP)) == 1


@each_case(("role", "ends"), [("member", True), ("admin", False)])
async def test_a_mute_of_the_whole_group_ends_runs_once_the_server_says_that_the_bot_is_no_admin(
    role: Role, ends: bool
) -> None:
    async with hanging() as house:
        house.transport.members[GROUP, BOT] = Member(role)
        await house.dispatcher.handle(muted(-1, user_id=0))
        assert [live.cancelled is not None for live in house.live.at(GROUP)] == [False]
        assert house.mutes.holds_in(GROUP)
        async with background(house.group_probe().run()):
            await until(lambda: not house.live.at(GROUP) if ends else not house.mutes.holds_in(GROUP))
        assert [one.message_id for one in house.verdicts if one.reason == Silence.MUTED] == ["q1"] * ends
        assert len(house.live.at(GROUP)) == (not ends)


def asked_of_bot(house: Hall) -> list[Conversation]:
    """Where the server was asked who the bot is."""
    return [where for where, who in house.transport.members_asked if who == BOT]


async def doubted(house: Hall, where: Conversation) -> None:
    """It is asked who the bot is there."""
    before = len(asked_of_bot(house))
    house.mutes.doubt(where)
    await until(lambda: len(asked_of_bot(house)) > before)


async def test_a_mute_of_the_whole_group_ends_nothing_where_the_server_does_not_know_who_the_bot_is() -> None:
    async with hanging() as house:
        await house.dispatcher.handle(muted(-1, user_id=0))
        async with background(house.group_probe().run()):
            await until(lambda: asked_of_bot(house))
            await doubted(house, OTHER)
        assert asked_of_bot(house) == [GROUP, OTHER]
        assert [live.cancelled is not None for live in house.live.at(GROUP)] == [False]


async def test_who_the_bot_is_is_asked_only_where_that_matters() -> None:
    async with hanging() as house:
        house.transport.members[GROUP, BOT] = Member("member")
        for event in (muted(0, user_id=0), muted(60, user_id=5), muted(0)):
            await house.dispatcher.handle(event)
        async with background(house.group_probe().run()):
            for where in (OTHER, GROUP, OTHER):
                await doubted(house, where)
        assert asked_of_bot(house) == [OTHER, GROUP, OTHER]
        assert [live.cancelled is not None for live in house.live.at(GROUP)] == [False]


async def test_who_becomes_an_admin_speaks_on_in_a_silenced_group(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hall(calls(("ask_first", "")), words("done")) as house:
        monkeypatch.setattr(house.clock, "sleep", house.patience.sleep)
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.dispatcher.handle(muted(-1, user_id=0))
        allow(house)
        await house.patience.advance(0)
        assert len(house.model.requests) == 1
        await house.take(became("promoted"))
        assert result_in(house) == "it was allowed"


async def test_whether_who_becomes_an_admin_is_still_muted_himself_is_asked() -> None:
    async with hall() as house:
        await house.dispatcher.handle(muted(60))
        await house.dispatcher.handle(became("promoted"))
        assert house.mutes.holds_in(GROUP)
        house.transport.members[GROUP, BOT] = Member("admin")
        async with background(house.group_probe().run()):
            await until(lambda: not house.mutes.holds_in(GROUP))


@each_case(("silenced", "ends"), [(True, True), (False, False)])
async def test_who_is_no_admin_any_more_may_not_speak_on_where_the_group_is_silenced(
    silenced: bool, ends: bool
) -> None:
    async with hanging() as house:
        house.transport.groups = [JoinedGroup(GROUP, silenced)]
        house.transport.members[GROUP, BOT] = Member("member")
        await house.dispatcher.handle(became("demoted"))
        async with background(house.group_probe().run()):
            await until(lambda: asked_of_bot(house))
            await doubted(house, OTHER)
        assert [live.cancelled is not None for live in house.live.at(GROUP)] == [False] * (not ends)
        assert house.mutes.holds_in(GROUP) is ends


@each_case("change", ["promoted", "demoted"])
async def test_somebody_elses_role_is_nothing_to_a_mute(change: MemberChange) -> None:
    async with hanging() as house:
        await house.dispatcher.handle(muted(-1, user_id=0))
        await house.dispatcher.handle(became(change, user_id=5))
        assert house.mutes.holds_in(GROUP)
        async with background(house.group_probe().run()):
            await until(lambda: asked_of_bot(house))
            await doubted(house, OTHER)
        assert asked_of_bot(house) == [GROUP, OTHER]


@each_case("role", ["member", "admin", "unknown"])
async def test_a_mute_that_is_found_when_the_account_connects_ends_a_run_too(role: Role) -> None:
    async with hanging() as house:
        house.transport.groups = [JoinedGroup(GROUP)]
        house.transport.members[GROUP, BOT] = Member(role, house.clock.time + 60)
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        async with background(house.group_probe().run()):
            await until(lambda: not house.live.at(GROUP))
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("q1", Silence.MUTED)


async def test_a_question_that_an_owners_word_has_left_is_not_asked_either(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()
    request = said(waiting_line([1]), user=BOT, message_id="70", at=False)
    word = said((Quote("70"), Text("同意")), user=OWNER, message_id="71")
    question = said((Quote("8"), Text("and now?")), user=OWNER, message_id="q2")

    async with hall(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        house.store.put(MessageObserved(request, overheard=False))
        await house.take(said("please", message_id="q1"))

        async def slow(account: int, message_id: str) -> MessageReceived | None:
            if house.live.at(GROUP):
                asked.set()
                await asyncio.Event().wait()
            return None

        monkeypatch.setattr(house.transport, "get_message", slow)
        house.lanes.put(GROUP, Task(word, Wake("mention"), house.clock.now(), lines=(question,)))
        await asked.wait()
        await house.dispatcher.handle(muted(60))
        await until(lambda: not house.live.at(GROUP))
        assert len(house.store.of("turn_opened")) == 1
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["q2"]
        assert [one.message_id for one in house.verdicts if one.reason == Silence.MUTED] == ["q2"]


async def test_a_question_that_is_being_prepared_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()

    async with hall() as house:

        async def slow(account: int, message_id: str) -> MessageReceived | None:
            if house.live.at(GROUP):
                asked.set()
                await asyncio.Event().wait()
            return None

        monkeypatch.setattr(house.transport, "get_message", slow)
        await house.dispatcher.handle(said((Quote("8"), Text("go")), message_id="q1"))
        await asked.wait()
        await house.take(muted(60))
        assert house.model.requests == []
        assert house.store.of("turn_opened") == []
        assert [message.message_id for message in house.history.take_overheard(GROUP)] == ["q1"]
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("q1", Silence.MUTED)


async def test_a_run_that_waits_for_an_owners_word_still_waits() -> None:
    async with hall(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.take(muted(60))
        assert len(house.suspensions.waiting()) == 1
        assert house.store.of("turn_closed") == []


def allow(house: Hall) -> None:
    """An owner allows the one call that waits."""
    (number,) = house.approvals.open
    assert house.approvals.settle(number, Reply("approve"), by="主人").kind == "done"


def result_in(house: Hall) -> str:
    """The result of the call, as the last request of the model has it."""
    told = house.model.requests[-1].messages[-1]
    assert isinstance(told, ToolMessage)
    return told.content


async def allow_while_muted(house: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner allows a call whose run must wait for the end of a mute of 50 s."""
    monkeypatch.setattr(house.clock, "sleep", house.patience.sleep)
    house.toolset.register(ask_first)
    await house.take(said("please", message_id="q1"))
    await house.dispatcher.handle(muted(50))
    allow(house)


@pytest.mark.parametrize("how", ["lifted", "over", "away when it was lifted"])
async def test_a_run_that_an_owner_allows_meanwhile_goes_on_when_the_mute_ends(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(calls(("ask_first", "")), words("done")) as house:
        await allow_while_muted(house, monkeypatch)
        house.clock.time += 49
        await house.patience.advance(49)
        assert len(house.model.requests) == 1
        assert len(house.suspensions.waiting()) == 1
        match how:
            case "lifted":
                await house.dispatcher.handle(muted(0))
            case "over":
                house.clock.time += 1
                await house.patience.advance(1)
            case _:
                house.transport.groups = [JoinedGroup(GROUP)]
                await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
                async with background(house.group_probe().run()):
                    await until(lambda: not house.suspensions.waiting())
        await house.lanes.wait_idle()
        await house.outbox.wait_idle()
        assert house.transport.texts == ["done"]
        assert result_in(house) == "it was allowed"


@pytest.mark.parametrize("answer", ["still muted", "not told", "refused", "nobody asks"])
async def test_a_run_that_an_owner_allowed_says_nothing_after_a_reconnect_as_long_as_the_bot_may_be_muted(
    answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hall(calls(("ask_first", "")), words("done")) as house:
        await allow_while_muted(house, monkeypatch)
        house.transport.groups = [JoinedGroup(GROUP)]
        house.transport.members[GROUP, BOT] = Member("member", None)
        if answer == "still muted":
            house.transport.members[GROUP, BOT] = Member("member", house.clock.now() + 50)
        elif answer == "refused":
            house.transport.member_failures = [ActionRefused("get_group_member_info", retcode=1200, wording="no")]
        house.lanes.hold(GROUP)  # as long as it is caught up with
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        house.lanes.release(GROUP)
        if answer != "nobody asks":
            async with background(house.group_probe().run()):
                await until(lambda: house.transport.members_asked)
        house.clock.time += 49
        await house.patience.advance(49)
        assert len(house.model.requests) == 1
        assert len(house.suspensions.waiting()) == 1
        house.clock.time += 1
        await house.patience.advance(1)
        await house.lanes.wait_idle()
        await house.outbox.wait_idle()
        assert house.transport.texts == ["done"]


async def test_what_waits_goes_on_at_the_end_of_the_mute_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hall(calls(("ask_first", "")), words("done")) as house:
        await allow_while_muted(house, monkeypatch)
        await house.patience.advance(0)
        await house.dispatcher.handle(muted(10))
        house.clock.time += 10
        await house.patience.advance(10)
        await house.lanes.wait_idle()
        assert house.transport.texts == ["done"]


async def test_what_an_owner_allowed_is_not_done_after_its_time_and_he_and_the_asker_learn_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with hall(calls(("ask_first", ""))) as house:
        monkeypatch.setattr(house.clock, "sleep", house.patience.sleep)
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.dispatcher.handle(muted(29 * 86400))
        allow(house)
        for seconds in (59, 1):  # the request's time
            assert len(house.suspensions.waiting()) == 1
            house.clock.time += seconds
            await house.patience.advance(seconds)
        assert house.suspensions.waiting() == {}
        assert not house.lanes.active
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert (closed.stop, house.verdicts[-1].reason) == (Stop.STOPPED, Silence.MUTED)
        assert closed.round[-1] == render.history_note(ZH, ZH.about.broken_off)
        assert house.store.of("run_resumed")
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("q1", Silence.MUTED)
        assert house.asked[-1] == UNDONE.zh.format(number=1)
        await house.take(muted(0))
        assert len(house.model.requests) == 1


async def test_it_is_not_done_either_where_nobody_said_after_a_reconnect_whether_the_bot_may_speak_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with hall(calls(("ask_first", ""))) as house:
        monkeypatch.setattr(house.clock, "sleep", house.patience.sleep)
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.dispatcher.handle(muted(29 * 86400))
        allow(house)
        await house.dispatcher.handle(Connected(self_id=BOT, time=0.0))
        house.clock.time += 60  # the request's time
        await house.patience.advance(60)
        await house.lanes.wait_idle()
        assert house.asked[-1] == UNDONE.zh.format(number=1)
        assert len(house.model.requests) == 1


@each_case("how", ["stopped", "recalled"])
async def test_what_an_owner_allowed_and_nobody_wants_any_more_he_hears_is_not_done(how: str) -> None:
    async with hall(calls(("ask_first", "")), rules=RULES) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.dispatcher.handle(muted(60))
        allow(house)
        await house.dispatcher.handle(recalled("q1") if how == "recalled" else said("停", message_id="s"))
        assert house.suspensions.waiting() == {}
        assert house.asked[-1] == WITHDRAWN.zh.format(number=1)
        await house.take(muted(0))
        assert len(house.model.requests) == 1


async def test_a_request_that_nobody_answered_ends_its_run_where_the_bot_is_muted_by_then() -> None:
    async with hall(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", message_id="q1"))
        await house.dispatcher.handle(muted(3600))
        async with background(house.active_work.expire_approvals()):
            await until(lambda: not house.suspensions.waiting())
        assert house.asked[-1] == EXPIRED.zh.format(number=1)
        assert [(one.message_id, one.reason) for one in house.verdicts][-1] == ("q1", Silence.MUTED)
        assert len(house.model.requests) == 1
