"""Makes a model from a URL, a name and a key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from frostagent.clock import RandomIds, SystemClock
from frostagent.models.failover import Failover
from frostagent.models.openai.answer_formats import AnswerFormats
from frostagent.models.openai.client import OpenAIModel, Timeouts, make_session
from frostagent.models.openai.endpoint import EitherUrl
from frostagent.models.openai.streaming import InlineThoughts
from frostagent.models.upstreams import Upstream
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.messages import Completion, ModelRequest
from frostagent.types.ports import ChatModel


@asynccontextmanager
async def connect(
    base_url: str,
    model: str,
    api_key: str = "",
    *,
    dialect: str = "",
    timeouts: Timeouts | None = None,
) -> AsyncIterator[ChatModel]:
    """Connect to a model behind an OpenAI-compatible API. Failed requests are retried.

        async with connect("https://api.deepseek.com", "deepseek-chat", key) as model:
            reply = await Agent(model=model).chat("Hello!")

    `base_url` may have /v1 or not: if nothing answers, the other form is tried. `api_key` may be
    empty for a local server. An empty `dialect` is detected (docs/models.md). Raises ConfigError
    for an invalid URL.
    """
    known = Known(InlineThoughts(model), AnswerFormats())
    async with _connected(
        base_url, model, api_key, dialect, timeouts=timeouts, known=known
    ) as connected:
        yield connected


@dataclass(frozen=True, slots=True)
class Known:
    """What was learnt about a server; it outlives connections."""

    inline_thoughts: InlineThoughts
    answer_formats: AnswerFormats


@asynccontextmanager
async def _connected(
    base_url: str,
    model: str,
    api_key: str,
    dialect: str,
    *,
    timeouts: Timeouts | None,
    known: Known,
) -> AsyncIterator[ChatModel]:
    async with make_session() as session:
        make = partial(
            OpenAIModel,
            session=session,
            api_key=api_key,
            model=model,
            dialect=dialect,
            timeouts=timeouts,
            inline_thoughts=known.inline_thoughts,
            answer_formats=known.answer_formats,
        )
        try:
            client = EitherUrl(lambda url: make(base_url=url), base_url)
        except ValueError as error:
            raise ConfigError(
                Problem("connect", str(error), "Give the base url as the vendor writes it.")
            ) from None
        yield Failover([Upstream(client)], clock=SystemClock(), ids=RandomIds())


class Endpoint:
    """A model behind a URL that connects on demand. Fits `ChatModel`: outside of `connected`, each
    request has its own connection.
    """

    def __init__(self, base_url: str, model: str, api_key: str = "") -> None:
        self.name = model
        self._base_url = base_url
        self._api_key = api_key
        self._known = Known(InlineThoughts(model), AnswerFormats())

    def connected(self) -> AbstractAsyncContextManager[ChatModel]:
        """The model, with connections kept open during the block."""
        return _connected(
            self._base_url,
            self.name,
            self._api_key,
            "",
            timeouts=None,
            known=self._known,
        )

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer over a connection of its own. Raises ModelError, ConfigError."""
        async with self.connected() as model:
            return await model.complete(request)
