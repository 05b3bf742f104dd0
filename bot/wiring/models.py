"""Put together from the settings: the models (who is asked for what, in which order, by which
keys), and whom the bot listens to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import starmap

from aiohttp import ClientSession

from adapters.openai.client import OpenAIModel
from adapters.openai.deadlines import Timeouts
from adapters.openai.endpoint import join_url
from bot.domain.language import NotifyOwners
from bot.domain.model_messages import ModelRequest
from bot.domain.ports import ChatModel, Clock, Ids
from bot.domain.traits import Rate
from bot.models.failover import Failover
from bot.models.meter import Meter
from bot.models.upstreams import Upstream
from bot.policy.compaction import history_room
from bot.policy.new_groups import Mode
from bot.policy.prices import Price, read_known
from bot.policy.quiet import Hours, Quiet
from bot.policy.tokens import estimate
from bot.policy.wake import Rules
from config.endpoints import Endpoint
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class Models:
    """The one that answers and the Coder's; what one learns of an endpoint, the other knows.

    `cheap` is asked for what nobody waits for, summaries and facts: the one that answers, where
    none is named. `see`: the one that answers is known to take pictures; `vision` is one that does
    where it is not the same. `at` makes a further one, of the endpoints to ask in order; `named`
    one that asks the model of this name first.
    """

    main: Failover
    coder: Failover
    cheap: Failover
    at: Callable[[tuple[Endpoint, ...]], ChatModel]
    named: Callable[[str], ChatModel]
    see: bool = False
    vision: Failover | None = None

    def upstreams(self) -> tuple[Upstream, ...]:
        """Everybody who is asked."""
        return (*self.main.upstreams, *self.cheap.upstreams, *self.coder.upstreams)


def build_models(
    settings: Settings,
    *,
    session: ClientSession,
    wrap: Callable[[ChatModel], ChatModel],
    meter: Meter,
    clock: Clock,
    ids: Ids,
    tell: NotifyOwners,
    timeouts: Timeouts | None = None,
) -> Models:
    """The models of these settings. Raises ConfigError for a table of prices with a mistake."""
    timeouts = timeouts or Timeouts(first_token=settings.llm_first_token)
    known = read_known(settings.llm_prices)
    make = partial(build_client, session=session, wrap=wrap, now=clock.now, timeouts=timeouts)

    @cache
    def upstream(endpoint: Endpoint) -> Upstream:
        return Upstream(
            *(make(endpoint, key) for key in endpoint.keys),
            window=endpoint.context or known.window(endpoint.model),
            price=known.price(endpoint.model, join_url(endpoint.base_url).host or ""),
        )

    def failover(endpoints: tuple[Endpoint, ...], vision: tuple[Endpoint, ...] = ()) -> Failover:
        return Failover(
            tuple(map(upstream, endpoints)),
            vision=tuple(map(upstream, vision)),
            clock=clock,
            ids=ids,
            tell=tell,
            meter=meter,
        )

    def sees(model: str) -> bool:
        return model == settings.llm_vision_model or known.sees(model)

    main_sees = sees(settings.llm_model)
    seeing = settings.vision_models or (settings.main_models if main_sees else ())

    def answering(model: str, endpoints: tuple[Endpoint, ...]) -> Failover:
        return failover(endpoints, () if sees(model) else seeing)

    return Models(
        answering(settings.llm_model, settings.main_models),
        failover(settings.coder_models),
        failover(settings.cheap_models),
        at=failover,
        named=lambda name: answering(name, settings.models_named(name)),
        see=main_sees,
        vision=failover(settings.vision_models) if settings.vision_models else None,
    )


def prices_asked(settings: Settings, *more: Endpoint) -> tuple[tuple[str, Price | None], ...]:
    """Each model that is asked for answers, and these, with its price where that is known. Raises
    ConfigError for a table of prices with a mistake.
    """
    known = read_known(settings.llm_prices)
    main, cheap = settings.main_models, settings.cheap_models
    asked = dict.fromkeys((*main, *cheap, *settings.coder_models, *settings.vision_models, *more))
    return tuple(
        (one.model, known.price(one.model, join_url(one.base_url).host or "")) for one in asked
    )


def told_of_history(model: Failover, around: ModelRequest, *, most: int) -> Callable[[], float]:
    """How much of a conversation its next prompt has room for, in estimated tokens, when that is
    asked.

    `around` is what stands before every conversation, the system's words and the tools; `most` is
    the setting.
    """
    size = estimate(around)

    def room() -> float:
        upstream = model.first(around)
        return history_room(most, window=upstream.window, scale=upstream.scale.factor, around=size)

    return room


def build_client(
    endpoint: Endpoint,
    key: str,
    *,
    session: ClientSession,
    wrap: Callable[[ChatModel], ChatModel],
    now: Callable[[], float],
    timeouts: Timeouts | None,
) -> ChatModel:
    """The client that asks an endpoint by one key."""
    client = OpenAIModel(
        session=session,
        base_url=endpoint.base_url,
        api_key=key,
        model=endpoint.model,
        dialect=endpoint.dialect,
        timeouts=timeouts,
        now=now,
    )
    return wrap(client)


def new_groups(settings: Settings) -> Mode:
    """How the bot is in groups that it does not know. Where only some groups are listed these are
    live, and without owners there is nobody to ask.
    """
    if settings.bot_groups:
        return Mode.LIVE
    match settings.bot_new_group:
        case "ask":
            return Mode.ASKING if settings.bot_owners else Mode.LIVE
        case how:
            return Mode(how)


def build_rules(settings: Settings) -> Rules:
    """Whom the bot listens to."""
    return Rules(
        names=(settings.bot_name, *settings.bot_aliases),
        owners=settings.bot_owners,
        groups=settings.bot_groups,
        users=settings.bot_users,
        blocked=settings.bot_block,
        prefixes=settings.bot_prefixes,
        at_all=settings.bot_at_all,
        robots=settings.bot_robots,
        chance=settings.bot_chance,
        stale=settings.bot_stale,
        loop=settings.bot_loop,
        user_rate=Rate(*settings.bot_user_rate) if settings.bot_user_rate else None,
        group_rate=Rate(*settings.bot_group_rate) if settings.bot_group_rate else None,
        quiet=tuple(starmap(Hours, settings.bot_quiet)),
        quiet_mode=Quiet(settings.bot_quiet_mode),
    )
