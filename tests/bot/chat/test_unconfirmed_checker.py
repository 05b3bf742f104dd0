from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from bot.chat.unconfirmed import LAG, UnconfirmedChecker
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnanswered
from bot.core.events import MessageReceived
from bot.core.journal import (
    MessageErased,
    SendChanged,
    SendQueued,
    SendState,
    Spoken,
    StoredSend,
    TurnClosed,
    TurnOpened,
    Undelivered,
)
from bot.core.language import Phrase
from bot.core.ports import Settled
from bot.memory.history import History
from bot.outbox.sender import LOOK_AFTER
from bot.policy import fallback_replies
from bot.policy.fallback_replies import apology
from frostagent.types.errors import BotError
from frostagent.types.messages import Usage, UserMessage
from frostagent.types.runs import Stop
from frostagent.types.speech import Confirmed, Quote, Refused, Text
from tests.bot.outbox.post import Post, own
from tests.fakes import GROUP, PRIVATE, SteppedClock, said, until
from tests.fallback_lines import LOST, REST, SORRY, TOO_LONG

CLOSED = TurnClosed(turn_id="t1", stop=Stop.ANSWERED, round=(), usage=Usage(), steps=1, at=0.0)


class Lookout(Post):
    """An outbox, a turn t1 that says something, and somebody who looks for what became of it."""

    def __init__(self, where: Conversation) -> None:
        self.time = SteppedClock()
        super().__init__(clock=self.time)
        self.history = History(store=self.store)
        self.where = where
        self.question = structs.replace(said("?", where=where, message_id="5"), time=self.time.now() - 60)
        self.store.put(
            TurnOpened(turn_id="t1", question=self.question, user=UserMessage("?"), at=self.time.now()),
        )
        self.transport.histories[where] = (self.question,)

    async def lose(self, text: str = "an answer", *, final: bool = True) -> None:
        """The turn says something, and nobody answers."""
        before = len(self.outbox.unconfirmed.at(self.where))
        self.transport.failures = [ActionUnanswered("cut")]
        self.outbox.post(SendMessage(self.where, (Text(text),)), turn_id="t1", final=final)
        await until(lambda: not self.transport.failures)
        await self.time.advance(LOOK_AFTER)
        assert len(self.outbox.unconfirmed.at(self.where)) == before + 1

    @property
    def asked_again(self) -> list[SendMessage]:
        return [action for action in self.transport.sent if Text(LOST) in action.segments]


@asynccontextmanager
async def lookout(
    where: Conversation = GROUP, *, ended: bool = True, settled: Sequence[Settled] = ()
) -> AsyncIterator[Lookout]:
    post = Lookout(where)
    unconfirmed_checker = UnconfirmedChecker(
        transport=post.transport,
        outbox=post.outbox,
        store=post.store,
        history=post.history,
        clock=post.time,
        settled=settled,
    )
    if ended:
        post.store.put(CLOSED)
    async with asyncio.timeout(30), post.outbox.open(), asyncio.TaskGroup() as group:
        task = group.create_task(unconfirmed_checker.run())
        yield post
        task.cancel()


async def test_who_asked_for_what_the_history_lacks_is_asked_to_ask_again_once() -> None:
    async with lookout() as post:
        await post.lose()
        await post.time.advance(LAG)
        assert [action.segments for action in post.asked_again] == [(Quote("5"), Text(LOST))]
        post.outbox.connected()
        await post.time.advance(LAG)
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_in_private_too() -> None:
    async with lookout(PRIVATE) as post:
        await post.lose()
        await post.time.advance(LAG)
        assert [(action.conversation, action.segments) for action in post.asked_again] == [(PRIVATE, (Text(LOST),))]


async def test_that_it_was_lost_and_what_the_asker_is_told_is_written_down_together_before_it_is_told() -> None:
    async with lookout() as post:
        await post.lose()
        await post.time.advance(LAG)
        entries = post.store.entries
        place = next(
            place for place, e in enumerate(entries) if isinstance(e, SendChanged) and e.state is SendState.DROPPED
        )
        queued = entries[place + 1]
        assert isinstance(queued, SendQueued)
        assert (queued.turn_id, queued.final, queued.state) == ("t1", True, SendState.QUEUED)


