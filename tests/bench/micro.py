"""Single parts, measured in this process: a tool call, a chunk of a stream, a row of the journal.

Each is measured several times and the least is told: whatever else the machine did can only have added to it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from adapters.storage.migrations import migrate
from adapters.storage.store import SqlStore, open_store
from bot.core.conversation import Conversation
from bot.core.journal import MessageObserved
from bot.core.language import Bilingual
from bot.core.memories import MemoryKept, StoredFact
from bot.policy.memory_rules import fact_terms, terms
from frostagent.clock import SystemClock
from frostagent.engine.call_executor import Batch, CallExecutor
from frostagent.engine.call_state import CallTotals
from frostagent.engine.toolset import Toolset
from frostagent.models.openai.stream import AnswerReader
from frostagent.types.messages import ToolCall
from frostagent.types.tools import tool
from tests.adapters.storage.conftest import POSTGRES
from tests.adapters.storage.schemas import Schemas
from tests.bench.model import PIECE, stream
from tests.fakes import said, tool_context
from tools.get_game_version.games import GameTable
from tools.get_game_version.rows import known_games
from tools.get_weather.gazetteer import known_places
from tools.get_weather.places import read_query

TRIES = 5
AT_ONCE, FAR = 250, 4e9  # facts of one commit; expires long after
LIKED = ("火锅", "烧烤", "拉面", "寿司", "花生", "香菜", "咖啡", "奶茶")
MICRO = 1e6  # microseconds in a second


@dataclass(frozen=True, slots=True)
class Cost:
    """What one `unit` of a part costs in microseconds, and what it may cost at most (None: nothing was agreed)."""

    part: str
    micros: float
    unit: str
    target: float | None = None


@tool
async def nothing(text: str, times: int = 1) -> str:
    """Do nothing.

    Args:
        text: Anything.
        times: How often.
    """
    return text


async def least(once: Callable[[], Awaitable[None]], *, number: int) -> float:
    """Microseconds for one of `number`, in the best of several tries."""
    taken = []
    for _ in range(TRIES):
        began = time.perf_counter()
        await once()
        taken.append(time.perf_counter() - began)
    return min(taken) / number * MICRO


async def tool_pipeline(number: int) -> Cost:
    """A call from its raw arguments to its result, around a tool that does nothing."""
    executor = CallExecutor(Toolset([nothing], clock=SystemClock()))
    context = tool_context()
    calls = [ToolCall(f"c{index}", "nothing", '{"text": "words", "times": 2}') for index in range(number)]

    async def once() -> None:
        tally = CallTotals()
        for call in calls:
            batch = Batch([call])
            await executor.run(batch, [context], tally)
            assert batch.results() is not None

    return Cost("tool pipeline", await least(once, number=number), "call", 60)


async def place_lookup(number: int) -> Cost:
    """A path of three names in the table of places, with the reading of the question; the table is loaded before."""
    places = known_places()

    async def once() -> None:
        for _ in range(number):
            assert places.find(read_query("江苏南京鼓楼")) is not None

    return Cost("place look-up", await least(once, number=number), "place", 50)


async def game_lookup(number: int) -> Cost:
    """A misspelt name in the table of games, which is the dearest: every name is compared."""
    games = GameTable(known_games())

    async def once() -> None:
        for _ in range(number):
            games.find("genshin inpact")

    return Cost("game look-up", await least(once, number=number), "game", 2000)


async def stream_reader(number: int) -> Cost:
    """An event of a streamed answer, each of which comes as a chunk of its own."""
    _, _, body = stream("x" * PIECE * number).partition(b"\r\n\r\n")
    chunks = [event + b"\n\n" for event in body.split(b"\n\n") if event]

    async def once() -> None:
        reader = AnswerReader()
        for chunk in chunks:
            reader.feed(chunk)
        assert len(reader.finish().text) == PIECE * number

    return Cost("stream reader", await least(once, number=len(chunks)), "chunk", 15)


@asynccontextmanager
async def empty_store(url: str = "") -> AsyncIterator[SqlStore]:
    """A journal with nothing in it: an SQLite file of its own, where no server is named."""
    with TemporaryDirectory(prefix="bench-") as folder:
        async with open_store(
            url or f"sqlite+aiosqlite:///{Path(folder) / 'journal.db'}",
            keep_days=0,
            keep_messages=0,
            clock=SystemClock(),
            trouble=fail,
            migrate=migrate,
        ) as store:
            await store.recover()
            yield store


async def journal(number: int) -> list[Cost]:
    """A row among many that nobody waits for, and the wait for one that somebody does."""
    async with empty_store() as store:
        return [await _rows(store, number), await _commits(store, max(10, number // 20))]


async def recall(number: int, url: str = "") -> Cost:
    """The search for what a question is about, among 50 facts for each question, in conversations with 20 each."""
    facts, scopes = number * 50, number * 5 // 2
    places = [Conversation(10001, "group", scope + 1) for scope in range(scopes)]
    async with empty_store(url) as store:
        for place in range(facts):
            text = f"喜欢第{place % 97}家店的{LIKED[place % len(LIKED)]}，周末常去"
            fact = StoredFact(
                memory_id=f"m{place}",
                scope=places[place % scopes],
                subject=place % 50,
                author=place % 50,
                text=text,
                expires=FAR,
            )
            store.put(MemoryKept(fact, fact_terms(fact)))
            if place % AT_ONCE == AT_ONCE - 1 or place == facts - 1:
                assert await store.commit()
        taken = []
        for place in range(number):
            asked = terms(f"他周末喜欢去哪家店吃{LIKED[place % len(LIKED)]}？")
            began = time.perf_counter()
            found = await store.memories.recall(places[place * 7 % scopes], place % 50, asked)
            taken.append(time.perf_counter() - began)
            assert found
    return Cost(f"recall{', PostgreSQL' if url else ''}", median(taken) * MICRO, "question", 5000 if url else 2000)


def fail(trouble: Bilingual) -> None:
    """A journal in trouble takes rows for nothing: what they cost then would be no figure."""
    raise RuntimeError(trouble.en)


async def _rows(store: SqlStore, number: int) -> Cost:
    async def once() -> None:
        store.put(*(MessageObserved(said("words"), overheard=True) for _ in range(number)))
        assert await store.commit()

    return Cost("journal, in a batch", await least(once, number=number), "row")


async def _commits(store: SqlStore, number: int) -> Cost:
    taken = []
    for _ in range(number):
        began = time.perf_counter()
        assert await store.commit(MessageObserved(said("words"), overheard=True))
        taken.append(time.perf_counter() - began)
    return Cost("journal, waited for", median(taken) * MICRO, "commit")


async def measure_parts(number: int = 2000) -> list[Cost]:
    """What every part costs, each measured over so many units."""
    parts = [
        await tool_pipeline(number),
        await place_lookup(number),
        await game_lookup(number // 10),
        await stream_reader(number),
    ]
    parts += [*await journal(number), await recall(number // 10)]
    if POSTGRES:
        schemas = Schemas(POSTGRES)
        with schemas.empty() as url:
            parts.append(await recall(number // 10, url))
        schemas.close()
    return parts


def describe(costs: list[Cost]) -> str:
    """A line for each part."""

    def line(cost: Cost) -> str:
        target = "" if cost.target is None else f"  (target {cost.target:g})"
        return f"  {cost.part:<22}{cost.micros:>10.1f} us per {cost.unit}{target}\n"

    return "parts\n" + "".join(map(line, costs))
