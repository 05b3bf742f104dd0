from __future__ import annotations

import asyncio

import pytest

from frostagent.models.openai.endpoint import EitherUrl, other_url
from frostagent.types.errors import ModelAuth, ModelError, ModelNotFound, ModelTransport
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ModelRequest, UserMessage
from tests.cases import each_case

REQUEST = ModelRequest((UserMessage("hi"),))
MISSING = ModelNotFound("Not Found", status=404)


@each_case(
    ("given", "other"),
    [
        ("https://h.test", "https://h.test/v1"),
        ("https://h.test/", "https://h.test/v1"),
        (" https://h.test/api?key=1 ", "https://h.test/api/v1?key=1"),
        ("https://h.test/v1", "https://h.test"),
        ("https://h.test/openai/v1/", "https://h.test/openai"),
        ("https://h.test/api/paas/v4", ""),
        ("https://h.test/v1beta/openai", "https://h.test/v1beta/openai/v1"),
        ("https://h.test/v1/chat/completions", ""),
    ],
)
def test_a_base_url_has_another_one_with_its_version_put_in_or_left_out(given: str, other: str) -> None:
    assert other_url(given) == other


class House:
    """Models by their base url: each answers, or fails as told; the ledger has who was asked."""

    def __init__(self, **failures: ModelError) -> None:
        self.asked: list[str] = []
        self.failures = failures

    def make(self, base_url: str) -> Door:
        return Door(self, base_url.rpartition("/")[2])


class Door:
    """One of them."""

    def __init__(self, house: House, name: str) -> None:
        self.house, self.name = house, name

    async def complete(self, request: ModelRequest) -> Completion:
        self.house.asked.append(self.name)
        await asyncio.sleep(0)
        if failure := self.house.failures.get(self.name.partition(".")[0]):
            raise failure
        return Completion(AssistantMessage(self.name), FinishReason.STOP)


async def ask(model: EitherUrl) -> str:
    return (await model.complete(REQUEST)).message.text


@each_case("status", [404, 405])
async def test_where_nothing_is_there_the_other_is_tried_and_stays(status: int) -> None:
    house = House(h=ModelNotFound("Not Found", status=status))
    model = EitherUrl(house.make, "https://h.test")
    assert model.name == "h.test"
    assert [await ask(model), await ask(model)] == ["v1", "v1"]
    assert house.asked == ["h.test", "v1", "v1"]
    assert model.name == "v1"


async def test_what_has_answered_once_is_right() -> None:
    house = House()
    model = EitherUrl(house.make, "https://h.test")
    assert await ask(model) == "h.test"
    house.failures["h"] = MISSING
    with pytest.raises(ModelNotFound):
        await ask(model)
    assert house.asked == ["h.test", "h.test"]


@each_case("failure", [ModelAuth("wrong key", status=401), ModelTransport("cut off")])
async def test_any_other_failure_says_nothing_about_the_url(failure: ModelError) -> None:
    house = House(h=failure)
    with pytest.raises(type(failure)):
        await ask(EitherUrl(house.make, "https://h.test"))
    assert house.asked == ["h.test"]


async def test_where_both_are_not_there_the_url_as_it_was_given_is_told() -> None:
    house = House(h=MISSING, v1=ModelNotFound("nor here", status=404))
    with pytest.raises(ModelNotFound, match="Not Found"):
        await ask(EitherUrl(house.make, "https://h.test"))
    assert house.asked == ["h.test", "v1"]


async def test_what_the_other_one_refuses_is_told() -> None:
    house = House(h=MISSING, v1=ModelAuth("wrong key", status=401))
    with pytest.raises(ModelAuth):
        await ask(EitherUrl(house.make, "https://h.test"))


async def test_a_whole_path_is_taken_at_its_word() -> None:
    house = House(completions=MISSING)
    with pytest.raises(ModelNotFound):
        await ask(EitherUrl(house.make, "https://h.test/v1/chat/completions"))
    assert house.asked == ["completions"]


async def test_requests_side_by_side_find_the_other_one_all() -> None:
    house = House(h=MISSING)
    model = EitherUrl(house.make, "https://h.test")
    assert await asyncio.gather(*(ask(model) for _ in range(3))) == ["v1"] * 3
