"""What is found in a history: which of the questions in it were answered, by whom nobody knows any more."""

from __future__ import annotations

from functools import partial

from bot.core.actions import SendMessage
from bot.core.journal import MessageObserved, SendChanged, SendQueued, SendState
from frostagent.types.speech import Quote, Text
from tests.bot.chat.test_catchup import HELLO, ago, answer, back, quotes, slow
from tests.bot.hall import Hall
from tests.cases import each_case
from tests.fakes import BOT, GROUP, PRIVATE, said, until, words
from tests.fallback_lines import SORRY


async def test_a_question_that_the_history_shows_as_answered_is_only_heard() -> None:
    quoted, followed = ago(said("one", message_id="1"), 60), ago(said("two", message_id="2"), 55)
    both = quoted, answer("9", "1", "2"), followed
    for history, heard in (((quoted, answer("9", "1")), 1), ((followed, answer("9")), 1), (both, 2)):
        async with back() as house:
            house.transport.histories[GROUP] = history
            await house.dispatcher.handle(HELLO)
            await until(partial(_has_observed, house, heard))
            await house.lanes.wait_idle()
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
        await house.lanes.wait_idle()
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
        house.late.preload([], [(PRIVATE, house.clock.now() - 60)])
        sent = SendMessage(PRIVATE, (Text("one"),))
        house.store.put(SendQueued(send_id="s0", turn_id="t0", action=sent, final=True, at=own.time))
        house.store.put(SendChanged(send_id="s0", state=SendState.CONFIRMED, at=own.time, message_id="31"))
        house.transport.histories = {GROUP: (), PRIVATE: (missed, own)}
        await house.dispatcher.handle(HELLO)
        await until(lambda: house.transport.texts == ["two"])


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
        await house.lanes.wait_idle()
        assert [action.segments for action in house.transport.sent] == [
            (Quote("1"), Text(SORRY)),
            (Quote("5"), Text("new")),
        ]


# --- what a server repeats, and what was left open ------------------------------------------------


@each_case("shown", [True, False])
async def test_who_asked_what_a_server_repeats_is_asked_to_ask_again_where_the_journal_is_lost(shown: bool) -> None:
    done, waits, after = (ago(said("hi", message_id=name), 60) for name in ("1", "2", "3"))
    talk = ago(said("talk", at=False, message_id="4"), 60)
    since = ago(said("since", message_id="5"), 30)  # the server's clock may be behind
    async with slow(*[words("yes")] * shown, read=False) as (house, _, gate):
        gate.set()
        if shown:
            house.transport.histories[GROUP] = (done, waits, talk, answer("8", "1", seconds=55))
        await house.take(HELLO, done, waits, talk)
        await until(lambda: not house.lanes.is_held(GROUP))
        house.late.preload([], [], whole=False)
        await house.take(after)
        assert len(house.history.take_overheard(GROUP)) == 4
        await house.take(since)
        await house.outbox.wait_idle()
        assert quotes(house) == (["2", "3", "5"] if shown else ["1", "2", "3", "5"])
        assert house.transport.texts == ([SORRY, SORRY, "yes"] if shown else [SORRY] * 4)
