"""The models of the settings: their order, keys and purposes."""

from __future__ import annotations

from typing import Protocol, TypeVar

from aiohttp import ClientSession

from bot.core.language import NotifyOwners, bilingual
from config.endpoints import Endpoint
from config.settings import Settings
from frostagent.models.failover import Failover, UsageMeter
from frostagent.models.openai.client import OpenAIModel, Timeouts
from frostagent.models.openai.endpoint import join_url
from frostagent.models.prices import Price, read_known
from frostagent.models.upstreams import Upstream
from frostagent.types.ports import ChatModel, Clock, Ids

T = TypeVar("T")


class Wrap(Protocol):
    def __call__(self, port: T, /) -> T: ...


class ChatModels:
    """The models for answers and for the Coder. Knowledge of an endpoint is shared by all of them.

    `cheap` makes summaries and facts; it is the main one if none is named. `main_sees`: the main
    one is known to accept images; `vision` is another one that does. Raises ConfigError for an
    invalid price table.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        session: ClientSession,
        clock: Clock,
        ids: Ids,
        tell: NotifyOwners,
        meter: UsageMeter | None = None,
        timeouts: Timeouts | None = None,
        wrap: Wrap | None = None,
    ) -> None:
        self._settings = settings
        self._known = read_known(settings.llm_prices)
        self._session = session
        self._wrap = wrap
        self._meter = meter
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._timeouts = timeouts or Timeouts(first_token=settings.llm_first_token)
        self._upstreams: dict[Endpoint, Upstream] = {}
        self.main_sees = self._sees(settings.llm_model)
        self.main = self._answering(settings.llm_model, settings.main_models)
        self.coder = self.at(settings.coder_models)
        self.cheap = self.at(settings.cheap_models)
        self.vision = self.at(settings.vision_models) if settings.vision_models else None

    def at(self, endpoints: tuple[Endpoint, ...], vision: tuple[Endpoint, ...] = ()) -> Failover:
        """A model that asks these endpoints in order, and `vision` for requests with images."""
        return Failover(
            tuple(map(self._upstream, endpoints)),
            vision=tuple(map(self._upstream, vision)),
            clock=self._clock,
            ids=self._ids,
            tell=lambda line: self._tell(bilingual(line)),
            meter=self._meter,
        )

    def named(self, name: str) -> Failover:
        return self._answering(name, self._settings.models_named(name))

    def price(self, model: str, base_url: str) -> Price | None:
        return self._known.price(model, join_url(base_url).host or "")

    def upstreams(self) -> tuple[Upstream, ...]:
        return (*self.main.upstreams, *self.cheap.upstreams, *self.coder.upstreams)

    def _answering(self, name: str, endpoints: tuple[Endpoint, ...]) -> Failover:
        main = self._settings.main_models if self.main_sees else ()
        return self.at(endpoints, () if self._sees(name) else self._settings.vision_models or main)

    def _sees(self, name: str) -> bool:
        return name == self._settings.llm_vision_model or self._known.sees(name)

    def _upstream(self, endpoint: Endpoint) -> Upstream:
        if endpoint not in self._upstreams:
            self._upstreams[endpoint] = Upstream(
                *(self._client(endpoint, key) for key in endpoint.keys),
                window=endpoint.context or self._known.window(endpoint.model),
                price=self.price(endpoint.model, endpoint.base_url),
            )
        return self._upstreams[endpoint]

    def _client(self, endpoint: Endpoint, key: str) -> ChatModel:
        client = OpenAIModel(
            session=self._session,
            base_url=endpoint.base_url,
            api_key=key,
            model=endpoint.model,
            dialect=endpoint.dialect,
            timeouts=self._timeouts,
            now=self._clock.now,
        )
        return self._wrap(client) if self._wrap else client


def prices_asked(settings: Settings, *more: Endpoint) -> tuple[tuple[str, Price | None], ...]:
    """The models asked for answers and the `more` ones, each with its price, if known. Raises
    ConfigError for an invalid price table.
    """
    known = read_known(settings.llm_prices)
    main, cheap = settings.main_models, settings.cheap_models
    asked = dict.fromkeys((*main, *cheap, *settings.coder_models, *settings.vision_models, *more))
    return tuple(
        (one.model, known.price(one.model, join_url(one.base_url).host or "")) for one in asked
    )