async def test_a_history_that_may_lag_is_not_believed_yet() -> None:
    async with lookout() as post:
        await post.lose()
        await post.time.advance(LAG - 1)
        assert post.asked_again == []
        post.transport.histories[GROUP] = (post.question, own("an answer", "99"))
        await post.time.advance(LAG)
        assert post.asked_again == []
        assert post.rows["an answer"] == "confirmed"


async def test_each_send_has_its_own_time_though_another_one_is_looked_for_there() -> None:
    for meanwhile in (False, True):  # before the first is looked for, or while that goes on
        async with lookout(ended=False) as post:
            await post.lose("one", final=False)
            await post.time.advance(LAG - (1 if meanwhile else 2))
            post.store.put(CLOSED)
            await post.lose("two")
            await post.time.advance(0 if meanwhile else 1)
            asked = len(post.transport.histories_asked)
            await post.time.advance(LAG - 1)
            assert post.asked_again == []
            await post.time.advance(1)
            assert len(post.transport.histories_asked) == asked + 1
            assert len(post.asked_again) == 1


async def test_what_is_confirmed_while_it_is_looked_for_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    async with lookout() as post:
        read = post.store.spoken

        async def late(turn_id: str) -> Spoken | None:
            spoken = await read(turn_id)
            post.outbox.seen(own("an answer", "99"))
            return spoken

        post.store.spoken = late  # type: ignore[method-assign]  # one call of a fake is replaced
        await post.lose()
        await post.time.advance(LAG)
        assert post.asked_again == []
        assert post.states[-1] == "confirmed"
        assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_what_is_confirmed_before_the_look_is_not_lost() -> None:
    async with lookout() as post:
        await post.lose()
        post.outbox.seen(own("an answer", "99"))
        await post.time.advance(LAG)
        assert post.asked_again == []


async def test_where_nothing_can_be_read_nobody_is_told_until_it_can_after_a_connection() -> None:
    async with lookout() as post:
        del post.transport.histories[GROUP]
        await post.lose()
        await post.time.advance(LAG)
        await post.time.advance(LAG)
        assert post.asked_again == []
        post.transport.histories[GROUP] = (post.question,)
        await post.time.advance(LAG)
        assert post.asked_again == []
        post.outbox.connected()
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_while_the_journal_cannot_be_read_nobody_is_told() -> None:
    async with lookout() as post:
        await post.lose()
        post.store.trouble = True
        await post.time.advance(LAG)
        assert post.asked_again == []
        post.store.trouble = False
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_own_words_that_nobody_accounts_for_may_be_the_answer() -> None:
    async with lookout() as post:
        strange = structs.replace(own("an answer, changed on its way", "99"), segments=(Text("changed"),))
        post.transport.histories[GROUP] = (post.question, strange)
        await post.lose()
        await post.time.advance(LAG)
        assert post.asked_again == []


async def test_words_of_ours_that_are_known_are_not_the_answer() -> None:
    async with lookout() as post:
        receipt = await post.outbox.send(SendMessage(GROUP, (Text("to somebody else"),)), turn_id="t2")
        assert receipt == Confirmed("9001")
        mine = structs.replace(own("to somebody else", "9001"), segments=(Text("to somebody else"),))
        post.transport.histories[GROUP] = (post.question, mine)
        await post.lose()
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_while_a_run_goes_on_it_may_yet_answer() -> None:
    async with lookout(ended=False) as post:
        await post.lose(final=False)
        await post.time.advance(LAG)
        await post.time.advance(LAG)
        assert post.asked_again == []
        await post.outbox.send(SendMessage(GROUP, (Text("the answer"),)), turn_id="t1", final=True)
        post.store.put(CLOSED)
        await post.time.advance(LAG)
        assert post.asked_again == []


