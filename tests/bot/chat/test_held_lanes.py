from __future__ import annotations

from msgspec.structs import replace

from bot.core.conversation import Conversation
from bot.core.errors import NotConnected
from bot.core.events import MessageReceived
from bot.core.journal import MessageOverheard, TurnClosed
from frostagent.types.runs import Stop
from tests.bot.chat.test_catchup import HELLO, ago, answer, quotes, slow
from tests.bot.chat.test_recovery import turn
from tests.fakes import BOT, GROUP, PRIVATE, said, until, words


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
        await house.lanes.wait_idle()
        assert quotes(house) == ["2"]
        assert house.transport.histories_asked == [GROUP, PRIVATE]
        assert house.store.of("message_overheard") == [MessageOverheard(done), MessageOverheard(spoken)]


async def test_a_turn_left_open_is_closed_and_not_tried_again_where_the_history_shows_its_answer() -> None:
    """As after a process that answered while its journal could not be written."""
    done, waits = (turn(ago(said("hi", message_id=name), 60)) for name in ("1", "2"))
    async with slow(words("yes")) as (house, _, gate):
        for old in (done, waits):
            assert house.seen.claim(old.question)
        house.late.ask_again(done.question, retry=done)
        house.late.ask_again(waits.question, retry=replace(waits, turn_id="t5"))
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
        assert house.store.of("message_overheard") == [MessageOverheard(old)]
