"""One small request, to find out whether the model answers; where it does not, what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.openai.client import OpenAIModel, Timeouts, make_session
from bot.domain.chat import Completion, ModelRequest, UserMessage
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
from bot.domain.ports import ChatModel, Clock
from config.endpoints import Endpoint

QUESTION = ModelRequest((UserMessage("Answer with one word: are you there?"),))
PATIENCE = Timeouts(connect=10.0, first_byte=60.0, idle=30.0, total=90.0)
"""Seconds; a local server may load its model first."""

NO_EYES = "Name a model that sees in LLM_VISION_MODEL, one at the same base url"


@dataclass(frozen=True, slots=True)
class Trial:
    """How it went: `seconds` it took, and the answer; or in words why not and what to do."""

    ok: bool
    seconds: float
    why: str = ""
    mend: str = ""
    answer: Completion | None = None


async def try_endpoint(
    endpoint: Endpoint, *, clock: Clock, request: ModelRequest = QUESTION, timeouts: Timeouts = PATIENCE
) -> Trial:
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


async def try_model(model: ChatModel, *, clock: Clock, request: ModelRequest = QUESTION) -> Trial:
    """Ask a model something small."""
    begun = clock.monotonic()
    try:
        answer = await model.complete(request)
    except ModelError as error:
        return Trial(False, clock.monotonic() - begun, str(error), mend_of(error))
    return Trial(True, clock.monotonic() - begun, answer=answer)


def mend_of(error: ModelError) -> str:
    """What the operator can do about an error of the model."""
    match error:
        case ModelAuth():
            return "Copy the key once more, and see that it belongs to this service"
        case ModelBilling():
            return "Top up the account, or take a model it may use"
        case ModelNotFound():
            return "Take the name of the model from the service's list, and see that the base url ends as documented"
        case ModelRateLimited() | ModelOverloaded():
            return "The service is busy: try again in a minute"
        case ModelTransport():
            return "See that the base url is right and can be reached from here"
        case ImagesUnsupported():
            return NO_EYES
        case ToolsUnsupported():
            return "Take a model that can call tools"
        case ContentFiltered():
            return "The service refuses even a harmless question: ask its support, or take another model"
        case _:
            return "See what the service's documentation says to this"
