"""Alarms of a periodic check: a full disk, a model that became more expensive, a stuck lane; and
frequent alarms collected into one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from bot.commands.digest import Stands
from bot.core.calendar_days import midnight
from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, text_in
from bot.core.query_results import JournalQueries, UsageSum
from frostagent.types.ports import Clock

LOOK = 600.0  # seconds between two checks: longer than any turn lasts
LITTLE = 2**30  # bytes
DEARER = 3.0
ENOUGH = 20  # requests a day that are enough to know its price

DISK = Phrase(
    "磁盘只剩 {free:.0f} MB，写满以后什么都记不住，也就不再回答。",
    "The disk has {free:.0f} MB left. Once it is full, nothing is stored and no question is"
    " answered.",
)
PRICE = Phrase(
    "{model} 今天{of}的花费是昨天的 {times:.1f} 倍，请看看价格、缓存和问题的长短。",
    "{model} costs {times:.1f} times as much {of} today as yesterday: check its price, its"
    " cache and the length of the questions.",
)
STUCK = Phrase(
    "{where} 有一轮对话十多分钟还没有结束，后面的都在等它。在那里发 /stop all 试试，不行就重启。",
    "A turn in {where} has been running for more than ten minutes, and all later ones wait."
    " Try /stop all there, then a restart.",
)
A_TOKEN, A_REQUEST = Phrase("每个 token ", "per token"), Phrase("每次请求", "per request")
CATALOGUE.register(__name__, globals())


class AlarmMonitor:
    """Sends each alarm once; that of the disk again after space was free, that of a model again on
    the next day.

    `busy` gives the turns in progress with their conversations; each of `gather` gives a line about
    what came since its last call. `tell` takes the kind of an alarm and its line. Without `books`,
    prices are not checked. In a cluster of several machines each names its `host`.
    """

    def __init__(
        self,
        *,
        stands: Stands,
        busy: Callable[[], Mapping[object, Conversation]],
        gather: Sequence[Callable[[], Bilingual | None]],
        books: JournalQueries | None,
        tell: Callable[[str, str], None],
        clock: Clock,
        language: Language = Language.CHINESE,
        host: str = "",
    ) -> None:
        self._host = host
        self._language = language
        self._stands = stands
        self._busy = busy
        self._gather = gather
        self._books = books
        self._tell = tell
        self._clock = clock
        self._had_room = True
        self._seen: dict[
            object, int
        ] = {}  # turns in progress, and the number of checks that saw them
        self._dear: set[tuple[float, str]] = set()  # day and model of the alarms sent

    async def run(self) -> None:
        """Check periodically, until cancelled."""
        while True:
            await self._clock.sleep(LOOK)
            self._look_at_lanes()
            self._tell_gathered()
            await self._look_at_disk()
            await self._look_at_prices()

    def _look_at_lanes(self) -> None:
        busy = self._busy()
        self._seen = {one: self._seen.get(one, 0) + 1 for one in busy}
        for one, looks in self._seen.items():
            if looks == 2:
                self._tell(f"stuck in {busy[one]}", STUCK.format(self._language, where=busy[one]))

    def _tell_gathered(self) -> None:
        for line in filter(None, [each() for each in self._gather]):
            # A kind of its own: the next line is about other turns, perhaps of another bot.
            self._tell(text_in(Language.ENGLISH, line), text_in(self._language, line))

    async def _look_at_disk(self) -> None:
        free = (await self._stands()).free
        if free is None:
            return
        if free < LITTLE and self._had_room:
            line = DISK.format(self._language, free=free / 2**20)
            if self._host:
                self._tell(f"disk of {self._host}", f"{self._host}: {line}")
            else:
                self._tell("disk", line)
        self._had_room = free >= LITTLE

    async def _look_at_prices(self) -> None:
        if self._books is None:
            return
        now = self._clock.now()
        today, yesterday = midnight(now), midnight(now, later=-1)
        day = await self._books.day(since=today, until=now + 1)
        before = await self._books.day(since=yesterday, until=today)
        if day is None or before is None:
            return
        was = dict(before.models)
        self._dear = {told for told in self._dear if told[0] == today}
        for model, used in day.models:
            times, of = max(_dearer(used, was.get(model, UsageSum())), key=lambda found: found[0])
            if times >= DEARER and (today, model) not in self._dear:
                self._dear.add((today, model))
                line = PRICE.format(self._language, model=model, of=of, times=times)
                self._tell(f"price of {model}", line)


def _dearer(used: UsageSum, before: UsageSum) -> Iterator[tuple[float, Phrase]]:
    """The factor by which each unit became more expensive; 0 if there are too few requests."""
    is_known = all(one.requests >= ENOUGH and not one.unpriced for one in (used, before))
    for of, now, then in (
        (A_REQUEST, used.requests, before.requests),
        (A_TOKEN, used.prompt + used.completion, before.prompt + before.completion),
    ):
        is_told = is_known and now and then and before.cost
        yield (used.cost / now) / (before.cost / then) if is_told else 0.0, of
