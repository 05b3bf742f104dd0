"""A ChatModel whose answers say what they cost, where the vendor does not and its prices are
known.
"""

from __future__ import annotations

from msgspec.structs import replace

from bot.domain.chat import Completion, ModelRequest
from bot.domain.ports import ChatModel
from bot.policy.prices import Price


class PricedModel:
    """Put it inside whatever counts or keeps what answers cost."""

    def __init__(self, model: ChatModel, *, price: Price | None) -> None:
        self._model = model
        self._price = price

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer. Raises ModelError."""
        completion = await self._model.complete(request)
        usage = completion.usage
        if self._price is None or usage is None or usage.cost is not None:
            return completion
        return replace(completion, usage=replace(usage, cost=self._price.of(usage)))
