"""The operator's console, off unless CONSOLE_PORT is set; pages are loaded at the first request."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from bot.commands.why import Explanations
from bot.domain.books import UsageSum
from bot.domain.chat import Usage
from bot.domain.events import Conversation
from bot.domain.journal import Audited, PlaceSet, UsageAdded
from bot.domain.masking import Mask
from bot.domain.trying import TRIED, Ceiling, Trial, Wanted
from bot.memory.kept_settings import NOWHERE
from bot.memory.window import weigh
from bot.memory.wishes import Wish
from bot.policy.days import midnight
from bot.policy.limits import Rung
from bot.policy.tokens import estimate_text
from bot.wiring.background import background
from bot.wiring.limits_shown import limits_shown
from bot.wiring.purse import Purse
from bot.wiring.seen import SeenBot, personas_of
from bot.wiring.service import Rooms
from bot.wiring.tools_shown import call_tool, tools_of
from bot.wiring.trying import Trials, ceiling_of
from config.settings import Settings

if TYPE_CHECKING:  # only an open console needs it
    from adapters.console.logins import Logins
    from adapters.console.origins import Origins
    from adapters.console.routes import Routes
    from adapters.console.sources import Sources
    from bot.wiring.simulated import Opens
    from bot.wiring.whole import Whole

logger = logging.getLogger(__name__)

Link = Callable[[], str]
"""Makes an address that lets in once."""

LOGINS = "console"  # what they are kept under

CLOSED = (
    "there is no console, though CONSOLE_PORT is set: CONSOLE_TOKEN is not. `frostagent setup` "
    "makes one, and so does openssl rand -hex 16"
)


@asynccontextmanager
async def open_console(
    settings: Settings, seen: SeenBot, *, mask: Mask, opening: Opens
) -> AsyncIterator[Link | None]:
    """Listen while the block runs; what makes links, None where there is no console. `opening`
    opens a service beside this one.

    Where something is tried out, there is one in any case, on a port that is free.
    """
    token, port = settings.console_token.get_secret_value(), settings.console_port
    if seen.trying is not None and not port:  # nobody has to type anything: a link lets in
        token = token or secrets.token_hex(16)
    elif not port or not token:
        if port:
            logger.warning(CLOSED)
        yield None
        return

    from adapters.console.logins import Logins
    from adapters.console.server import Console
    from bot.wiring.whole import Whole

    whole = Whole(seen)

    def load(logins: Logins, _origins: Origins) -> Routes:
        from adapters.console.site import routes_of

        return routes_of(logins, sources_of(settings, seen, whole, mask, trials))

    def keep(logins: str) -> None:
        seen.rooms.on.store.put(PlaceSet(NOWHERE, LOGINS, logins))

    trials = trials_of(settings, seen, mask, opening)
    kept = await seen.journal.books.settings(LOGINS) or {}
    logins = Logins(
        token,
        totp=settings.console_totp.get_secret_value(),
        clock=seen.clock,
        kept=kept.get(NOWHERE, ""),
        keep=keep,
    )
    console = Console(
        host=settings.console_host,
        port=port,
        origin=settings.console_origin,
        proxy=settings.console_proxy,
        logins=logins,
        mask=mask,
        load=load,
    )
    async with background(trials.run()), console, whole.open():
        if seen.trying is None:  # else nobody knows the token, and a link is told
            logger.info("the console is at %s", console.origins.first.url("/"))
        yield console.link


def trials_of(settings: Settings, seen: SeenBot, mask: Mask, opens: Opens) -> Trials:
    """The trials beside the bot; nothing of it is loaded before somebody wants it."""
    rooms = seen.rooms

    def opening(wanted: Wanted) -> AbstractAsyncContextManager[Trial]:
        from bot.wiring.trial import offered, open_trial

        told = personas_of(rooms.keeping.personas)
        return open_trial(
            settings,
            wanted,
            opening=opens,
            found=offered(seen.means.staff.toolset.list()),
            texts={one.key: one.text for one in told if one.filed is not None},
            purse=purse(most) if wanted.is_real and (most := trials.ceiling) else None,
            mask=mask,
        )

    def purse(most: Ceiling) -> Purse:
        store, day = rooms.on.store, trials.today
        return Purse(most, day=day, is_spent=is_spent, store=store, clock=seen.clock)

    def is_spent() -> bool:
        return seen.spending.rung(NOWHERE, 0) >= Rung.SPENT

    def told(taken: UsageSum) -> None:
        plural = "" if taken.requests == 1 else "s"
        took = f"{taken.requests} request{plural}, {taken.prompt + taken.completion} tokens"
        cost = f"${taken.cost:.4f}{' + ?' if taken.unpriced else ''}"
        at = seen.clock.now()
        rooms.on.store.put(
            Audited(at=at, login="", address="", action="tried", object=took, outcome=cost)
        )

    async def took(since: float) -> UsageSum | None:
        return await seen.journal.books.usage(since=since, turn_id=TRIED)

    trials = Trials(
        opening,
        ceiling=partial(ceiling_of, settings),
        is_spent=is_spent,
        told=told,
        took=took,
        clock=seen.clock,
        home=seen.trying,
    )
    rooms.forgetting.follow(trials.forget)
    return trials


def sources_of(
    settings: Settings, seen: SeenBot, whole: Whole, mask: Mask, trials: Trials
) -> Sources:
    """All that the pages show."""
    from adapters.console.sources import Sources

    rooms, clock = seen.rooms, seen.clock
    wishes = rooms.on.wishes

    async def pause(where: Conversation, *, silent: bool) -> bool:
        return await (wishes.keep(where, Wish(is_mute=True)) if silent else wishes.end(where))

    return Sources(
        showing=seen.journal.shown,
        audits=seen.journal.books,
        explain=Explanations(clock.now, has_fallbacks=bool(settings.llm_fallbacks)),
        feed=whole.feed,
        look=whole.look,
        limits=partial(limits_shown, settings, seen.spending.own),
        tools=partial(tools_of, seen.means, rooms.keeping.personas),
        call=partial(call_tool, seen.means, rooms.keeping.personas, clock),
        personas=partial(personas_of, rooms.keeping.personas),
        rendered=whole.rendered,
        retell=rooms.keeping.personas.change,
        untell=rooms.keeping.personas.go_back,
        pause=pause,
        forget=rooms.forgetting.chat,
        settle=whole.settle,
        waiting=whole.waiting,
        note=rooms.on.store.put,
        tell=rooms.owner.tell,
        tongue=rooms.owner.tongue,
        mask=mask,
        estimate=estimate_text,
        weigh=weigh,
        midnight=midnight,
        clock=clock,
        trying=trials,
        first="/" if seen.trying is None else "/try#say",
        doctor=None if seen.doctor is None else partial(seen.doctor, partial(charge, rooms)),
    )


def charge(rooms: Rooms, model: str, usage: Usage) -> None:
    """Count a request that is nobody's."""
    now = rooms.on.clock.now()
    rooms.on.store.put(UsageAdded(turn_id="", model=model, usage=usage, at=now))
