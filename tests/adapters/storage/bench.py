"""What the journal costs, in microseconds; not part of the suite.

    taskset -c 0 python -m tests.adapters.storage.bench [messages in the full database, 1000000]

Every figure is measured in two databases in turns, an empty one and a full one, so that a busy machine is fair to both.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from sqlalchemy import text

from adapters.storage.migrations import migrate
from adapters.storage.store import SqlStore, open_store
from bot.core.conversation import Conversation
from bot.core.journal import Entry, MessageObserved, SendChanged, SendState, TurnOpened
from frostagent.clock import SystemClock
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from frostagent.types.runs import StepFinished
from tests.adapters.storage.entries import began, closing, ended, heard, sending
from tests.fakes import BOT, said

WORDS = "你好 " * 40
TURNS, ROWS = 2000, 20_000

FILL = """
    INSERT INTO messages (conversation, message_id, self_id, sender, nickname, segments, time, taken, overheard)
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :count)
    SELECT '10001:group:' || (n % 1000), CAST(n AS TEXT), 10001, 777, 'somebody', :segments,
        :now - :count + n, :now - :count + n, n % 50 > 0 FROM numbers"""


def opening(number: int, where: Conversation) -> TurnOpened:
    question = said(WORDS, where=where)
    user = UserMessage(f"[提问]\n小明(777): {WORDS}")
    return TurnOpened(turn_id=f"{where}/{number}", question=question, user=user, at=time.time())


def show(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")


async def time_of(work: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await work
    return (time.perf_counter() - begun) * 1e6


def compare(name: str, empty: list[float], full: list[float]) -> None:
    ninety_nine = [quantiles(times, n=100)[98] for times in (empty, full)]
    show(
        f"{name:40} p50 {median(empty):7.1f} {median(full):7.1f} us   x{median(full) / median(empty):.2f}",
        f"  p99 {ninety_nine[0]:8.1f} {ninety_nine[1]:8.1f} us",
    )


async def batched(store: SqlStore, entries: list[Entry]) -> float:
    """The processor's time for one entry, in batches of 256."""
    begun = time.process_time()
    for place in range(0, len(entries), 256):
        store.put(*entries[place : place + 256])
        await store.commit()
    return (time.process_time() - begun) / len(entries) * 1e6


async def measure(stores: tuple[SqlStore, SqlStore]) -> None:
    where = Conversation(BOT, "group", 1_000_001)
    opened = [opening(number, where) for number in range(TURNS)]
    send = [sending(f"{where}/s{number}", opened[number].turn_id, WORDS, where) for number in range(TURNS)]

    async def wake(store: SqlStore, number: int) -> None:
        store.put(MessageObserved(opened[number].question, overheard=False))
        await store.commit(opened[number])

    async def in_turns(name: str, times: int, work: Callable[[SqlStore, int], Awaitable[object]]) -> None:
        took: list[list[float]] = [[], []]
        for number in range(times):
            for store, times_of_store in zip(stores, took, strict=True):
                times_of_store.append(await time_of(work(store, number)))
        compare(name, *took)

    await in_turns("a wake: observed + opened, committed", TURNS, wake)
    await in_turns("a send, committed", TURNS, lambda store, number: store.commit(send[number]))
    for store in stores:
        store.put(*[closing(turn, keep=place < 40) for place, turn in enumerate(opened)])
    await in_turns("remember 40 rounds", 200, lambda store, _: store.remember(where))
    await in_turns("find", 200, lambda store, number: store.find(where, opened[number].question.message_id))
    await in_turns("recover", 5, lambda store, _: store.recover())
    await amortised(stores, where, [turn.turn_id for turn in opened], [queued.send_id for queued in send])


async def amortised(stores: tuple[SqlStore, SqlStore], where: Conversation, turns: list[str], sends: list[str]) -> None:
    answer = AssistantMessage(WORDS, (ToolCall("c", "get_weather", "{}"),))
    completion = Completion(answer, FinishReason.STOP, Usage(1, 2), model="m")
    result = ToolMessage("c", "n", WORDS)

    def step(number: int) -> StepFinished:
        return StepFinished(run_id=turns[number % TURNS], step=1, completion=completion, seconds=1.0)

    def changed(number: int) -> SendChanged:
        return SendChanged(send_id=sends[number % TURNS], state=SendState.CONFIRMED, at=1.0, message_id="9")

    kinds: dict[str, Callable[[int], Entry]] = {
        "MessageObserved": lambda _: heard(WORDS, where=where),
        "StepFinished (two rows)": step,
        "ToolStarted": lambda n: began(turns[n % TURNS], n, "c", "n"),
        "ToolFinished": lambda n: ended(turns[n % TURNS], result, n),
        "SendChanged": changed,
    }
    for name, make in kinds.items():
        entries = [make(number) for number in range(ROWS)]
        empty, full = [await batched(store, entries) for store in stores]
        show(f"{name:40} cpu {empty:7.1f} {full:7.1f} us each, in batches")


async def main(count: int, folder: Path) -> None:
    def store(name: str) -> AbstractAsyncContextManager[SqlStore]:
        url = f"sqlite:///{folder}/{name}.db"
        return open_store(
            url, keep_days=0, keep_messages=0, clock=SystemClock(), trouble=lambda line: show(*line), migrate=migrate
        )

    async with store("empty") as empty, store("full") as full:
        values = {"count": count, "now": time.time() - 1000, "segments": f'[{{"text":"{WORDS}","type":"text"}}]'}
        full._batches.run(lambda connection: connection.execute(text(FILL), values).rowcount)
        show(f"{'':40}       empty    with {count} messages")
        await measure((empty, full))


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, Path(made)))
