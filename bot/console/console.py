"""Opens the operator's console if CONSOLE_PORT is set; its pages load with the first request."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from bot.budget.trial_account import TrialAccount
from bot.build import App
from bot.commands.why import Explanations
from bot.console.console_backend import (
    count_decisions,
    decide_anywhere,
    job_moment,
    list_personas,
    read_all,
    read_group,
    render_anywhere,
)
from bot.console.limits_page import list_limits
from bot.console.tools_page import call_tool, list_servers, list_tools, read_web
from bot.core.console_views import Doctor, Feed, Finding
from bot.core.conversation import NOWHERE
from bot.core.journal import Audited, PlaceSet, UsageAdded
from bot.core.query_results import UsageSum
from bot.core.trial_group import Trial, TrialLimits, TrialOptions
from bot.jobs.rules import tell_rule
from bot.memory.window import weigh
from bot.trial.trial_manager import TrialManager, ceiling_of
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.models.tokens import estimate_text
from frostagent.text.masking import Mask
from frostagent.types.messages import Usage

if TYPE_CHECKING:
    from aiohttp import web

    from adapters.console.http import Origins
    from adapters.console.logins import Logins
    from adapters.console.sources import Sources
    from bot.trial.simulated_trial import OpenService

logger = logging.getLogger(__name__)

Link: TypeAlias = Callable[[], str]
"""Makes an address that logs a browser in once."""

LOGINS: Final = "console"  # the name under which the journal keeps them

CLOSED: Final = (
    "there is no console, though CONSOLE_PORT is set: CONSOLE_TOKEN is not. `frostagent setup` "
    "makes one, and so does openssl rand -hex 16"
)


@asynccontextmanager
async def open_console(
    settings: Settings,
    app: App,
    *,
    mask: Mask,
    feed: Feed,
    open_service: OpenService,
    trying: Trial | None = None,
    doctor: Doctor | None = None,
) -> AsyncIterator[Link | None]:
    """Serve the console while the block runs. Yields a function that makes links to it; None if
    there is no console. Its pages follow `feed`; `open_service` opens the services of trials,
    `doctor` checks this bot.

    In a cluster the first bot has it. A bot that is itself on trial, as `trying`, always has one,
    on a free port.
    """
    if not app.journal.scope.is_first:
        yield None
        return
    token, port = settings.console_token.get_secret_value(), settings.console_port
    if trying is not None and not port:  # a link logs in: no one needs the token
        token = token or secrets.token_hex(16)
    elif not port or not token:
        if port:
            logger.warning(CLOSED)
        yield None
        return

    from adapters.console.logins import Logins
    from adapters.console.server import Console

    trials = build_trials(settings, app, mask=mask, open_service=open_service, trying=trying)

    def load(logins: Logins, origins: Origins) -> web.Application:
        from adapters.console.site import build_app

        sources = build_sources(
            settings, app, feed, trials, mask=mask, trying=trying, doctor=doctor
        )
        return build_app(sources, logins=logins, origins=origins, proxy=settings.console_proxy)

    def keep(logins: str) -> None:
        app.store.put(PlaceSet(NOWHERE, LOGINS, logins))

    kept = await app.journal.books.settings(LOGINS) or {}
    logins = Logins(
        token,
        totp=settings.console_totp.get_secret_value(),
        clock=app.clock,
        kept=kept.get(NOWHERE, ""),
        keep=keep,
    )
    console = Console(
        host=settings.console_host,
        port=port,
        origin=settings.console_origin,
        logins=logins,
        load=load,
    )
    async with background(trials.run()), console:
        if trying is None:  # else a link is printed, and the token may be random
            logger.info("the console is at %s", console.origins.first.url("/"))
        yield console.link


def build_trials(
    settings: Settings, app: App, *, mask: Mask, open_service: OpenService, trying: Trial | None
) -> TrialManager:
    """Build the trials beside this bot; their modules load with the first one."""

    def open_wanted(wanted: TrialOptions) -> AbstractAsyncContextManager[Trial]:
        from bot.trial.trial import open_trial, select_harmless_tools

        personas = list_personas(app.personas)
        ceiling = trials.ceiling if wanted.is_real else None
        return open_trial(
            settings,
            wanted,
            open_service=open_service,
            tools=select_harmless_tools(app.toolset.list()),
            texts={one.key: one.text for one in personas if one.filed is not None},
            account=None if ceiling is None else open_account(ceiling),
            mask=mask,
        )

    def open_account(ceiling: TrialLimits) -> TrialAccount:
        return TrialAccount(
            ceiling,
            store=app.store,
            books=app.journal.books,
            spending=app.spending,
            clock=app.clock,
        )

    def audit(usage: UsageSum) -> None:
        plural = "" if usage.requests == 1 else "s"
        amount = f"{usage.requests} request{plural}, {usage.prompt + usage.completion} tokens"
        cost = f"${usage.cost:.4f}{' + ?' if usage.unpriced else ''}"
        at = app.clock.now()
        app.store.put(
            Audited(at=at, login="", address="", action="tried", object=amount, outcome=cost)
        )

    trials = TrialManager(
        open_wanted,
        ceiling=lambda: ceiling_of(settings),
        find_lack=lambda ceiling: open_account(ceiling).find_lack(),
        on_end=audit,
        clock=app.clock,
        home=trying,
    )
    app.forgetting.follow(trials.forget)
    return trials


def build_sources(
    settings: Settings,
    app: App,
    feed: Feed,
    trials: TrialManager,
    *,
    mask: Mask,
    trying: Trial | None,
    doctor: Doctor | None,
) -> Sources:
    from adapters.console.sources import Sources

    clock, personas = app.clock, app.personas

    def charge(model: str, usage: Usage) -> None:
        """Count a request that belongs to no turn."""
        app.store.put(UsageAdded(turn_id="", model=model, usage=usage, at=clock.now()))

    async def run_doctor() -> Sequence[Finding]:
        return () if doctor is None else await doctor(charge)

    return Sources(
        showing=app.journal.shown,
        audits=lambda latest: app.journal.books.audit(latest=latest),
        explain=Explanations(clock.now, has_fallbacks=bool(settings.llm_fallbacks)),
        feed=feed,
        look=lambda: read_all(app),
        look_with_drafts=lambda: read_all(app, with_drafts=True),
        limits=lambda: list_limits(settings, app.spending.own),
        tools=lambda: list_tools(app),
        servers=lambda: list_servers(app),
        web=lambda: read_web(settings, app),
        call=lambda name, arguments: call_tool(app, name, arguments),
        personas=lambda: list_personas(personas),
        rendered=lambda where: render_anywhere(app, where),
        retell=personas.change,
        untell=personas.go_back,
        pause=app.quiet_hours.mute,
        resume=app.quiet_hours.end_override,
        forget=app.forgetting.chat,
        jobs=app.journal.books.scheduled,
        job_rule=lambda job, language: tell_rule(job.rule, language),
        job_moment=lambda job, language: job_moment(job, clock.now(), language),
        cancel_job=app.job_book.cancel_in,
        group=lambda where: read_group(app, where, asks_owners=settings.bot_applicants == "ask"),
        greet=app.greetings.choose,
        settle=lambda decision: decide_anywhere(app, decision),
        waiting=lambda: count_decisions(app) + app.others.waiting,
        note=app.store.put,
        tell=app.owner.tell,
        language=app.owner.language,
        mask=mask,
        estimate=estimate_text,
        weigh=weigh,
        clock=clock,
        trying=trials,
        first="/" if trying is None else "/try#say",
        doctor=None if doctor is None else run_doctor,
    )
