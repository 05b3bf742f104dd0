"""What is found in a history: which of the questions in it were answered, by whom nobody knows any more."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from bot.domain.actions import SendMessage
from bot.domain.errors import NotConnected
from bot.domain.events import Conversation, MessageReceived
from bot.domain.journal import MessageObserved, MessageOverheard, SendChanged, SendQueued, SendState, TurnClosed
from bot.domain.run import Stop
from bot.domain.segments import Quote, Text
from bot.policy.apologies import SORRY
from tests.bot.conversation.test_catchup import HELLO, ago, answer, back, quotes, slow
from tests.bot.conversation.test_dispatcher import Hall, recalled
from tests.bot.conversation.test_recovery import turn
from tests.fakes import BOT, GROUP, PRIVATE, said, until, words


async def test_a_question_that_the_history_shows_as_answered_is_only_heard() -> None:
    quoted, followed = ago(said("one", message_id="1"), 60), ago(said("two", message_id="2"), 55)
    both = quoted, answer("9", "1", "2"), followed
    for history, heard in (((quoted, answer("9", "1")), 1), ((followed, answer("9")), 1), (both, 2)):
        async with back() as house:
            house.transport.histories[GROUP] = history
            await house.dispatcher.handle(HELLO)
            await until(partial(_has_observed, house, heard))
            await house.dispatcher.lanes.wait_idle()
            assert house.transport.sent == []
            assert len(house.history.take_overheard(GROUP)) == heard


def _has_observed(house: Hall, number: int) -> bool:
    return len(house.store.of("message_observed")) == number


async def test_an_answer_to_somebody_else_is_no_answer() -> None:
    missed = ago(said("two", message_id="2"), 55)
    async with back(words("yes")) as house:
        house.transport.histories[GROUP] = (ago(said("one", message_id="1"), 60), missed, answer("9", "1"))
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        await house.dispatcher.lanes.wait_idle()
        assert [action.segments[0] for action in house.transport.sent] == [Quote("2")]


async def test_words_of_this_process_answer_nothing_that_it_never_took() -> None:
    """In private nothing is quoted: what was said there may have been the answer to the question before."""
    missed = ago(said("and?", where=PRIVATE, message_id="2"), 55)
    async with back(words("one"), words("two")) as house:
        await house.take(said("hi", where=PRIVATE, message_id="1"))
        own = ago(said("one", user=BOT, message_id="9001", where=PRIVATE), 50)
        house.transport.histories = {GROUP: (), PRIVATE: (missed, own)}
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.texts == ["one", "two"])


async def test_words_that_the_journal_knows_answer_nothing_that_it_does_not() -> None:
    missed = ago(said("and?", where=PRIVATE, message_id="2"), 55)
    own = ago(said("one", user=BOT, message_id="31", where=PRIVATE), 50)
    async with back(words("two")) as house:
        house.dispatcher.preload([], [(PRIVATE, house.clock.now() - 60)])
        sent = SendMessage(PRIVATE, (Text("one"),))
        house.store.put(SendQueued(send_id="s0", turn_id="t0", action=sent, final=True, at=own.time))
        house.store.put(SendChanged(send_id="s0", state=SendState.CONFIRMED, at=own.time, message_id="31"))
        house.transport.histories = {GROUP: (), PRIVATE: (missed, own)}
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.texts == ["two"])


async def test_until_the_journal_was_read_what_is_older_than_the_process_is_left_alone() -> None:
    older, younger = ago(said("older", message_id="1"), 1), said("younger", message_id="2")
    async with back(words("yes"), words("again"), read=False) as house:
        house.transport.histories[GROUP] = (older, younger)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        await house.dispatcher.lanes.wait_idle()
        assert [entry.message for entry in observed(house)] == [younger]
        house.dispatcher.preload([], [(GROUP, house.clock.now())])  # it is read, and does not know of it
        await until(lambda: len(house.transport.sent) == 2)
        assert house.transport.sent[1].segments[0] == Quote("1")


async def test_what_was_taken_back_before_the_journal_was_read_is_nothing() -> None:
    back_again, stays = ago(said("hi", message_id="1"), 60), ago(said("hi", message_id="2"), 60)
    async with back(words("yes"), read=False) as house:
        for event in (back_again, stays, recalled("1")):
            await house.dispatcher.handle(event)
        house.dispatcher.preload([], [])
        await until(lambda: house.transport.sent)
        await house.dispatcher.lanes.wait_idle()
        assert quotes(house) == ["2"]
        assert [entry.message for entry in observed(house)] == [stays]


def observed(house: Hall) -> list[MessageObserved]:
    return [entry for entry in house.store.entries if isinstance(entry, MessageObserved)]


async def test_where_a_damaged_journal_was_set_aside_who_waits_is_asked_to_ask_again_and_nothing_is_run() -> None:
    """Something may have been done for it already, by a process of which nobody knows anything any more."""
    waits, done = ago(said("waits", message_id="1"), 60), ago(said("done", message_id="2"), 60)
    old, talk = ago(said("old", message_id="3"), 130), ago(said("talk", at=False, message_id="4"), 60)
    async with back(words("new"), whole=False) as house:
        house.transport.histories[GROUP] = (old, done, answer("9", "2", seconds=58), talk, waits)
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.sent)
        await house.take(HELLO, said("new", message_id="5"))
        await until(lambda: len(house.transport.histories_asked) == 2)
        await house.dispatcher.lanes.wait_idle()
        assert [action.segments for action in house.transport.sent] == [
            (Quote("1"), Text(SORRY)),
            (Quote("5"), Text("new")),
        ]


@pytest.mark.parametrize("ahead", [300, -300])
async def test_how_old_a_missed_question_is_does_not_depend_on_the_servers_clock(ahead: int) -> None:
    new, old, young = (
        ago(said("hi", message_id=name), ahead + age) for name, age in (("1", 0), ("2", 130), ("3", 110))
    )
    async with back(words("new"), words("young")) as house:
        house.dispatcher.seen.show(GROUP, (old,))
        await house.take(new)
        house.dispatcher.preload([], [(GROUP, old.time)])
        house.transport.histories[GROUP] = (old, young)
        await house.dispatcher.handle(HELLO)
        await until(lambda: len(house.transport.sent) == 2)
        assert house.transport.texts == ["new", "young"]


# --- what a server repeats, and what was left open ------------------------------------------------


async def test_what_a_server_repeats_is_not_answered_where_the_history_shows_its_answer() -> None:
    """As after a start with an empty journal; nobody was heard anywhere before."""
    done, waits = (ago(said("hi", message_id=name), 60) for name in ("1", "2"))
    spoken, own = ago(said("hi", where=PRIVATE), 60), ago(said("yes", user=BOT, where=PRIVATE, message_id="9"), 55)
    async with slow(words("yes")) as (house, _, gate):
        house.transport.histories = {GROUP: (done, waits, answer("8", "1", seconds=55)), PRIVATE: (spoken, own)}
        for message in (done, waits, spoken):
            await house.dispatcher.handle(message)
        gate.set()
        await until(lambda: house.transport.sent)
        await house.dispatcher.lanes.wait_idle()
        assert quotes(house) == ["2"]
        assert house.transport.histories_asked == [GROUP, PRIVATE]
        assert house.store.of("message_overheard") == [MessageOverheard(done), MessageOverheard(spoken)]


async def test_a_turn_left_open_is_closed_and_not_tried_again_where_the_history_shows_its_answer() -> None:
    """As after a process that answered while its journal could not be written."""
    done, waits = (turn(ago(said("hi", message_id=name), 60)) for name in ("1", "2"))
    async with slow(words("yes")) as (house, _, gate):
        for old in (done, waits):
            assert house.dispatcher.seen.claim(old.question)
        house.dispatcher.ask_again(done.question, retry=done)
        house.dispatcher.ask_again(waits.question, retry=replace(waits, turn_id="t5"))
        house.transport.histories = {GROUP: (done.question, waits.question, answer("9"), answer("8", "1"))}
        gate.set()
        await house.take(HELLO)
        ends = [(entry.turn_id, entry.stop) for entry in house.store.entries if isinstance(entry, TurnClosed)]
        assert ends[:2] == [("t0", Stop.STOPPED), ("t5", Stop.INTERRUPTED)]
        assert quotes(house) == ["2"]


async def test_where_the_account_is_gone_before_its_history_was_read_what_a_server_repeated_waits_for_it() -> None:
    old = ago(said("hi", message_id="1"), 60)
    async with slow(words("new")) as (house, _, gate):
        get_history = house.transport.get_history

        async def away(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            raise NotConnected("gone")

        house.transport.get_history = away  # type: ignore[method-assign]  # one call of a fake is replaced
        await house.take(old)
        assert house.transport.sent == []
        await house.take(said("live", message_id="2"))
        house.transport.get_history = get_history  # type: ignore[method-assign]  # back again
        house.transport.histories[GROUP] = (old, answer("9", "1", seconds=55))
        gate.set()
        await house.take(HELLO)
        assert quotes(house) == ["2"]


@pytest.mark.parametrize("shown", [True, False])
async def test_who_asked_what_a_server_repeats_is_asked_to_ask_again_where_the_journal_is_lost(shown: bool) -> None:
    done, waits, after = (ago(said("hi", message_id=name), 60) for name in ("1", "2", "3"))
    talk = ago(said("talk", at=False, message_id="4"), 60)
    since = ago(said("since", message_id="5"), 30)  # the server's clock may be behind
    async with slow(*[words("yes")] * shown, read=False) as (house, _, gate):
        gate.set()
        if shown:
            house.transport.histories[GROUP] = (done, waits, talk, answer("8", "1", seconds=55))
        await house.take(HELLO, done, waits, talk)
        await until(lambda: not house.dispatcher.lanes.is_held(GROUP))
        house.dispatcher.preload([], [], whole=False)
        await house.take(after)
        assert len(house.history.take_overheard(GROUP)) == 4
        await house.take(since)
        await house.outbox.wait_idle()
        assert quotes(house) == (["2", "3", "5"] if shown else ["1", "2", "3", "5"])
        assert house.transport.texts == ([SORRY, SORRY, "yes"] if shown else [SORRY] * 4)
