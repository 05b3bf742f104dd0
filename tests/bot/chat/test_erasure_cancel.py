from __future__ import annotations

import asyncio

from msgspec.structs import replace

from bot.chat.tasks import Task
from bot.core.conversation import Conversation
from bot.core.erasure import SubjectErased
from bot.core.events import Connected
from bot.core.journal import TurnOpened
from bot.core.segments import Mention
from bot.policy.wake import Wake
from frostagent.types.messages import Completion, ModelRequest, UserMessage
from frostagent.types.speech import Quote, Text
from tests.bot.hall import hall
from tests.cases import each_case
from tests.e2e.test_suspended_turns import ask_first
from tests.fakes import BOT, GROUP, calls, said, words
from tests.fallback_lines import LOST

MING, HONG = 777, 888
ELSEWHERE = Conversation(BOT, "group", 4343)


@each_case(
    ("whose", "answered"),
    [
        (SubjectErased(user=MING), ["second", "third"]),
        (SubjectErased(group=GROUP.session_id), ["third"]),
        (SubjectErased(user=5), ["first", "second", "third"]),
    ],
)
async def test_what_waits_in_a_lane_is_not_asked_where_its_asker_or_its_group_is_forgotten(
    whose: SubjectErased, answered: list[str]
) -> None:
    async def repeat(request: ModelRequest) -> Completion:
        question = request.messages[-1]
        assert isinstance(question, UserMessage)
        return words(question.text.partition("say ")[2].split()[0])

    async with hall(*[repeat] * len(answered)) as house:
        for where in (GROUP, ELSEWHERE):
            house.lanes.hold(where)
        await house.dispatcher.handle(said("say first", user=MING, message_id="1"))
        await house.dispatcher.handle(said("say second", user=HONG, message_id="2"))
        await house.dispatcher.handle(said("say third", user=HONG, where=ELSEWHERE, message_id="3"))
        await house.active_work.forget(whose)
        for where in (GROUP, ELSEWHERE):
            house.lanes.release(where)
        await house.lanes.wait_idle()
        assert sorted(house.transport.texts) == sorted(answered)


async def test_a_turn_that_is_begun_goes_on_and_one_that_is_not_opens_none() -> None:
    asked, looked, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def think(request: ModelRequest) -> Completion:
        asked.set()
        await go_on.wait()
        return words("here")

    async def look(account: int, message_id: str) -> None:
        looked.set()
        await go_on.wait()

    async with hall(think) as house:
        house.transport.get_message = look  # type: ignore[method-assign]  # one call of a fake waits
        await house.dispatcher.handle(said("go on", user=MING, message_id="1"))
        await asked.wait()
        quoting = said((Quote("99"), Text("and this?")), user=MING, where=ELSEWHERE, message_id="2")
        await house.dispatcher.handle(quoting)
        await looked.wait()
        await house.active_work.forget(SubjectErased(user=MING))
        go_on.set()
        await house.lanes.wait_idle()
        assert house.transport.texts == ["here"]
        assert len(house.store.of("turn_opened")) == 1


async def test_what_was_asked_after_that_is_answered_though_it_came_before() -> None:
    """After a restart, what was said meanwhile is read from a history while somebody goes on talking."""
    async with hall("here") as house:
        house.lanes.hold(GROUP)
        now = house.clock.now()
        for later, text in ((0, "before"), (1, "in the same second"), (2, "after")):
            line = said(f"say {text}", user=MING, message_id=str(later))
            await house.dispatcher.handle(replace(line, time=now + later))
        await house.active_work.forget(SubjectErased(user=MING, said=now + 1))
        house.lanes.release(GROUP)
        await house.lanes.wait_idle()
        (request,) = house.model.requests
        question = request.messages[-1]
        assert isinstance(question, UserMessage)
        assert "say after" in question.text
        assert "before" not in question.text
        assert "same second" not in question.text


async def test_what_is_asked_once_all_was_erased_is_answered_whatever_the_servers_clock_says() -> None:
    """It tells whole seconds, and may be fast: what was taken before that is dropped by ours."""
    async with hall("here") as house:
        for where in (GROUP, ELSEWHERE):
            house.lanes.hold(where)
        now = house.clock.now()
        before = said("say before", user=MING, message_id="1")
        await house.dispatcher.handle(replace(before, time=now + 30))
        house.put_off.add(Task(replace(before, message_id="2"), Wake("mention"), now))
        house.clock.time += 0.4
        since = house.clock.now()
        house.clock.time += 0.2
        after = said("say after", user=MING, where=ELSEWHERE, message_id="3")
        await house.dispatcher.handle(replace(after, time=now))
        house.put_off.add(Task(replace(after, message_id="4", time=now), Wake("mention"), house.clock.now()))
        await house.active_work.forget(SubjectErased(user=MING, since=since))
        assert [task.message.message_id for task in house.put_off._tasks] == ["4"]
        for where in (GROUP, ELSEWHERE):
            house.lanes.release(where)
        await house.lanes.wait_idle()
        (request,) = house.model.requests
        question = request.messages[-1]
        assert isinstance(question, UserMessage)
        assert "say after" in question.text


