"""One small request, to find out whether the model answers; where it does not, what to do about
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adapters.openai.client import OpenAIModel, list_models, make_session
from adapters.openai.deadlines import Timeouts
from bot.domain.errors import (
    ContentFiltered,
    ImagesUnsupported,
    ModelAuth,
    ModelBilling,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRateLimited,
    ModelTransport,
    ToolsUnsupported,
)
from bot.domain.model_messages import Completion, ModelRequest, UserMessage
from bot.domain.ports import ChatModel, Clock
from config.endpoints import Endpoint

QUESTION = ModelRequest((UserMessage("Answer with one word: are you there?"),))
PATIENCE = Timeouts(connect=10.0, first_token=60.0, idle=30.0, total=90.0)
"""Seconds; a local server may load its model first."""

LISTED_WITHIN = 8.0  # seconds; who waits longer can type the name meanwhile

NO_EYES = "Name a model that sees in LLM_VISION_MODEL, one at the same base url"
VERSIONED = re.compile(r"/v\d+\w*(/|$)|/openai(/|$)")
"""A base url that ends as they are documented: https://host/v1, .../api/paas/v4,
.../v1beta/openai.
"""


@dataclass(frozen=True, slots=True)
class Mend:
    """Advice to the operator, in English and Chinese, and the setting to change, empty where it is
    none.
    """

    en: str
    zh: str
    setting: str = ""


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """How it went: `seconds` it took, and the answer; or in words why not and what to do."""

    ok: bool
    seconds: float
    why: str = ""
    mend: Mend = Mend("", "")
    answer: Completion | None = None


async def models_at(endpoint: Endpoint) -> tuple[str, ...]:
    """The names of the models that the service of an endpoint lists, also if /v1 is missing in its
    base url; none if it lists none.
    """
    async with make_session() as session:
        for url in filter(None, (endpoint.base_url, with_version(endpoint.base_url))):
            if found := await list_models(
                session, base_url=url, api_key=endpoint.keys[0], seconds=LISTED_WITHIN
            ):
                return found
    return ()


async def try_endpoint(
    endpoint: Endpoint,
    *,
    clock: Clock,
    request: ModelRequest = QUESTION,
    timeouts: Timeouts = PATIENCE,
) -> ModelTrial:
    """Ask the model behind an endpoint something small, by its first key."""
    async with make_session() as session:
        model = OpenAIModel(
            session=session,
            base_url=endpoint.base_url,
            api_key=endpoint.keys[0],
            model=endpoint.model,
            dialect=endpoint.dialect,
            timeouts=timeouts,
            now=clock.now,
        )
        return await try_model(model, clock=clock, request=request)


async def try_model(
    model: ChatModel, *, clock: Clock, request: ModelRequest = QUESTION
) -> ModelTrial:
    """Ask a model something small."""
    begun = clock.monotonic()
    try:
        answer = await model.complete(request)
    except ModelError as error:
        return ModelTrial(False, clock.monotonic() - begun, str(error), mend_of(error))
    return ModelTrial(True, clock.monotonic() - begun, answer=answer)


def with_version(base_url: str) -> str:
    """The base url with the /v1 that most services want and many people leave out; empty where it
    has its version.
    """
    return "" if VERSIONED.search(base_url) else f"{base_url.rstrip('/')}/v1"


def mend_of(error: ModelError) -> Mend:
    """The advice for an error of the model."""
    match error:
        case ModelAuth():
            return Mend(
                "Copy the key once more, and see that it belongs to this service",
                "请重新复制密钥，并确认它属于这家服务",
                "LLM_API_KEY",
            )
        case ModelBilling():
            return Mend(
                "Top up the account, or take a model it may use",
                "请给账号充值，或换一个可用的模型",
                "LLM_MODEL",
            )
        case ModelNotFound():
            return Mend(
                (
                    "Take the name of the model from the service's list, and see that the base url "
                    "ends as documented"
                ),
                "请按服务的模型列表填写名称，并核对接口地址的结尾（多为 /v1）",
                "LLM_MODEL",
            )
        case ModelRateLimited() | ModelOverloaded():
            return Mend("The service is busy: try again in a minute", "服务正忙，请过一分钟再试")
        case ModelTransport():
            return Mend(
                "See that the base url is right and can be reached from here",
                "请确认接口地址无误，并且本机能访问",
                "LLM_BASE_URL",
            )
        case ImagesUnsupported():
            return Mend(NO_EYES, "请在 LLM_VISION_MODEL 里填写同一地址下能看图的模型", "LLM_MODEL")
        case ToolsUnsupported():
            return Mend(
                "Take a model that can call tools", "请换一个支持工具调用的模型", "LLM_MODEL"
            )
        case ContentFiltered():
            return Mend(
                (
                    "The service refuses even a harmless question: ask its support, or take "
                    "another model"
                ),
                "连普通问题都被拒绝，请联系服务商或换一个模型",
                "LLM_MODEL",
            )
        case _:
            return Mend("See what the service's documentation says to this", "请查阅服务的文档")
