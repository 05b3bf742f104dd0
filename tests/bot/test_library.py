from __future__ import annotations

import pytest

from bot import library
from bot.library import Agent, ConfigError, ModelError, RunFailed, connect
from tests.conformance.vendor import Body, serving


def test_everything_a_person_imports_is_there_once() -> None:
    assert sorted(library.__all__) == sorted(set(library.__all__))
    assert [name for name in library.__all__ if not hasattr(library, name)] == []


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/chat/completions"])
async def test_a_url_a_name_and_a_key_are_a_model(suffix: str) -> None:
    async with serving() as vendor, connect(f"{vendor.url}{suffix}", "some-model", "sk-test") as model:
        assert (await Agent(model=model).chat("hi")).text == "hello"
    assert (vendor.bodies[0]["model"], vendor.keys) == ("some-model", ["Bearer sk-test"])


async def test_a_local_server_needs_no_key() -> None:
    async with serving() as vendor, connect(vendor.url, "some-model") as model:
        await Agent(model=model).chat("hi")
    assert vendor.keys == [""]


async def test_a_busy_server_is_asked_again() -> None:
    answers: list[Body | int] = [503, {"content": "hello"}]
    async with serving(lambda _body: answers.pop(0)) as vendor, connect(vendor.url, "m") as model:
        assert (await Agent(model=model).chat("hi")).text == "hello"
    assert len(vendor.bodies) == 2


async def test_a_refused_key_is_told_by_its_kind() -> None:
    async with serving(lambda _body: 401) as vendor, connect(vendor.url, "m", "sk-wrong") as model:
        with pytest.raises(RunFailed) as caught:
            await Agent(model=model).chat("hi")
        assert caught.value.kind == "auth"
        assert not isinstance(caught.value, ModelError)


@pytest.mark.parametrize(("url", "dialect"), [("not a url", ""), ("http://127.0.0.1:9", "klingon")])
async def test_what_cannot_be_a_model_is_refused_at_once(url: str, dialect: str) -> None:
    with pytest.raises(ConfigError, match="connect: "):
        async with connect(url, "m", dialect=dialect):
            pass