async def test_of_a_turn_that_is_being_prepared_what_was_said_after_that_waits_once_more() -> None:
    looked, go_on = asyncio.Event(), asyncio.Event()

    async def look(account: int, message_id: str) -> None:
        looked.set()
        await go_on.wait()

    async with hall("here") as house:
        house.transport.get_message = look  # type: ignore[method-assign]  # one call of a fake waits
        house.lanes.hold(GROUP)
        now = house.clock.now()
        before = said("say before", user=MING, message_id="1")
        after = said((Mention(BOT), Quote("99"), Text("say after")), user=MING, message_id="2")
        for later, line in enumerate((before, after)):
            await house.dispatcher.handle(replace(line, time=now + later))
        house.lanes.release(GROUP)
        await looked.wait()
        await house.active_work.forget(SubjectErased(user=MING, said=now))
        go_on.set()
        await house.lanes.wait_idle()
        (request,) = house.model.requests
        question = request.messages[-1]
        assert isinstance(question, UserMessage)
        assert "say after" in question.text
        assert "before" not in question.text
        assert house.transport.texts == ["here"]


async def test_a_run_that_waits_for_a_word_and_what_is_put_off_wait_no_more() -> None:
    async with hall(calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        await house.take(said("please", user=MING, message_id="61"))
        later = said("hi", user=MING, message_id="62")
        house.put_off.add(Task(later, Wake("mention"), house.clock.now()))
        await house.active_work.forget(SubjectErased(user=HONG))
        assert len(house.suspensions.waiting()) == 1
        await house.active_work.forget(SubjectErased(user=MING))
        assert house.suspensions.waiting() == {}
        assert house.asked[-1] == "A1 不用管了：提问已经撤回或结束，没有做。"
        await house.take(Connected(self_id=BOT, time=0.0))
        assert len(house.model.requests) == 1


@each_case("away", [False, True])
async def test_a_run_whose_turn_was_erased_waits_no_more_and_who_asked_is_told(away: bool) -> None:
    """It has read what somebody said who is forgotten. Where the journal cannot be read, nobody knows."""
    async with hall(calls(("ask_first", "")), calls(("ask_first", ""))) as house:
        house.toolset.register(ask_first)
        for user, message_id in ((MING, "61"), (HONG, "62")):
            await house.take(said("please", user=user, message_id=message_id))
        gone, kept = house.suspensions.waiting()
        house.store.entries[:] = [
            one for one in house.store.entries if not (isinstance(one, TurnOpened) and one.turn_id == gone)
        ]
        house.store.trouble = away
        await house.active_work.forget(SubjectErased(user=5))
        await house.outbox.wait_idle()
        house.store.trouble = False
        assert list(house.suspensions.waiting()) == [gone, kept] if away else [kept]
        assert (house.transport.texts.count(LOST), LOST in house.transport.texts) == ((0, False) if away else (1, True))


@each_case("finishing", [False, True])
async def test_what_waits_once_more_finds_a_place_in_a_full_lane_and_the_oldest_hears_of_it(finishing: bool) -> None:
    looked, go_on = asyncio.Event(), asyncio.Event()

    async def look(account: int, message_id: str) -> None:
        looked.set()
        await go_on.wait()

    async with hall("here", "here") as house:
        house.transport.get_message = look  # type: ignore[method-assign]  # one call of a fake waits
        house.lanes.hold(GROUP)
        now = house.clock.now()
        before = said("say before", user=MING, message_id="1")
        after = said((Mention(BOT), Quote("99"), Text("say after")), user=MING, message_id="2")
        for later, line in enumerate((before, after)):
            await house.dispatcher.handle(replace(line, time=now + later))
        house.lanes.release(GROUP)
        await looked.wait()
        house.lanes._max_waiting = 2
        for user in (11, 12):
            await house.dispatcher.handle(said(f"say {user}", user=user, message_id=str(user)))
        house.lanes.finishing = finishing
        await house.active_work.forget(SubjectErased(user=MING, said=now))
        waiting = house.lanes._lanes[GROUP].waiting
        assert [work.message.message_id for work in waiting if isinstance(work, Task)] == (
            ["11", "12"] if finishing else ["12", "2"]
        )
        house.lanes.finishing = False
        go_on.set()
        await house.lanes.wait_idle()
        assert house.transport.texts.count("here") == 2