async def test_a_run_that_ends_without_another_word_has_not_answered() -> None:
    async with lookout(ended=False) as post:
        await post.lose(final=False)
        await post.time.advance(LAG)
        post.store.put(CLOSED)
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_an_apology_that_gets_lost_is_not_followed_by_another() -> None:
    async with lookout() as post:
        await post.lose(SORRY)
        await post.time.advance(LAG)
        assert post.asked_again == []
    async with lookout() as post:
        await post.lose()
        post.transport.failures = [ActionUnanswered("cut")]
        for _ in range(5):
            await post.time.advance(LAG)
        assert [post.states.count(state) for state in ("unknown", "dropped")] == [2, 1]
        assert post.asked_again == []


async def test_an_answer_that_nobody_waits_for_any_more_is_not_told_of() -> None:
    async with lookout() as post:
        await post.lose()
        asked = len(post.transport.histories_asked)
        await post.time.advance(121)
        assert (post.asked_again, len(post.transport.histories_asked)) == ([], asked)


async def test_what_no_turn_said_is_nobody_s_answer() -> None:
    async with lookout() as post:
        post.transport.failures = [ActionUnanswered("cut")]
        post.outbox.post(SendMessage(GROUP, (Text("a line for everybody"),)))
        await until(lambda: not post.transport.failures)
        await post.time.advance(LOOK_AFTER)
        asked = len(post.transport.histories_asked)
        await post.time.advance(LAG)
        assert (post.asked_again, len(post.transport.histories_asked)) == ([], asked)


async def test_what_an_earlier_process_left_on_the_wire_is_looked_for_too() -> None:
    async with lookout() as post:
        action = apology(post.question, Phrase("an answer", "an answer"))
        queued = SendQueued(
            send_id="old", turn_id="t1", action=action, final=True, at=post.time.now(), state=SendState.SENDING
        )
        post.store.put(queued)
        stored = StoredSend(
            send_id="old", turn_id="t1", action=action, final=True, at=post.time.now(), state=SendState.SENDING
        )
        post.outbox.remember_unknown(stored)
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_a_question_that_was_taken_back_is_not_asked_for_again() -> None:
    async with lookout() as post:
        await post.lose()
        post.store.put(MessageErased(GROUP, "5"))
        await post.time.advance(LAG)
        assert post.asked_again == []


