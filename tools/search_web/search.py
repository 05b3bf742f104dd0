"""`WebSearch`: asks the operator's search service and no other.

Invariants: an equal query within ten minutes costs nothing; after a refusal the service is not
asked for a while; a question makes at most six searches; each search that may be billed is paid for
before it is made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from cachetools import LRUCache, TTLCache

from bot.core.day_tally import DayTally, Tally
from bot.core.language import CATALOGUE, Bilingual, Phrase, plain_words, text_of
from bot.core.ports import Web, WebResponse
from frostagent.types.errors import ToolDenied, ToolFailed
from frostagent.types.ports import Clock
from tools.search_web.services import Found, Refusal, SearchQuery, SearchService, service_of

logger = logging.getLogger(__name__)

FRESH: Final = 600.0  # seconds
KEPT: Final = 256  # queries
MOST_SEARCHES: Final = 6  # per question
RUNS: Final = 512  # runs whose searches are counted

TOO_OFTEN: Final = (
    f"this question has made its {MOST_SEARCHES} searches: answer with what was found"
)
UNREADABLE: Final = Phrase(
    "{name} 的答复看不懂（{why}）", "{name} sent an answer that cannot be read ({why})"
)
ANSWERED: Final = Phrase("{name} 答复了 {status}{words}", "{name} answered {status}{words}")
UNSET: Final = Phrase(
    "需要 SEARCH_URL 或 SEARCH_KEY，都没有设置",
    "needs SEARCH_URL or SEARCH_KEY, and neither is set",
)
TURNED_OFF: Final = Phrase("被 SEARCH_KIND=none 关掉了", "is turned off by SEARCH_KIND=none")
UNKNOWN_SERVICE: Final = Phrase(
    "看不出 SEARCH_KEY 是哪家的，请设置 SEARCH_KIND",
    "needs SEARCH_KIND: SEARCH_KEY does not show whose it is",
)
UNKNOWN_ADDRESS: Final = Phrase("需要 SEARCH_URL", "needs SEARCH_URL")
UNKNOWN_KEY: Final = Phrase("需要 {name} 的 SEARCH_KEY", "needs SEARCH_KEY for {name}")
CATALOGUE.register(__name__, globals())

Pay: TypeAlias = Callable[
    [Callable[[], Awaitable[WebResponse]], Callable[[WebResponse], bool]], Awaitable[WebResponse]
]
"""Makes a billed call and counts it, unless the second argument says that its answer is not billed.
"""


@dataclass(frozen=True, slots=True)
class SearchAccount:
    """The operator's account at a search service; unset fields are empty."""

    kind: str = ""
    url: str = ""
    key: str = field(default="", repr=False)

    @property
    def service(self) -> SearchService | None:
        return service_of(kind=self.kind, url=self.url, key=self.key)

    @property
    def is_set(self) -> bool:
        """Whether the operator names a service: by address or key, or one that needs neither."""
        return bool(self.url or self.key or ((row := self.service) and row.is_open))

    @property
    def lacks(self) -> Bilingual | None:
        """Why the account cannot search; None if it can."""
        if self.kind == "none":
            return TURNED_OFF.fill()
        if not self.is_set:
            return UNSET.fill()
        if (row := self.service) is None:
            return UNKNOWN_SERVICE.fill()
        if not (self.url or row.base):
            return UNKNOWN_ADDRESS.fill()
        return UNKNOWN_KEY.fill(name=row.name) if row.needs_key and not self.key else None


class SearchRefused(ToolFailed):
    """The service refused or its answer cannot be read; it is not asked for `rest` seconds."""

    def __init__(self, words: Bilingual, *, rest: float = 0.0) -> None:
        self.rest = rest
        super().__init__(words)


