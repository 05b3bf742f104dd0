"""The operator's console, off unless CONSOLE_PORT is set; pages are loaded at the first request."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from bot.commands.phrases import tokens
from bot.commands.why import Explanations
from bot.console.console_backend import ConsoleBackend, personas_of
from bot.domain.cancellation import background
from bot.domain.console_views import LimitState, ToolAnswer, ToolState
from bot.domain.errors import ToolDenied, ToolTimeout
from bot.domain.events import Conversation
from bot.domain.journal import Audited, PlaceSet, UsageAdded
from bot.domain.masking import Mask
from bot.domain.model_messages import Usage
from bot.domain.ports import Clock, Subagents
from bot.domain.query_results import UsageSum
from bot.domain.run import Asker, Terms
from bot.domain.tool import Tool, ToolContext
from bot.domain.traits import Audience, Permission, SideEffects
from bot.domain.trial_group import TRIED, Trial, TrialLimits, TrialOptions
from bot.engine.toolset import NOWHERE as NO_CONVERSATION
from bot.memory.kept_settings import NOWHERE
from bot.memory.own_limits import OwnLimits
from bot.memory.personas import Personas
from bot.memory.quiet_overrides import QuietOverride
from bot.memory.window import weigh
from bot.policy.calendar_days import midnight
from bot.policy.day_limits import LimitLevel, LimitOverride
from bot.policy.tokens import estimate_text
from bot.trial.trial_budget import TrialBudget
from bot.trial.trial_manager import TrialManager, ceiling_of
from bot.wiring.resources import Resources
from bot.wiring.service import Rooms
from bot.wiring.tools import PORTS
from config.settings import Settings

if TYPE_CHECKING:
    from adapters.console.http import Origins
    from adapters.console.logins import Logins
    from adapters.console.routes import Routes
    from adapters.console.sources import Sources
    from bot.console.cluster_console import ClusterConsole
    from bot.trial.simulated_trial import OpenService

LIMIT_SETTINGS: Final = (
    "bot_user_rate",
    "bot_group_rate",
    "bot_lane",
    "bot_stale",
    "bot_loop",
    "bot_day_cost_user",
    "bot_day_cost_group",
    "bot_day_cost_all",
    "bot_day_tokens_user",
    "bot_day_tokens_group",
    "bot_day_tokens_all",
    "bot_run_requests",
    "bot_run_tokens",
    "bot_max_steps",
    "bot_max_sends",
    "bot_send_rate",
    "tools_max_calls",
)
BY_COMMAND: Final = "/limit"
BY_FILE: Final = "GROUPS_FILE"
MANY_TOKENS: Final = 10_000


def limits_shown(settings: Settings, owned: OwnLimits) -> tuple[LimitState, ...]:
    """Those of the settings, then those of single groups: in the operator's file, and those that
    owners set by command.
    """
    usual = [
        LimitState(name.upper(), _value(name, getattr(settings, name))) for name in LIMIT_SETTINGS
    ]
    own = [LimitState(BY_COMMAND, _amounts(cap), str(whose)) for whose, cap in owned.all().items()]
    filed = [LimitState(BY_FILE, _amounts(cap), str(group)) for group, cap in owned.filed().items()]
    return (*usual, *filed, *own)


def _value(name: str, value: object) -> str:
    match value:
        case (int() as number, float() as seconds):
            return f"{number} / {seconds:g} s"
        case int() | float() if value and "cost" in name:
            return f"${value:g}"
        case int() if value >= MANY_TOKENS:
            return tokens(value)
        case int() | float() if value:
            return f"{value:g}"
        case _:
            return ""


def _amounts(cap: LimitOverride) -> str:
    """The amounts set for one, ∞ for one that is lifted; empty where both are. Those that are as
    usual are left out: the usual stands above.
    """
    if cap == LimitOverride(cost=0.0, tokens=0):
        return ""
    told = [] if cap.cost is None else [f"${cap.cost:g}" if cap.cost else "$∞"]
    if cap.tokens is not None:
        told.append(f"{tokens(cap.tokens) if cap.tokens else '∞'} token")
    return ", ".join(told)


CALL_SECONDS = 60.0  # seconds that a page waits for a call
CALL_TIMED_OUT = "there was no answer within {seconds:g} s."
NOT_CALLABLE = "{name} is not called from a page ({why})."


def tools_of(means: Resources, personas: Personas) -> tuple[ToolState, ...]:
    """All tools, whether they can be used or not."""
    cast, toolset = personas.cast, means.staff.toolset
    told = []
    for status, tool in zip(toolset.check_availability(PORTS), toolset.list(), strict=True):
        audience = cast.audiences.get(tool.name, tool.audience)
        theirs = {
            group: house.audiences.get(tool.name, tool.audience)
            for group, house in sorted(cast.houses.items())
        }
        told.append(
            ToolState(
                name=tool.name,
                about=status.description,
                reason=status.reason,
                permission=str(toolset.permission_of(tool)),
                audience=str(audience),
                elsewhere=tuple((at, str(who)) for at, who in theirs.items() if who != audience),
                quota=(tool.rate.calls, tool.rate.seconds) if tool.rate else None,
                unfit="away" if status.reason else why_not_callable(means, personas, tool),
                parameters=tool.parameters,
            )
        )
    return tuple(told)


def why_not_callable(means: Resources, personas: Personas, tool: Tool) -> str:
    """Why a page may not call this tool; empty where it may.

    A page asks as somebody of whom nothing is known does, nowhere: what he may have called in a
    group it may have called, and of that only what changes nothing and costs no model.
    """
    permission = means.staff.toolset.permission_of(tool)
    if permission is Permission.DENY:
        return "denied"
    if not tool.side_effects.is_harmless:
        return "undeclared" if tool.side_effects is SideEffects.UNDECLARED else "effects"
    if permission is Permission.REQUIRE_APPROVAL:
        return "approval"
    if personas.cast.audiences.get(tool.name, tool.audience) is not Audience.EVERYONE:
        return "audience"
    if Subagents in tool.needs:
        return "models"
    return "" if all(need in means.ports for need in tool.needs) else "chat"


async def call_tool(
    means: Resources, personas: Personas, clock: Clock, name: str, arguments: str
) -> ToolAnswer:
    """Call one as the engine does, with all its rules. Every failure is an answer, that it may not
    be called from here, too.
    """
    toolset, begun = means.staff.toolset, clock.monotonic()
    tool = toolset.get(name)
    if tool is not None and (why := why_not_callable(means, personas, tool)):
        return ToolAnswer(NOT_CALLABLE.format(name=name, why=why), ToolDenied.code, 0.0)
    context = ToolContext(
        run_id="console",
        step=1,
        call_id="call",
        conversation=NO_CONVERSATION,
        asker=Asker(0, "console", authority=Audience.EVERYONE, overheard=Audience.EVERYONE),
        deadline=begun + CALL_SECONDS,
        ports={kind: port for kind, port in means.ports.items() if kind is not Subagents},
        terms=Terms(audiences=personas.cast.audiences, highest=Audience.EVERYONE),
    )
    try:
        async with asyncio.timeout(CALL_SECONDS):
            result = await toolset.execute(name, arguments, context)
    except TimeoutError:
        return ToolAnswer(
            CALL_TIMED_OUT.format(seconds=CALL_SECONDS), ToolTimeout.code, clock.monotonic() - begun
        )
    code = result.code if result.is_error else "ok"
    return ToolAnswer(result.content, code, clock.monotonic() - begun, len(result.images))


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
    settings: Settings, seen: ConsoleBackend, *, mask: Mask, opening: OpenService
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
    from bot.console.cluster_console import ClusterConsole

    cluster = ClusterConsole(seen)

    def load(logins: Logins, _origins: Origins) -> Routes:
        from adapters.console.site import routes_of

        return routes_of(logins, sources_of(settings, seen, cluster, mask, trials))

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
    async with background(trials.run()), console, cluster.open():
        if seen.trying is None:  # else nobody knows the token, and a link is told
            logger.info("the console is at %s", console.origins.first.url("/"))
        yield console.link


def trials_of(
    settings: Settings, seen: ConsoleBackend, mask: Mask, opens: OpenService
) -> TrialManager:
    """The trials beside the bot; nothing of it is loaded before somebody wants it."""
    rooms = seen.rooms

    def opening(wanted: TrialOptions) -> AbstractAsyncContextManager[Trial]:
        from bot.trial.trial import open_trial, select_harmless_tools

        told = personas_of(rooms.keeping.personas)
        return open_trial(
            settings,
            wanted,
            open_service=opens,
            tools=select_harmless_tools(seen.means.staff.toolset.list()),
            texts={one.key: one.text for one in told if one.filed is not None},
            budget=budget(most) if wanted.is_real and (most := trials.ceiling) else None,
            mask=mask,
        )

    def budget(most: TrialLimits) -> TrialBudget:
        store, day = rooms.on.store, trials.today
        return TrialBudget(most, day=day, is_spent=is_spent, store=store, clock=seen.clock)

    def is_spent() -> bool:
        return seen.spending.rung(NOWHERE, 0) >= LimitLevel.SPENT

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

    trials = TrialManager(
        opening,
        ceiling=partial(ceiling_of, settings),
        is_spent=is_spent,
        on_end=told,
        usage_since=took,
        clock=seen.clock,
        home=seen.trying,
    )
    rooms.forgetting.follow(trials.forget)
    return trials


def sources_of(
    settings: Settings,
    seen: ConsoleBackend,
    cluster: ClusterConsole,
    mask: Mask,
    trials: TrialManager,
) -> Sources:
    """All that the pages show."""
    from adapters.console.sources import Sources

    rooms, clock = seen.rooms, seen.clock
    quiet_overrides = rooms.on.quiet_overrides

    async def pause(where: Conversation, *, silent: bool) -> bool:
        return await (
            quiet_overrides.keep(where, QuietOverride(is_mute=True))
            if silent
            else quiet_overrides.end(where)
        )

    return Sources(
        showing=seen.journal.shown,
        audits=seen.journal.books,
        explain=Explanations(clock.now, has_fallbacks=bool(settings.llm_fallbacks)),
        feed=cluster.feed,
        look=cluster.look,
        limits=partial(limits_shown, settings, seen.spending.own),
        tools=partial(tools_of, seen.means, rooms.keeping.personas),
        call=partial(call_tool, seen.means, rooms.keeping.personas, clock),
        personas=partial(personas_of, rooms.keeping.personas),
        rendered=cluster.rendered,
        retell=rooms.keeping.personas.change,
        untell=rooms.keeping.personas.go_back,
        pause=pause,
        forget=rooms.forgetting.chat,
        settle=cluster.settle,
        waiting=cluster.waiting,
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