async def test_a_place_that_breaks_does_not_stop_the_others() -> None:
    async with lookout() as post:
        get_history, broken = post.transport.get_history, True

        async def breaking(conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
            if broken:
                raise ValueError("a bug")
            return await get_history(conversation, count=count)

        await post.lose()
        post.transport.get_history = breaking  # type: ignore[method-assign]  # one call of a fake is replaced
        await post.time.advance(LAG)
        broken = False
        post.outbox.connected()
        await post.time.advance(LAG)
        assert len(post.asked_again) == 1


async def test_words_that_a_history_tells_under_another_id_confirm_no_other_send() -> None:
    async with lookout() as post:
        sent = await post.outbox.send(SendMessage(GROUP, (Text("an answer"),)), turn_id="t1")
        assert isinstance(sent, Confirmed)
        await post.lose()
        row = structs.replace(own("an answer", message_id="-9"), time=post.time.now())
        post.transport.histories[GROUP] = (post.question, row)
        await post.time.advance(LAG)
        await until(lambda: bool(post.asked_again))


# --- what was refused when nobody waited for it any more ------------------------------------------


REFUSED = ActionRefused("send_group_msg", retcode=200, wording="Get Uid Error")
LONG = ActionRefused("send_group_msg", retcode=1200, wording="消息内容过长")
MUTED = ActionRefused("send_group_msg", retcode=200, wording='EventRet: {"result":120}')
LEFT = ActionRefused("send_group_msg", retcode=200, wording='EventRet: {"result":110}')
UNCONFIRMED = structs.replace(CLOSED, undelivered=Undelivered.UNCONFIRMED)
INTERRUPTED = structs.replace(CLOSED, stop=Stop.INTERRUPTED)
LATE: dict[str, tuple[list[BotError], TurnClosed, str]] = {
    "refused": ([REFUSED], UNCONFIRMED, LOST),
    "refused, and the line too": ([REFUSED, REFUSED], UNCONFIRMED, ""),
    "too long": ([LONG], UNCONFIRMED, TOO_LONG),
    "muted": ([MUTED], UNCONFIRMED, ""),
    "not in the group any more": ([LEFT], UNCONFIRMED, ""),
    "left by an earlier process": ([REFUSED], INTERRUPTED, LOST),
    "a line in place of an answer": ([REFUSED], structs.replace(CLOSED, stop=Stop.FAILED), ""),
    "its asker said stop": ([REFUSED], structs.replace(CLOSED, stop=Stop.STOPPED), ""),
    "arrived": ([], UNCONFIRMED, ""),
}


async def test_who_asked_for_what_is_refused_after_all_hears_so_once_if_anything_can_be_said() -> None:
    wrong = {}
    for name, (failures, closed, line) in LATE.items():
        async with lookout(ended=False) as post:
            post.store.put(closed)
            post.transport.failures = list(failures)
            post.outbox.post(SendMessage(GROUP, (Text("an answer"),)), turn_id="t1", final=True)
            await post.outbox.wait_idle()
            for _ in range(3):
                await post.time.advance(LAG)
            await post.outbox.wait_idle()
            said_there = [action.words for action in post.transport.sent if action.words != "an answer"]
            is_news = failures in ([REFUSED], [REFUSED, REFUSED], [LONG])
            if said_there != [line] * bool(line) or bool(post.told) != is_news:
                wrong[name] = said_there, post.told
    assert wrong == {}


async def test_what_an_earlier_process_was_refused_is_told_as_if_it_were_refused_now() -> None:
    wrong = {}
    for reason, line in (
        ("Get Uid Error", LOST),
        ("too long: it is too long. Send a shorter text (消息内容过长)", TOO_LONG),
        ("muted: the bot is muted here. Do not try again ()", ""),
        ("not in the group: the bot is not in this group ()", ""),
    ):
        async with lookout(ended=False) as post:
            action, at, state = SendMessage(GROUP, (Text("an answer"),)), post.time.now(), SendState.REFUSED
            row = SendQueued(send_id="old", turn_id="t1", action=action, final=True, at=at, state=state)
            post.store.put(row, UNCONFIRMED)
            stored = StoredSend(
                send_id="old", turn_id="t1", action=action, final=True, at=at, state=state, reason=reason
            )
            post.outbox.remember_refused(stored)
            await post.time.advance(LAG)
            await post.outbox.wait_idle()
            if (lines := [sent.words for sent in post.transport.sent]) != [line] * bool(line):
                wrong[reason] = lines
    assert wrong == {}


async def test_after_a_polite_line_of_an_earlier_process_no_other_one_is_said() -> None:
    async with lookout(ended=False) as post:
        sorry, at, state = apology(post.question, fallback_replies.SORRY), post.time.now(), SendState.CONFIRMED
        row = SendQueued(send_id="old", turn_id="t1", action=sorry, final=True, at=at, state=state)
        post.store.put(row, INTERRUPTED)
        post.transport.failures = [REFUSED]
        post.outbox.post(SendMessage(GROUP, (Text("an answer"),)), turn_id="t1", final=True)
        await post.time.advance(LAG)
        await post.outbox.wait_idle()
        assert post.transport.sent == []


async def test_of_two_messages_that_are_refused_late_the_asker_hears_one_line() -> None:
    async with lookout(ended=False) as post:
        post.transport.failures = [REFUSED, REFUSED]
        for text in ("one", "two"):
            post.outbox.post(SendMessage(GROUP, (Text(text),)), turn_id="t1", final=True)
        await post.outbox.wait_idle()
        await post.time.advance(LAG)
        assert post.asked_again == []  # the run goes on: it may yet answer
        post.store.put(UNCONFIRMED)
        await post.time.advance(LAG)
        assert [action.segments for action in post.asked_again] == [(Quote("5"), Text(LOST))]


async def test_of_two_refusals_that_are_looked_into_at_once_one_is_told() -> None:
    async with lookout(ended=False) as post:
        read, both = post.store.spoken, asyncio.Barrier(2)

        async def together(turn_id: str) -> Spoken | None:
            spoken = await read(turn_id)
            await both.wait()
            return spoken

        post.store.spoken = together  # type: ignore[method-assign]  # one call of a fake is replaced
        post.store.put(UNCONFIRMED)
        post.transport.failures = [REFUSED, REFUSED]
        for text in ("one", "two"):
            post.outbox.post(SendMessage(GROUP, (Text(text),)), turn_id="t1", final=True)
        await until(lambda: bool(post.asked_again))
        await post.outbox.wait_idle()
        assert len(post.asked_again) == 1


async def test_of_an_answer_of_which_the_rest_is_refused_late_the_asker_hears_that() -> None:
    async with lookout(ended=False) as post:
        post.store.put(UNCONFIRMED)
        await post.outbox.send(SendMessage(GROUP, (Text("one"),)), turn_id="t1", final=True)
        post.transport.failures = [REFUSED]
        post.outbox.post(SendMessage(GROUP, (Text("two"),)), turn_id="t1", final=True)
        await post.outbox.wait_idle()
        await post.time.advance(LAG)
        assert [action.words for action in post.transport.sent] == ["one", REST]


async def test_a_refusal_that_the_run_hears_of_is_its_own_to_tell() -> None:
    async with lookout(ended=False) as post:
        post.transport.failures = [REFUSED]
        receipt = await post.outbox.send(SendMessage(GROUP, (Text("an answer"),)), turn_id="t1", final=True)
        assert isinstance(receipt, Refused)
        post.store.put(UNCONFIRMED)
        await post.time.advance(LAG)
        assert post.asked_again == []


async def test_nobody_hears_of_a_question_that_was_taken_back_or_that_nobody_asked() -> None:
    for is_recalled in (True, False):
        async with lookout(ended=False) as post:
            post.store.entries[0] = structs.replace(post.store.of("turn_opened")[0], uncalled=not is_recalled)
            post.store.put(UNCONFIRMED)
            if is_recalled:
                post.store.put(MessageErased(GROUP, "5"))
            post.transport.failures = [REFUSED]
            post.outbox.post(SendMessage(GROUP, (Text("an answer"),)), turn_id="t1", final=True)
            await post.outbox.wait_idle()
            await post.time.advance(LAG)
            assert post.asked_again == []


def into(heard: list[tuple[str, str]]) -> Settled:
    return lambda turn_id, outcome: heard.append((turn_id, outcome))


def broken(_turn_id: str, _outcome: str) -> None:
    raise ValueError("a bug")


async def test_what_became_of_a_turn_after_its_end_is_told_once() -> None:
    ends: dict[str, tuple[list[BotError], TurnClosed, list[tuple[str, str]]]] = {
        "refused": ([REFUSED], UNCONFIRMED, [("t1", "not_delivered")]),
        "arrived": ([], UNCONFIRMED, [("t1", "answered")]),
        "answered before": ([], CLOSED, []),
    }
    for failures, closed, heard in ends.values():
        heard_of: list[tuple[str, str]] = []
        async with lookout(ended=False, settled=[broken, into(heard_of)]) as post:
            post.store.put(closed)
            post.transport.failures = list(failures)
            post.outbox.post(SendMessage(GROUP, (Text("an answer"),)), turn_id="t1", final=True)
            await post.outbox.wait_idle()
            await post.time.advance(LAG)
            await post.outbox.wait_idle()
        assert heard_of == heard


async def test_what_the_history_shows_of_a_turn_is_told_too() -> None:
    for arrived, outcome in ((True, "answered"), (False, "not_delivered")):
        heard_of: list[tuple[str, str]] = []
        async with lookout(ended=False, settled=[broken, into(heard_of)]) as post:
            post.store.put(UNCONFIRMED)
            await post.lose()
            if arrived:
                post.transport.histories[GROUP] = (post.question, own("an answer", "99"))
            for _ in range(3):
                await post.time.advance(LAG)
        assert heard_of == [("t1", outcome)]
