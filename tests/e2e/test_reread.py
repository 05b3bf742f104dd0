"""What SIGHUP makes a history let go of, a real journal gives back: nothing is lost, told twice, or told after all.

With a fake store: `test_what_is_read_anew_is_what_the_store_has_then` in `test_history.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from pydantic import SecretStr
from sqlalchemy import func, select, text

from adapters.storage.erasure import forget_user
from adapters.storage.tables import KEPT, messages, turns
from bot.cli.journal_commands import journal
from bot.core.journal import TurnOpened
from bot.memory.history import MAX_OVERHEARD, History
from config.settings import Settings
from frostagent.models.compaction import LONG
from frostagent.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from tests.adapters.storage.conftest import Opened, locked, opened
from tests.adapters.storage.entries import closing, heard, opening
from tests.fakes import GROUP

USER = 777  # who asks in `opening`
ROOM = 9000.0  # tokens, of a history whose window moves


@dataclass(frozen=True, slots=True)
class House:
    """A history over a real journal; `at` is that."""

    at: Opened
    history: History

    async def begin(self, turn_id: str) -> TurnOpened:
        """As `Turns` begins one: load, take what was overheard, write down that it goes on."""
        await self.history.load(GROUP)
        self.history.take_overheard(GROUP)
        turn = replace(opening(turn_id), user=UserMessage(f"小明({USER}): question {turn_id}"))
        assert await self.at.store.commit(turn)
        return turn

    def end(self, turn: TurnOpened, *answer: Message) -> tuple[Message, ...]:
        """As `Turns` ends one: keep the round, and put it, without waiting for anything."""
        answer = answer or (AssistantMessage(f"answer {turn.turn_id}"),)
        round_ = self.history.add_round(GROUP, turn.turn_id, turn.user, answer)
        self.at.store.put(closing(turn, *answer))
        return round_

    async def take(self, turn_id: str, *answer: Message) -> tuple[Message, ...]:
        return self.end(await self.begin(turn_id), *answer)

    def hear(self, words: str, message_id: str) -> None:
        """As the dispatcher takes chatter."""
        observed = heard(words, message_id=message_id)
        self.at.store.put(observed)
        self.history.overhear(observed.message)

    def stored(self) -> tuple[int, int]:
        """How many rounds, and how many messages, another process would find now."""
        with self.at.database.reading() as connection:
            kept = select(func.count()).select_from(turns).where(text(KEPT))
            return connection.scalar(kept) or 0, connection.scalar(select(func.count()).select_from(messages)) or 0

    @property
    def told(self) -> tuple[Message, ...]:
        return self.history.messages(GROUP)

    def overheard(self) -> list[str]:
        return [message.message_id for message in self.history.take_overheard(GROUP)]


def forget(folder: Path, user: int) -> None:
    """As the command does, beside a running bot."""
    url = SecretStr(f"sqlite:///{folder}/frost.db")
    with journal(Settings(llm_base_url="http://127.0.0.1:9/v1", llm_model="none", store_url=url)) as database:
        assert forget_user(database, user)["turns"] == 1


@asynccontextmanager
async def house(folder: Path, *, room: float = 1e9) -> AsyncIterator[House]:
    async with opened(f"sqlite:///{folder}/frost.db") as at:
        assert await at.store.recover() is not None  # as at the start of every process
        yield House(at, History(store=at.store, room=lambda: room))


async def test_a_turn_that_ends_after_it_is_told_by_the_next_though_it_is_not_written_yet(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        first = await at.take("t1")
        going = await at.begin("t2")
        assert await at.history.reread()
        second = at.end(going)
        assert at.stored() == (1, 0)
        assert at.told == ()
        await at.history.load(GROUP)
        assert at.told == first + second


async def test_each_of_several_turns_is_told_once_and_in_order_whenever_it_is_read_anew(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        rounds: tuple[Message, ...] = ()
        for number in range(6):
            going = await at.begin(f"t{number}")
            assert at.told == rounds
            if number % 3:
                assert await at.history.reread()
            rounds += at.end(going)
            if number % 2:
                assert await at.history.reread()
        for later in ("later", "last"):
            rounds += await at.take(later)
            assert at.told == rounds


async def test_what_is_overheard_before_and_after_it_is_read_once_and_in_order(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        await at.take("t1")
        at.hear("before", "1")
        assert await at.history.reread()
        at.hear("after", "2")
        assert at.stored() == (1, 1)
        await at.history.load(GROUP)
        at.hear("later", "3")
        assert at.overheard() == ["1", "2", "3"]


async def test_what_a_turn_has_read_that_goes_on_is_not_overheard_again(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        for number in range(MAX_OVERHEARD):
            at.hear("chatter", str(number))
        going = await at.begin("t1")
        assert await at.history.reread()
        at.hear("after", "after")
        at.end(going)
        await at.history.load(GROUP)
        assert at.overheard() == ["after"]


async def test_a_turn_that_was_forgotten_while_it_went_on_is_not_told(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        going = await at.begin("t1")
        forget(tmp_path, USER)
        assert await at.history.reread()
        at.end(going)
        await at.history.load(GROUP)
        assert at.told == ()


async def test_the_window_is_told_the_same_before_and_after(tmp_path: Path) -> None:
    """Shortened results, a summary, and rounds that left, though nothing of it was written when it was let go of."""
    async with house(tmp_path, room=ROOM) as at:
        for number in range(1, 16):
            call = AssistantMessage("", (ToolCall("c", "look", "{}"),))
            long = ToolMessage("c", "look", "结果" * LONG)
            await at.take(f"t{number}", call, long, AssistantMessage("说" * 300))
            if fold := at.history.fold(GROUP):
                assert at.history.folded(GROUP, fold, f"what was said until {number}")
        before, summary = at.told, at.history.summary(GROUP)
        assert summary
        assert {len(message.content) > LONG for message in before if isinstance(message, ToolMessage)} == {True, False}
        assert await at.history.reread()
        assert (at.told, at.history.summary(GROUP)) == ((), "")
        await at.history.load(GROUP)
        assert (at.told, at.history.summary(GROUP)) == (before, summary)


async def test_while_the_journal_cannot_be_written_nothing_is_let_go_of(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        first = await at.take("t1")
        going = await at.begin("t2")
        with locked(at.at.database):
            second = at.end(going)
            assert not await at.history.reread()
            assert at.told == first + second
        await at.at.wait_told(2)
        assert await at.history.reread()
        await at.history.load(GROUP)
        assert at.told == first + second


async def test_a_turn_that_ends_while_the_journal_cannot_be_written_is_told_once_that_is_over(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        rounds = await at.take("t1")
        going = await at.begin("t2")
        assert await at.history.reread()
        with locked(at.at.database):
            rounds += at.end(going)
            await at.history.load(GROUP)
            assert at.told == rounds[:2]
            going = opening("t3")
            at.at.store.put(going)
            rounds += at.end(going)
        await at.at.wait_told(2)
        await at.history.load(GROUP)
        assert at.told == rounds
        rounds += await at.take("t4")
        assert at.told == rounds


async def test_what_was_said_before_the_journal_could_be_read_is_told_once(tmp_path: Path) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    async with house(data) as at:
        first = await at.take("t1")
    data.rename(away)
    data.write_text("a file where the folder should be")
    async with opened(f"sqlite:///{data}/frost.db") as journal:
        at = House(journal, History(store=journal.store))
        going = opening("t2")
        await at.history.load(GROUP)
        journal.store.put(going)
        second = at.end(going)
        assert at.told == second
        data.unlink()
        away.rename(data)
        await journal.wait_told(2)
        await at.history.load(GROUP)
        assert at.told == first + second
