from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import structs

from bot.chat.backfill import Catchup
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered, NotConnected
from bot.core.events import Connected, MessageReceived
from bot.core.journal import MessageErased, MessageObserved, MessageOverheard, SendState, StoredSend
from frostagent.types.speech import Quote, Text
from tests.bot.hall import Hall
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, ScriptedModel, Step, SteppedClock, said, until, words

HELLO = Connected(self_id=BOT, time=0.0)


@asynccontextmanager
async def back(*steps: Step, heard: float = 300, read: bool = True, whole: bool = True) -> AsyncIterator[Hall]:
    """A hall that has heard GROUP so many seconds ago, with its catching up at work.

    Its journal was read, unless `read` is False, and is all there is, unless `whole` is.
    """
    with ScriptedModel(*steps) as model:
        house = Hall(model, watched=True)
        catchup = Catchup(
            transport=house.transport,
            reconnect_queue=house.arrivals,
            late_messages=house.late,
            held=house.held,
            lanes=house.lanes,
            outbox=house.outbox,
            store=house.store,
            clock=house.clock,
        )
        in_use = [(GROUP, house.clock.now() - heard)]
        if read:
            house.late.preload([], in_use, whole=whole)
        else:
            house.places.learn(in_use)
        async with (
            asyncio.timeout(30),
            house.outbox.open(),
            house.lanes.open(house.lane.do),
            asyncio.TaskGroup() as group,
        ):
            task = group.create_task(catchup.run())
            yield house
            task.cancel()


def ago(message: MessageReceived, seconds: float) -> MessageReceived:
    return structs.replace(message, time=message.time - seconds)


def answer(message_id: str, *quotes: str, seconds: float = 0) -> MessageReceived:
    """The bot has said something."""
    return ago(said((*map(Quote, quotes), Text("yes")), user=BOT, message_id=message_id, at=False), seconds)


async def test_a_young_question_that_was_missed_is_answered_once() -> None:
    question = ago(said("still there?"), 60)
    async with back(words("yes")) as house:
        house.transport.histories[GROUP] = (question,)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        await house.take(HELLO, question)
        await until(lambda: len(house.transport.histories_asked) == 2)
        assert house.transport.texts == ["yes"]


async def test_old_questions_and_chatter_are_only_heard() -> None:
    old, talk = ago(said("anybody?"), 200), ago(said("tea time", at=False), 100)
    async with back(words("ok")) as house:
        house.transport.histories[GROUP] = (ago(said("before", at=False), 400), old, talk)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.histories_asked)
        await until(lambda: len(house.store.of("message_observed")) == 2)
        assert house.transport.sent == []
        await house.take(said("what did I miss?"))
        user = house.history.messages(GROUP)[0]
        assert "anybody?" in str(user)
        assert "tea time" in str(user)
        assert "before" not in str(user)


async def test_what_nobody_confirmed_is_looked_for_in_private_too_and_nothing_else_there() -> None:
    own = said("hello", user=BOT, message_id="31", where=PRIVATE)
    async with back() as house:
        stored = StoredSend(
            send_id="s0",
            turn_id="t0",
            action=SendMessage(PRIVATE, (Text("hello"),)),
            final=True,
            at=own.time,
            state=SendState.UNKNOWN,
        )
        house.outbox.remember_unknown(stored)
        house.transport.histories = {GROUP: (), PRIVATE: (said("and?", where=PRIVATE), own)}
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.store.of("send_changed"))
        assert house.store.of("message_observed") == []
        assert house.outbox.unconfirmed.places(BOT) == ()


async def test_what_the_bot_said_confirms_what_nobody_had_confirmed() -> None:
    own = said("hello", user=BOT, message_id="31", at=False)
    sent = SendMessage(GROUP, (Text("hello"),))
    async with back() as house:
        stored = StoredSend(send_id="s0", turn_id="t0", action=sent, final=True, at=own.time, state=SendState.UNKNOWN)
        house.outbox.remember_unknown(stored)
        house.transport.histories[GROUP] = (own,)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.store.of("send_changed"))
        assert house.transport.sent == []


async def test_what_was_heard_before_the_dispatcher_can_remember_is_not_heard_again() -> None:
    """The last message of a quiet group is as old as the place itself; one of the same second may have been missed."""
    last, gone, missed = (ago(said(text, at=False), 700) for text in ("tea", "recalled", "the same second"))
    async with back(heard=700) as house:
        house.store.put(*[MessageObserved(message, overheard=True) for message in (last, gone)])
        house.store.put(MessageErased(GROUP, gone.message_id))
        house.transport.histories[GROUP] = (last, gone, missed)
        await house.dispatcher.handle(HELLO)
        await until(lambda: len(house.store.of("message_observed")) == 3)
        assert house.history.take_overheard(GROUP) == (missed,)


async def test_while_the_store_cannot_be_read_only_what_the_dispatcher_remembers_is_looked_at() -> None:
    old, young = ago(said("old", at=False), 700), ago(said("young", at=False), 500)
    async with back(heard=700) as house:
        house.store.trouble = True
        house.transport.histories[GROUP] = (old, young)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.store.of("message_observed"))
        assert house.history.take_overheard(GROUP) == (young,)


