"""The operators' web pages of a process: /healthz, /readyz, /metrics, and offered files."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from adapters.metrics.metrics import Metrics, Today, Vitals, together
from adapters.storage.files import free_at
from adapters.web.file_offers import FileOffers
from adapters.web.readiness import Attendance
from bot.budget.limits import ALL, NO_CAP, limit_level
from bot.budget.spending import Spending
from bot.build import App, data_folder
from bot.policy.wake import Silence
from config.settings import Settings
from frostagent.types.ports import Clock

if TYPE_CHECKING:
    from adapters.metrics.exposition import Collectors

REASONS: Final[Mapping[str, str]] = {
    Silence.USER: "user_rate",
    Silence.GROUP: "group_rate",
    Silence.DAY: "day",
    Silence.QUIET: "quiet",
    Silence.SILENCED: "silenced",
    Silence.HELD: "new_group",
    Silence.MUTED: "muted",
    Silence.CLOSED: "closed",
    Silence.LOOP: "loop",
    Silence.WORDS: "words",
    Silence.STALE: "stale",
    Silence.LATE: "late",
    Silence.FULL: "full",
}
"""The label of each reason why a message is not answered."""

COUNTED_WITHIN: Final = 1.0  # seconds until the journal has counted the jobs

STANDING_BY: Final = "standing by: other workers have all accounts"


def build_metrics(tools: Collection[str], clock: Clock) -> Metrics:
    return Metrics(tools=tools, reasons=REASONS, clock=clock)


def build_file_offers(settings: Settings) -> FileOffers | None:
    """Where a process offers files too large for a frame; None if it has no address or port."""
    return FileOffers(settings.media_url) if settings.media_url and settings.web_port else None


@asynccontextmanager
async def open_web(
    settings: Settings,
    metrics: Metrics,
    bots: Callable[[], Sequence[App]],
    *,
    cut_off: Callable[[], str] = str,
    collectors: Collectors = tuple,
    offers: FileOffers | None = None,
) -> AsyncIterator[None]:
    """Serve the pages of these bots and the files on `offers` while the block runs, unless WEB_PORT
    is 0. `cut_off` returns why the process has no bot, or an empty string. `collectors` add
    metrics.
    """

    async def render_metrics() -> bytes:
        free = await free_at(data_folder(settings))
        from adapters.metrics.exposition import DiskCollector, JobsCollector, render

        jobs = await count_jobs(bots())
        vitals = together([read_vitals(one) for one in bots()])
        return render(metrics, vitals, DiskCollector(free), JobsCollector(jobs), *collectors())

    match settings.web_port:
        case 0:
            yield
        case port:
            from adapters.web.server import WebServer

            # A bot runs even if the default port is taken, but not without a port that the operator
            # chose.
            asked_for = "web_port" in settings.model_fields_set or offers is not None
            ready = build_attendance(bots, cut_off)
            async with WebServer(
                host=settings.web_host,
                port=port,
                ready=ready,
                metrics=render_metrics,
                required=asked_for,
                offers=offers,
            ):
                yield


def build_attendance(
    bots: Callable[[], Sequence[App]], cut_off: Callable[[], str] = str
) -> Attendance:
    """Whether any account of these bots is connected and online."""

    def stopping() -> bool:  # all of them: one alone may hand its accounts to another worker
        return bool(ends := [one.lanes.finishing for one in bots()]) and all(ends)

    return Attendance(
        lambda: [account for one in bots() for account in one.peers.accounts()],
        stopping=stopping,
        refused=lambda: next(filter(None, (one.peers.refused for one in bots())), ""),
        cut_off=cut_off,
        ours=lambda account: any(one.journal.scope.has(account) for one in bots()),
    )


def read_vitals(app: App) -> Vitals:
    """A bot's figures, read when its metrics are requested."""
    online = [account.online is not False for account in app.peers.accounts()]
    lanes, screen = app.lanes, app.outbox.screen
    return Vitals(
        lanes=lanes.active,
        queued=max(0, lanes.waiting - lanes.active),
        online=sum(online),
        offline=len(online) - sum(online),
        duplicates=app.deduplicator.duplicates,
        overflow=app.rate_limiter.overflow,
        reconnects=app.peers.reconnects,
        withheld=screen.withheld if screen else 0,
        waiting=app.decisions.count(),
        ended=app.decisions.calls.ended,
        commands=app.commands.taken,
        today=read_today(app.spending),
        servers=app.servers.connections(),
    )


async def count_jobs(bots: Sequence[App]) -> Mapping[str, int] | None:
    """The jobs of the connected accounts by state; None if a journal does not say so in time."""
    counts = Counter[str]()
    try:
        async with asyncio.timeout(COUNTED_WITHIN):
            for one in bots:
                accounts = {account.self_id for account in one.peers.accounts()}
                found = await one.journal.jobs.counted([*filter(one.journal.scope.has, accounts)])
                if found is None:
                    return None
                counts.update(found)
    except TimeoutError:
        return None
    return counts


def read_today(spending: Spending) -> Today | None:
    """The usage of all requests today; None until it is known."""
    if not spending.is_known:
        return None
    taken, cap = spending.taken(ALL), spending.cap(ALL)
    used = cap.used(taken)
    return Today(
        cost=taken.known_cost,
        tokens=taken.tokens,
        reserved=spending.reserved.tokens,
        rung=limit_level(used, is_owner=False),
        used=used if cap != NO_CAP else None,
    )
