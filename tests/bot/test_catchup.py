from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.catchup import Catchup
from bot.domain.actions import SendMessage
from bot.domain.errors import ActionUnanswered
from bot.domain.events import Connected, Conversation, MessageReceived
from bot.domain.journal import MessageErased, MessageObserved, SendState, StoredSend
from bot.domain.segments import Text
from tests.bot.test_dispatcher import Hall
from tests.fakes import BOT, GROUP, PRIVATE, ScriptedModel, Step, said, until, words

HELLO = Connected(self_id=BOT, time=0.0)


@asynccontextmanager
async def back(*steps: Step, heard: float = 300) -> AsyncIterator[Hall]:
    """A hall that has heard GROUP so many seconds ago, with its catching up at work."""
    with ScriptedModel(*steps) as model:
        house = Hall(model)
        catchup = Catchup(
            transport=house.transport,
            dispatcher=house.dispatcher,
            outbox=house.outbox,
            store=house.store,
            clock=house.clock,
        )
        house.dispatcher.preload([], [(GROUP, house.clock.now() - heard)])
        async with asyncio.timeout(5), house.outbox.open(), house.dispatcher.lanes.open(), asyncio.TaskGroup() as group:
            task = group.create_task(catchup.run())
            yield house
            task.cancel()


def ago(message: MessageReceived, seconds: float) -> MessageReceived:
    return dataclasses.replace(message, time=message.time - seconds)


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


async def test_the_first_message_of_a_new_connection_hides_none_of_those_missed_before_it() -> None:
    missed = ago(said("tea time", at=False), 200)
    async with back() as house:
        house.transport.histories[GROUP] = (missed,)
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(said("coffee time", at=False))
        await until(lambda: len(house.store.of("message_observed")) == 2)


async def test_a_young_question_is_found_though_something_later_was_heard() -> None:
    """As after a process that heard the group again, and ended before it had caught up with it."""
    async with back(words("yes")) as house:
        house.dispatcher.preload([], [(GROUP, house.clock.now() - 5)])
        house.transport.histories[GROUP] = (ago(said("still there?"), 60),)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        assert house.transport.texts == ["yes"]


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
        assert house.outbox.in_doubt(BOT) == ()


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
        house.dispatcher.preload([], [(friend, house.clock.now()) for friend in friends])
        house.transport.histories[GROUP] = (ago(said("still there?"), 60),)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        assert house.transport.histories_asked == [friends[0], GROUP]


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
        house.dispatcher.preload([], [(other, house.clock.now() - 10)])
        await house.dispatcher.handle(HELLO)
        await house.dispatcher.handle(Connected(self_id=20002, time=0.0))
        await until(lambda: asked == [GROUP, other])


async def test_a_server_without_histories_is_asked_once_per_connection() -> None:
    other = Conversation(BOT, "group", 4343)
    async with back() as house:
        house.dispatcher.preload([], [(other, house.clock.now() - 10)])
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
        house.dispatcher.preload([], [(other, house.clock.now() - 10)])
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        assert house.transport.texts == ["yes"]


async def test_groups_of_another_account_and_groups_not_in_use_are_left_alone() -> None:
    async with back() as house:
        house.dispatcher.preload(
            [],
            [
                (Conversation(20002, "group", 4242), house.clock.now()),
                (Conversation(BOT, "group", 1), house.clock.now() - 48 * 3600),
            ],
        )
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.histories_asked)
        assert house.transport.histories_asked == [GROUP]
