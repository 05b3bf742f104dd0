from __future__ import annotations

import pytest
from msgspec.structs import replace

from bot.domain.chat import Completion, ModelRequest, Usage, UserMessage
from bot.domain.errors import ModelAuth
from bot.models.pricing import PricedModel
from bot.policy.prices import Price
from tests.fakes import ScriptedModel, words

REQUEST = ModelRequest((UserMessage("hi"),))
PRICE = Price(prompt=2, cached=1, completion=10)


async def priced(completion: Completion, price: Price | None = PRICE) -> Usage | None:
    """The usage of an answer on its way through."""
    with ScriptedModel(completion) as model:
        answer = await PricedModel(model, price=price).complete(REQUEST)
    assert replace(answer, usage=None) == replace(completion, usage=None)
    return answer.usage


async def test_an_answer_says_what_it_cost() -> None:
    usage = Usage(prompt=1_000_000, completion=100_000, cached=400_000)
    assert await priced(replace(words("a"), usage=usage)) == replace(usage, cost=0.6 * 2 + 0.4 * 1 + 1)


async def test_the_vendors_own_figure_wins_also_where_it_is_nothing() -> None:
    assert await priced(replace(words("a"), usage=Usage(10, 5, cost=0.0))) == Usage(10, 5, cost=0.0)


async def test_an_unknown_price_is_no_cost_at_all() -> None:
    assert await priced(words("a"), price=None) == Usage(10, 5, cost=None)
    assert await priced(replace(words("a"), usage=None)) is None


async def test_errors_and_the_name_go_through() -> None:
    with ScriptedModel(ModelAuth("no")) as model, pytest.raises(ModelAuth):
        await PricedModel(model, price=PRICE).complete(REQUEST)
    assert PricedModel(ScriptedModel(), price=None).name == "scripted"
