"""What limits add to a message: bots without any, with rates, and with rates and limits of a day, side by side.

All of them run the whole time and are asked in turns, a few dozen messages each, so that a pair of figures is of the
same second; of each slice the processor is read that the bot's threads used. The first is there twice, to see what the
machine alone makes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from tests.bench.driver import Driver, driving
from tests.bench.report import lines, word
from tests.bench.subject import BOT, Running, Subject, running, serving_model, sharing_cores

MOST = 1.05  # times what a message costs without limits
GROUPS, EACH = 10, 6  # that ask at once, messages of each in a slice
WARM_UP = 120  # messages
CALM = 0.15  # seconds after a slice: what is written later belongs to it, too
PRICES = '[[model]]\nname = "bench"\ninput = 1\noutput = 2\n'
RATES = {"BOT_USER_RATE": "999999/1", "BOT_GROUP_RATE": "999999/1"}
HOLDERS = ("USER", "GROUP", "ALL")
MONEY = {f"BOT_DAY_COST_{whose}": "999999" for whose in HOLDERS}
TOKENS = {f"BOT_DAY_TOKENS_{whose}": "999999999" for whose in HOLDERS}
DAYS = MONEY | TOKENS


@dataclass(frozen=True, slots=True)
class Added:
    """What a message takes in ms of processor, slice by slice, and without limits in the same slices."""

    name: str
    used: tuple[float, ...]
    base: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Slice by slice, how many times as much."""
        return tuple(one / other for one, other in zip(self.used, self.base, strict=True))

    def row(self) -> list[str]:
        """As a line of the report."""
        ratio, ratios = median(self.ratios), self.ratios
        low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else (ratio, ratio, ratio)
        return [self.name, f"{median(self.used):.3f}", f"{ratio:.3f}x ({low:.2f}-{high:.2f})", word(ratio <= MOST)]


def subjects(root: Path, prices: Path) -> list[Subject]:
    """The bots that are compared; limits of money need a price."""
    common = {"LLM_PRICES": str(prices)}
    settings = {"no limits": {}, "no limits again": {}, "rates": RATES, "rates and days": RATES | DAYS}
    return [Subject(name, BOT.words, root, ({**common, **one},)) for name, one in settings.items()]


async def measure_limits(slices: int, bot_cpu: int | None = None, *, base: Path | None = None) -> list[Added]:
    """So many slices of each; with a `base`, the bot of that tree without limits is one more, and the base of all."""
    with sharing_cores(bot_cpu) as cores, TemporaryDirectory(prefix="bench-") as folder:
        prices = Path(folder) / "prices.toml"
        prices.write_text(PRICES, "utf-8")
        compared = subjects(BOT.root, prices)
        if base is not None:
            compared.insert(0, Subject("before", BOT.words, base, ({"LLM_PRICES": str(prices)},)))
        async with serving_model() as model, AsyncExitStack() as stack:
            asked = [await stack.enter_async_context(_warm(subject, model=model, cores=cores)) for subject in compared]
            used: list[list[float]] = [[] for _ in asked]
            for number in range(slices):
                order = range(len(asked)) if number % 2 else reversed(range(len(asked)))
                for place in order:
                    used[place].append(await _slice(*asked[place]))
    first = tuple(used[0])
    return [Added(subject.name, tuple(one), first) for subject, one in zip(compared, used, strict=True)]


@asynccontextmanager
async def _warm(subject: Subject, *, model: str, cores: Sequence[int]) -> AsyncIterator[tuple[Running, Driver]]:
    async with running(subject, model=model, cores=cores) as bot, driving(bot.url) as driver:
        for number in range(WARM_UP):
            await driver.ask(number % GROUPS)
        yield bot, driver


async def _slice(bot: Running, driver: Driver) -> float:
    """Milliseconds of processor for a message."""

    async def talk(group: int) -> None:
        for _ in range(EACH):
            await driver.ask(group)

    used = bot.cpu()
    async with asyncio.TaskGroup() as talks:
        for group in range(GROUPS):
            talks.create_task(talk(group))
    await asyncio.sleep(CALM)
    return (bot.cpu() - used) / (GROUPS * EACH) * 1000


def told(added: Sequence[Added]) -> str:
    """A line for each."""
    first = added[0].name
    head = [f"processor, {len(added[0].used)} slices", "ms/msg", f"/ {first}", f"<= {MOST}x"]
    return lines([head, *(one.row() for one in added)])


def as_json(added: Sequence[Added]) -> dict[str, dict[str, object]]:
    """Everything that was measured, and the ratios."""
    return {one.name: {"used": one.used, "ratio": median(one.ratios)} for one in added}
