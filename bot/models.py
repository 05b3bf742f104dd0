"""A ChatModel over a ChatModel: patience with a busy vendor.

An adapter's client makes one attempt and classifies; what to do about each class is decided here.
"""

from __future__ import annotations

import logging

from bot.domain.chat import Completion, ModelRequest
from bot.domain.errors import ModelError, ModelOverloaded, ModelRateLimited, ModelTransport
from bot.domain.ports import ChatModel, Clock, Ids

logger = logging.getLogger(__name__)

ATTEMPTS = 4
PATIENCE = 60.0  # seconds; a vendor that asks for more is not waited for: a person is


class RetryingModel:
    """Asks again when the vendor is busy or the line broke; every other error goes straight out.

    Retry-After is honoured up to `patience` seconds, counted over all waits of one request; without it the waits
    are about 1, 2, 4 s. An answer is only handed on whole, so asking again never repeats anything said.
    """

    def __init__(
        self, model: ChatModel, *, clock: Clock, ids: Ids, attempts: int = ATTEMPTS, patience: float = PATIENCE
    ) -> None:
        self._model = model
        self._clock = clock
        self._ids = ids
        self._attempts = attempts
        self._patience = patience

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer, after as many attempts as allowed. Raises the last ModelError."""
        waited = 0.0
        for attempt in range(1, self._attempts):
            try:
                return await self._model.complete(request)
            except (ModelRateLimited, ModelOverloaded, ModelTransport) as error:
                wait = self._wait(error, attempt)
                waited += wait
                if waited > self._patience:
                    raise
                logger.info("%s: %s (%s); asking again in %.1f s", self.name, error.kind, error, wait)
            await self._clock.sleep(wait)
        return await self._model.complete(request)

    def _wait(self, error: ModelError, attempt: int) -> float:
        if isinstance(error, ModelRateLimited | ModelOverloaded) and error.retry_after is not None:
            return error.retry_after
        return float(2 ** (attempt - 1)) * (0.75 + self._ids.jitter() / 2)