async def test_what_was_missed_is_read_where_it_was_said() -> None:
    missed = ago(said("FIRST missed", at=False), 200)
    async with back(words("ok")) as house:
        house.transport.histories[GROUP] = (missed,)
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(said("SECOND live", at=False))
        await until(lambda: len(house.store.of("message_observed")) == 2)
        await house.take(said("what was that?"))
        user = str(house.history.messages(GROUP)[0])
        assert user.index("FIRST") < user.index("SECOND")


async def test_a_private_question_that_was_missed_is_answered_too() -> None:
    question = ago(said("still there?", where=PRIVATE), 60)
    async with back(words("one"), words("yes")) as house:
        await house.take(said("hi", where=PRIVATE))
        house.transport.histories = {GROUP: (), PRIVATE: (question,)}
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.texts == ["one", "yes"])


async def test_a_server_that_only_knows_the_histories_of_groups_is_asked_for_those() -> None:
    friends = [Conversation(BOT, "private", number) for number in (1, 2)]
    async with back(words("yes")) as house:
        house.late.preload([], [(friend, house.clock.now()) for friend in friends])
        house.transport.histories[GROUP] = (ago(said("still there?"), 60),)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        assert house.transport.histories_asked == [friends[0], GROUP]


@each_case(("retcode", "groups_asked"), [(404, 1), (1404, 1), (-1, 1), (1200, 2)])
async def test_a_server_that_does_not_know_the_question_is_asked_once(retcode: int, groups_asked: int) -> None:
    other, friend = Conversation(BOT, "group", 4343), Conversation(BOT, "private", 1)
    async with back() as house:

        async def refuse(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            house.transport.histories_asked.append(conversation)
            raise ActionRefused("get_group_msg_history", retcode=retcode, wording="")

        house.transport.get_history = refuse  # type: ignore[method-assign]  # one call of a fake is replaced
        house.late.preload([], [(friend, house.clock.now() - 400), (other, house.clock.now() - 10)])
        await house.dispatcher.handle(HELLO)
        await until(lambda: friend in house.transport.histories_asked)  # the last one
        assert house.transport.histories_asked == [*[other, GROUP][:groups_asked], friend]


async def test_an_account_whose_server_hangs_keeps_no_other_waiting() -> None:
    other = Conversation(20002, "group", 1)
    async with back() as house:
        asked: list[Conversation] = []

        async def hang(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            asked.append(conversation)
            if conversation.platform_id == BOT:
                await asyncio.Event().wait()
            return ()

        house.transport.get_history = hang  # type: ignore[method-assign]  # one call of a fake is replaced
        house.late.preload([], [(other, house.clock.now() - 10)])
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(Connected(self_id=20002, time=0.0))
        await until(lambda: asked == [GROUP, other])


async def test_a_server_without_histories_is_asked_once_per_connection() -> None:
    other = Conversation(BOT, "group", 4343)
    async with back() as house:
        house.late.preload([], [(other, house.clock.now() - 10)])
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.histories_asked)
        assert house.transport.histories_asked == [other]


async def test_a_server_that_does_not_answer_costs_one_group_not_the_others() -> None:
    other = Conversation(BOT, "group", 4343)
    async with back(words("yes")) as house:

        async def answer(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            if conversation == other:
                raise ActionUnanswered("?")
            return (said("hi"),)

        house.transport.get_history = answer  # type: ignore[method-assign]  # one call of a fake is replaced
        house.late.preload([], [(other, house.clock.now() - 10)])
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        assert house.transport.texts == ["yes"]


# --- the order of things --------------------------------------------------------------------------


@asynccontextmanager
async def slow(*steps: Step, read: bool = True) -> AsyncIterator[tuple[Hall, SteppedClock, asyncio.Event]]:
    """The same, with time that stands still, and a server that tells no history before the event is set."""
    async with back(*steps, read=read) as house:
        clock, gate = SteppedClock(), asyncio.Event()
        house.clock.sleep = clock.sleep  # type: ignore[method-assign]  # one call of a fake is replaced
        get_history = house.transport.get_history

        async def late(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            await gate.wait()
            return await get_history(conversation, count=count)

        house.transport.get_history = late  # type: ignore[method-assign]  # and another
        yield house, clock, gate


def quotes(house: Hall) -> list[str]:
    """Which questions were answered, in order."""
    firsts = (action.segments[0] for action in house.transport.sent)
    return [first.message_id for first in firsts if isinstance(first, Quote)]


async def test_what_was_missed_is_answered_before_what_came_after_it() -> None:
    missed = [ago(said("missed", message_id=name), 20) for name in ("2", "1")]
    live = [said("live", message_id=name) for name in ("3", "4")]
    async with slow(*[words("yes")] * 3) as (house, clock, gate):
        house.transport.histories[GROUP] = (*missed, live[0])
        await house.dispatcher.handle(HELLO)
        for message in live:
            await house.dispatcher.handle(message)
        await clock.advance(2.9)
        assert house.transport.sent == []
        gate.set()
        await until(lambda: len(house.transport.sent) == 3)
        assert quotes(house) == ["2", "1", "4"]


async def test_nobody_waits_longer_than_three_seconds_for_a_history() -> None:
    async with slow(words("yes"), words("late")) as (house, clock, gate):
        house.transport.histories[GROUP] = (ago(said("missed", message_id="1"), 20),)
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(said("live", message_id="2"))
        await clock.advance(3)
        await until(lambda: house.transport.sent)
        gate.set()
        await until(lambda: len(house.transport.sent) == 2)
        assert quotes(house) == ["2", "1"]
        await house.lanes.wait_idle()


async def test_where_somebody_waits_is_looked_at_first() -> None:
    others = [Conversation(BOT, "group", number) for number in (1, 2)]
    async with slow(words("yes")) as (house, _, gate):
        house.late.preload([], [(other, house.clock.now() - 5) for other in others])
        house.transport.histories = dict.fromkeys((*others, GROUP), ())
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(said("live"))
        gate.set()
        await until(lambda: len(house.transport.histories_asked) == 3)
        assert house.transport.histories_asked[0] == GROUP
        await until(lambda: house.transport.sent)


async def test_where_there_is_no_history_nobody_waits() -> None:
    friend = Conversation(BOT, "private", 5)
    elsewhere = Conversation(BOT, "group", 4343)
    async with slow(*[words("yes")] * 4) as (house, _, gate):
        await house.dispatcher.handle(HELLO)
        await house.take(said("nobody was heard there", where=elsewhere))
        assert len(house.transport.sent) == 1
        gate.set()
        await house.take(said("live"), said("live", where=friend), HELLO, said("live", user=5))
        assert len(house.transport.sent) == 4


async def test_when_the_account_is_gone_again_nobody_waits() -> None:
    async with slow(words("yes")) as (house, *_):

        async def away(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            raise NotConnected("gone")

        house.transport.get_history = away  # type: ignore[method-assign]  # one call of a fake is replaced
        await house.dispatcher.handle(HELLO)
        await house.take(said("live"))
        assert len(house.transport.sent) == 1


async def test_a_question_that_was_put_off_is_not_asked_where_the_history_shows_its_answer() -> None:
    """As after a process that answered while its journal could not be written."""
    done, waits = (ago(said(name, message_id=name), 20) for name in ("1", "2"))
    async with slow(words("yes")) as (house, _, gate):
        for message in (done, waits):
            assert house.seen.claim(message)
            house.store.put(MessageObserved(message, overheard=False))
            house.late.ask_again(message)
        house.transport.histories[GROUP] = (done, waits, answer("9", "1", seconds=10))
        gate.set()
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        await house.lanes.wait_idle()
        assert quotes(house) == ["2"]
        assert house.store.of("message_overheard") == [MessageOverheard(done)]


async def test_what_a_history_tells_under_other_ids_is_known_and_what_was_missed_is_heard() -> None:
    question = ago(said("still there?", message_id="q"), 60)
    async with back(words("yes"), words("yes, too")) as house:
        await house.take(question, ago(said("哈哈", message_id="h", at=False), 50))
        assert house.transport.texts == ["yes"]
        sent = structs.replace(house.transport.sent[0])
        own = structs.replace(said("yes", user=BOT, message_id="-9", at=False), time=house.clock.now())
        own = structs.replace(own, segments=(Quote("-1"), *(part for part in sent.segments if isinstance(part, Text))))
        missed = ago(said("and now?", message_id="-4"), 20)
        house.transport.histories[GROUP] = (
            structs.replace(question, message_id="-1"),
            ago(said("哈哈", message_id="-2", at=False), 50),
            ago(said("哈哈", message_id="-3", at=False), 49),
            missed,
            own,
        )
        await house.dispatcher.handle(HELLO)
        await until(lambda: len(house.transport.texts) == 2)
        await house.lanes.wait_idle()
        assert house.transport.texts == ["yes", "yes, too"]
        taken = [entry.message.message_id for entry in house.store.entries if isinstance(entry, MessageObserved)]
        assert taken == ["q", "h", "-3", "-4"]
        # Now their events come after all: each of what was found is one of them.
        await house.take(structs.replace(missed, message_id="4"))
        assert house.door.duplicates == 1
        assert house.transport.texts == ["yes", "yes, too"]


async def test_an_event_that_comes_behind_its_row_is_known_once_and_a_second_equal_line_is_another() -> None:
    async with back() as house:
        missed = ago(said("哈哈", message_id="-2", at=False), 50)
        house.transport.histories[GROUP] = (missed,)
        await house.dispatcher.handle(HELLO)
        await until(lambda: any(isinstance(entry, MessageObserved) for entry in house.store.entries))
        await house.take(*(structs.replace(missed, message_id=id_) for id_ in ("2", "3")))
        taken = [entry.message.message_id for entry in house.store.entries if isinstance(entry, MessageObserved)]
        assert taken == ["-2", "3"]
        house.clock.time += 601  # nothing is repeated any more
        assert not house.seen.was_found(structs.replace(missed, message_id="5"))
