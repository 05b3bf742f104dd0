"""One small request to the model."""

from __future__ import annotations

from pydantic import SecretStr

from adapters.offline.server import OfflineModel
from bot.cli.setup.trial import Mend, mend_of, models_at, try_endpoint, try_model, with_version
from bot.domain import errors
from bot.domain.errors import ModelError
from bot.runtime.clock import SystemClock
from config.endpoints import Endpoint
from tests.cases import each_case
from tests.fakes import ManualClock, ScriptedModel, words


async def test_a_model_that_answers_is_well() -> None:
    async with OfflineModel() as server:
        trial = await try_endpoint(Endpoint(server.base_url, SecretStr(""), "demo"), clock=SystemClock())
        assert (trial.ok, trial.why, trial.mend) == (True, "", Mend("", ""))
        assert trial.seconds >= 0
        assert trial.answer is not None
        assert trial.answer.message.text
        (request,) = server.requests
        assert "tools" not in request


async def test_the_models_of_a_service_are_found_also_without_v1() -> None:
    async with OfflineModel() as server:
        for url in (server.base_url, server.base_url.removesuffix("/v1")):
            assert await models_at(Endpoint(url, SecretStr(""), "")) == ("offline-demo",)
    assert await models_at(Endpoint(server.base_url, SecretStr("k"), "")) == ()


async def test_a_server_that_is_not_there_is_told_with_its_mend() -> None:
    trial = await try_endpoint(Endpoint("http://127.0.0.1:9/v1", SecretStr("k"), "m"), clock=SystemClock())
    assert not trial.ok
    assert "cannot be reached" in trial.why
    assert "base url" in trial.mend.en
    assert trial.mend.setting == "LLM_BASE_URL"


async def test_a_refusal_is_told_in_the_services_words() -> None:
    clock = ManualClock()
    trial = await try_model(ScriptedModel(errors.ModelAuth("Authentication Fails", status=401)), clock=clock)
    assert (trial.ok, trial.why) == (False, "Authentication Fails")
    assert "key" in trial.mend.en
    assert "密钥" in trial.mend.zh
    assert trial.mend.setting == "LLM_API_KEY"


async def test_a_thoughtful_model_need_not_say_much() -> None:
    assert (await try_model(ScriptedModel(words("yes")), clock=ManualClock())).ok


def kinds(kind: type[ModelError] = ModelError) -> list[type[ModelError]]:
    """Every kind of error a model can end with."""
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in kinds(child))]


@each_case("kind", kinds())
def test_every_error_of_a_model_has_its_mend(kind: type[ModelError]) -> None:
    mend = mend_of(kind("x"))
    assert mend.en.isascii()
    assert any("一" <= letter <= "鿿" for letter in mend.zh)
    assert mend.setting in {"", "LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL"}


@each_case(
    ("base_url", "longer"),
    [
        ("https://api.deepseek.com", "https://api.deepseek.com/v1"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1"),
        ("https://proxy.test/openrouter", "https://proxy.test/openrouter/v1"),
        ("https://api.deepseek.com/v1", ""),
        ("https://open.bigmodel.cn/api/paas/v4", ""),
        ("https://generativelanguage.test/v1beta/openai", ""),
    ],
)
def test_a_base_url_without_its_version_could_have_one(base_url: str, longer: str) -> None:
    assert with_version(base_url) == longer
