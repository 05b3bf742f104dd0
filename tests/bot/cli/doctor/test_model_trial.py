"""One small request to the model."""

from __future__ import annotations

from pydantic import SecretStr

from adapters.offline.server import OfflineModel
from bot.cli.checks import Outcome
from bot.cli.doctor.models import check_endpoint, check_trial, fix_of, models_at, try_endpoint, try_model, with_version
from config.endpoints import Endpoint
from frostagent.clock import SystemClock
from frostagent.types import errors
from frostagent.types.errors import ModelError
from tests.cases import each_case
from tests.fakes import ManualClock, ScriptedModel, words


async def test_a_model_that_answers_is_well() -> None:
    async with OfflineModel() as server:
        trial = await try_endpoint(Endpoint(server.base_url, SecretStr(""), "demo"), clock=SystemClock())
        assert (trial.error, trial.why, trial.fix) == (None, "", "")
        assert trial.seconds >= 0
        assert trial.answer is not None
        assert trial.answer.message.text
        (request,) = server.requests
        assert "tools" not in request


async def test_setup_is_told_how_long_the_answer_took() -> None:
    async with OfflineModel() as server:
        check = await check_endpoint(Endpoint(server.base_url, SecretStr(""), "demo"), clock=ManualClock())
    assert (check.outcome, check.said, check.said.zh) == (Outcome.OK, "0.0 s", "0.0 秒")
    assert (check.fix, check.setting) == ("", "")


async def test_the_models_of_a_service_are_found_also_without_v1() -> None:
    async with OfflineModel() as server:
        for url in (server.base_url, server.base_url.removesuffix("/v1")):
            assert await models_at(Endpoint(url, SecretStr(""), "")) == ("offline-demo",)
    assert await models_at(Endpoint(server.base_url, SecretStr("k"), "")) == ()


async def test_a_server_that_is_not_there_is_told_with_its_fix() -> None:
    check = await check_endpoint(Endpoint("http://127.0.0.1:9/v1", SecretStr("k"), "m"), clock=SystemClock())
    assert check.outcome is Outcome.PROBLEM
    assert "cannot be reached" in check.said
    assert "连不上" in check.said.zh
    assert "base URL" in check.fix
    assert check.setting == "LLM_BASE_URL"


async def test_a_refusal_is_told_in_the_services_words() -> None:
    clock = ManualClock()
    trial = await try_model(ScriptedModel(errors.ModelAuth("Authentication Fails", status=401)), clock=clock)
    assert (trial.answer, trial.why, trial.why.zh) == (None, "Authentication Fails", "Authentication Fails")
    assert "key" in trial.fix
    assert "密钥" in trial.fix.zh
    assert check_trial(trial).setting == "LLM_API_KEY"


async def test_a_thoughtful_model_need_not_say_much() -> None:
    assert (await try_model(ScriptedModel(words("yes")), clock=ManualClock())).answer is not None


def kinds(kind: type[ModelError] = ModelError) -> list[type[ModelError]]:
    """Every kind of error a model can end with."""
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in kinds(child))]


@each_case("kind", kinds())
def test_every_error_of_a_model_has_its_fix(kind: type[ModelError]) -> None:
    fix, setting = fix_of(kind("x"))
    assert fix.en.isascii()
    assert any("一" <= letter <= "鿿" for letter in fix.zh)
    assert setting in {"", "LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL"}


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
