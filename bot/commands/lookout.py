"""Alarms that nobody's message sets off: a disk that fills up, a model that became dearer."""

from __future__ import annotations

from collections.abc import Callable

from bot.commands.digest import Stands
from bot.domain.books import Books, UsageSum
from bot.domain.ports import Clock
from bot.policy.days import midnight

LOOK = 600.0  # seconds between two looks
LITTLE = 2**30  # bytes
DEARER = 3.0
ENOUGH = 20  # requests of a day, to tell from them what a token costs

DISK = "磁盘只剩 {free:.0f} MB，写满以后什么都记不住，也就不再回答。"
PRICE = "{model} 今天每个 token 的花费是昨天的 {times:.1f} 倍，请看看价格或缓存。"


class Lookout:
    """Tells each once: of the disk again after there was room, of a model again the next day.
    `tell` takes the kind of an alarm, and the line.
    """

    def __init__(
        self, *, stands: Stands, books: Books, tell: Callable[[str, str], None], clock: Clock
    ) -> None:
        self._stands = stands
        self._books = books
        self._tell = tell
        self._clock = clock
        self._had_room = True
        self._dear: set[tuple[float, str]] = set()  # the day, and the model that was told

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            await self._clock.sleep(LOOK)
            await self._look_at_disk()
            await self._look_at_prices()

    async def _look_at_disk(self) -> None:
        free = (await self._stands()).free
        if free is None:
            return
        if free < LITTLE and self._had_room:
            self._tell("disk", DISK.format(free=free / 2**20))
        self._had_room = free >= LITTLE

    async def _look_at_prices(self) -> None:
        now = self._clock.now()
        today, yesterday = midnight(now), midnight(now, later=-1)
        day = await self._books.day(since=today, until=now + 1)
        before = await self._books.day(since=yesterday, until=today)
        if day is None or before is None:
            return
        was = dict(before.models)
        self._dear = {told for told in self._dear if told[0] == today}
        for model, used in day.models:
            times = _dearer(used, was.get(model, UsageSum()))
            if times >= DEARER and (today, model) not in self._dear:
                self._dear.add((today, model))
                self._tell(f"price of {model}", PRICE.format(model=model, times=times))


def _dearer(used: UsageSum, before: UsageSum) -> float:
    """How many times as much a token costs; 0 where too few requests tell it."""
    now, then = _cost_of_a_token(used), _cost_of_a_token(before)
    return now / then if then else 0.0


def _cost_of_a_token(used: UsageSum) -> float:
    tokens = used.prompt + used.completion
    is_known = used.requests >= ENOUGH and not used.unpriced and tokens
    return used.cost / tokens if is_known else 0.0