async def ask_service(
    account: SearchAccount, query: SearchQuery, *, web: Web, pay: Pay | None = None
) -> tuple[Found, ...]:
    """The results of the account's service. Raises ToolFailed; SearchRefused if the service refused
    or its answer cannot be read.
    """
    row = account.service
    if row is None or (lack := account.lacks) is not None:
        raise ToolFailed(f"search_web {lack if row else UNSET.en}")
    base = (account.url or row.base).rstrip("/").removesuffix(row.path)
    headers = {row.header: f"{row.scheme}{account.key}"} if account.key else {}
    asking = row.ask(query)

    async def call() -> WebResponse:
        if asking.json is None:
            sent = {"Accept": row.accept, **headers}
            return await web.get(f"{base}{row.path}", params=asking.params, headers=sent)
        return await web.post(f"{base}{row.path}", json=asking.json, headers=headers)

    def is_billed(response: WebResponse) -> bool:
        return row.refusal(response) is None

    try:
        response = await (call() if pay is None else pay(call, is_billed))
    except ToolFailed as error:
        raise ToolFailed(plain_words(error)) from error
    if (refused := row.refusal(response)) is not None:
        raise _refused(row, response, *refused)
    try:
        return row.read(response)[: query.count]
    except ValueError as error:
        words = UNREADABLE.fill(name=row.name, why=str(error)[:80])
        raise SearchRefused(words) from error


def _refused(
    row: SearchService, response: WebResponse, meaning: Refusal | None, words: str
) -> SearchRefused:
    said = f": {words}" if words else ""
    if meaning is None:
        known = ANSWERED.fill(name=row.name, status=response.status, words=said)
        return SearchRefused(known, rest=0.0)
    told = meaning.meaning.fill(name=row.name)
    return SearchRefused(Bilingual(f"{told.en}{said}", f"{told.zh}{said}"), rest=meaning.rest)


class WebSearch:
    """Searches with the operator's `account`. `pay` charges for searches; None if they are free."""

    def __init__(
        self, account: SearchAccount, *, web: Web, clock: Clock, pay: Pay | None = None
    ) -> None:
        self._account = account
        self._web = web
        self._clock = clock
        self._pay = pay
        self._kept: TTLCache[SearchQuery, tuple[Found, ...]] = TTLCache(
            KEPT, FRESH, timer=clock.monotonic
        )
        self._asking: WeakValueDictionary[SearchQuery, asyncio.Lock] = WeakValueDictionary()
        self._made: LRUCache[str, int] = LRUCache(RUNS)
        self._refused: SearchRefused | None = None
        self._rests_until = 0.0
        self._tally = DayTally(clock)

    @property
    def today(self) -> Tally:
        """The searches that the service answered today, and its latest failure."""
        return self._tally.read()

    @property
    def rests(self) -> float:
        """For how many more seconds the service is not asked, after a refusal."""
        return max(0.0, self._rests_until - self._clock.monotonic())

    async def search(self, query: SearchQuery, *, run_id: str) -> tuple[Found, ...]:
        """At most `query.count` results. Raises ToolFailed, and ToolDenied if a question searches
        too often.
        """
        lock = self._asking.setdefault(query, asyncio.Lock())
        async with lock:
            if (kept := self._kept.get(query)) is not None:
                self._tally.count(reused=True)
                return kept
            if self._refused is not None and self.rests:
                raise ToolFailed(text_of(self._refused)) from self._refused
            question = run_id.partition("/")[0]  # its subagents' runs have longer ids
            made = self._made.get(question, 0)
            if made >= MOST_SEARCHES:
                raise ToolDenied(TOO_OFTEN)
            self._made[question] = made + 1
            try:
                found = await ask_service(self._account, query, web=self._web, pay=self._pay)
            except ToolFailed as error:
                self._tally.fail(error)
                if isinstance(error, SearchRefused):
                    self._refuse(error)
                raise
            self._tally.count()
            self._kept[query] = found
            return found

    def _refuse(self, error: SearchRefused) -> None:
        """Leave the service alone for as long as its refusal says."""
        self._refused = error
        self._rests_until = self._clock.monotonic() + error.rest
        if error.rest:
            logger.warning("web search: %s", error)
