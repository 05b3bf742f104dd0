"""Checks of the models, for `doctor` and `setup`: whether the main one answers, streams and calls a
tool; the Coder's, if it is another; vision; and the clock, compared with the main model's server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
from yarl import URL

from bot.cli.checks import NOTHING, Check, Outcome, failure, ok, warning
from bot.core.language import CATALOGUE, Bilingual, Phrase, bilingual, text_of
from config.endpoints import Endpoint
from config.settings import Settings
from frostagent.models.openai.client import OpenAIModel, Timeouts, list_models, make_session
from frostagent.models.openai.endpoint import find_proxy, join_url
from frostagent.models.prices import read_known
from frostagent.types.errors import (
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
from frostagent.types.messages import Completion, ModelRequest, ToolSpec, Usage, UserMessage
from frostagent.types.ports import ChatModel, Clock

QUESTION = ModelRequest((UserMessage("Answer with one word: are you there?"),))
LOADING = Timeouts(connect=10.0, first_token=60.0, idle=30.0, total=90.0)
"""Seconds for one request of `setup`; a local server may have to load its model first."""

LOADED = Timeouts(connect=6.0, first_token=14.0, idle=14.0, total=14.0)
"""Seconds for one request of `doctor`."""

LISTED_WITHIN = 8.0  # seconds; a person can type the name instead of waiting longer
HEADERS_WITHIN = 8.0  # seconds
SKEW = 60.0  # seconds; vendors and certificates tolerate more, QQ and people do not

VERSIONED = re.compile(r"/v\d+\w*(/|$)|/openai(/|$)")
"""A base URL with a documented ending: https://host/v1, .../api/paas/v4, .../v1beta/openai."""


# --- one small request ----------------------------------------------------------------------------


TOOK: Final = Phrase("{seconds} 秒", "{seconds} s")
COPY_KEY: Final = Phrase(
    "请重新复制密钥，并确认它属于这家服务",
    "Copy the key again, and check that it belongs to this service",
)
TOP_UP: Final = Phrase(
    "请给账号充值，或换一个可用的模型", "Top up the account, or choose a model it may use"
)
TAKE_LISTED_NAME: Final = Phrase(
    "请按服务的模型列表填写名称，并核对接口地址的结尾（多为 /v1）",
    "Take the model's name from the service's list, and check that the base URL ends as documented",
)
TRY_LATER: Final = Phrase("服务正忙，请过一分钟再试", "The service is busy: try again in a minute")
CHECK_BASE_URL: Final = Phrase(
    "请确认接口地址无误，并且本机能访问",
    "Check that the base URL is right and can be reached from here",
)
NAME_VISION_MODEL: Final = Phrase(
    "请在 LLM_VISION_MODEL 里填写同一地址下能看图的模型",
    "Name a model with vision in LLM_VISION_MODEL, at the same base URL",
)
TAKE_TOOL_MODEL: Final = Phrase("请换一个支持工具调用的模型", "Choose a model that can call tools")
ASK_SUPPORT: Final = Phrase(
    "连普通问题都被拒绝，请联系服务商或换一个模型",
    "The service refuses even a harmless question: ask its support, or choose another model",
)
READ_DOCUMENTATION: Final = Phrase("请查阅服务的文档", "See the service's documentation on this")
IS_MAIN_MODEL: Final = Phrase("就是主模型", "is the main model")
NOT_COMPARED: Final = Phrase(
    "没法对时：模型的服务器没有答复", "could not be compared: the model's server does not answer"
)
SEE_MODEL: Final = Phrase("看“模型”那一行", "See the result of `model`")
NO_TIME: Final = Phrase(
    "模型的服务器没有说现在几点", "the model's server does not say what time it is"
)
CLOCKS_AGREE: Final = Phrase("和模型的服务器一致", "agrees with the model's server")
CLOCK_AHEAD: Final = Phrase(
    "比模型的服务器快 {seconds} 秒", "is {seconds} s ahead of the model's server"
)
CLOCK_BEHIND: Final = Phrase(
    "比模型的服务器慢 {seconds} 秒", "is {seconds} s behind the model's server"
)
SET_CLOCK: Final = Phrase(
    "让这台机器用 NTP 自动对时，比如 `timedatectl set-ntp true`",
    "Let this machine set its clock by NTP, as with `timedatectl set-ntp true`",
)
CANNOT_SEE: Final = Phrase(
    "不能给 {model} 看图片：{why}", "{model} does not accept pictures: {why}"
)
SAW_NOT_RED: Final = Phrase(
    "给 {model} 看一张红色的图，它说：{said}", "{model} was shown a red picture and said: {said}"
)
SEES_PICTURES: Final = Phrase(
    "{model} 能看图片，用了 {seconds} 秒", "{model} sees pictures, in {seconds} s"
)
TOOL_REQUEST_FAILS: Final = Phrase(
    "带工具的请求失败了：{why}", "a request with a tool fails: {why}"
)
NO_TOOL_CALL: Final = Phrase(
    "模型没有调用工具，而是直接说话", "the model answered in words instead of calling a tool"
)
TAKE_ONE_WITH_TOOLS: Final = Phrase("换一个会调用工具的模型", "Choose one that calls tools")
CALLS_TOOL: Final = Phrase("会调用工具，用了 {seconds} 秒", "calls a tool in {seconds} s")


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """One small request: its duration in seconds, and the answer or the error."""

    seconds: float
    answer: Completion | None = None
    error: ModelError | None = None

    @property
    def why(self) -> Bilingual:
        """Why there is no answer; empty if there is one."""
        return NOTHING if self.error is None else text_of(self.error)

    @property
    def fix(self) -> Bilingual:
        """How to fix that; empty if there is an answer."""
        return NOTHING if self.error is None else bilingual(fix_of(self.error)[0])


async def models_at(endpoint: Endpoint) -> tuple[str, ...]:
    """The models that an endpoint's service lists, even if its base URL lacks /v1; empty if it
    lists none.
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
    timeouts: Timeouts = LOADING,
) -> ModelTrial:
    """Send a small request to the model of an endpoint, with its first key."""
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
    """Send a small request to a model."""
    begun = clock.monotonic()
    try:
        answer = await model.complete(request)
    except ModelError as error:
        return ModelTrial(clock.monotonic() - begun, error=error)
    return ModelTrial(clock.monotonic() - begun, answer)


async def check_endpoint(endpoint: Endpoint, *, clock: Clock) -> Check:
    """Whether an endpoint's model answers. For `setup`, which names the model itself."""
    return check_trial(await try_endpoint(endpoint, clock=clock))


def check_trial(trial: ModelTrial) -> Check:
    """The duration of the answer; or why there is none, and which setting to change."""
    if trial.error is None:
        return ok("model", TOOK, seconds=f"{trial.seconds:.1f}")
    return replace(failure("model", trial.why, trial.fix), setting=fix_of(trial.error)[1])


def with_version(base_url: str) -> str:
    """The base URL with /v1, which most services need and many people leave out; empty if the URL
    already has a version.
    """
    return "" if VERSIONED.search(base_url) else f"{base_url.rstrip('/')}/v1"


def fix_of(error: ModelError) -> tuple[Phrase, str]:
    """How to fix an error of the model, and the setting to change, empty if none."""
    match error:
        case ModelAuth():
            fix = COPY_KEY
            return fix, "LLM_API_KEY"
        case ModelBilling():
            fix = TOP_UP
            return fix, "LLM_MODEL"
        case ModelNotFound():
            fix = TAKE_LISTED_NAME
            return fix, "LLM_MODEL"
        case ModelRateLimited() | ModelOverloaded():
            return TRY_LATER, ""
        case ModelTransport():
            fix = CHECK_BASE_URL
            return fix, "LLM_BASE_URL"
        case ImagesUnsupported():
            fix = NAME_VISION_MODEL
            return fix, "LLM_MODEL"
        case ToolsUnsupported():
            return TAKE_TOOL_MODEL, "LLM_MODEL"
        case ContentFiltered():
            fix = ASK_SUPPORT
            return fix, "LLM_MODEL"
        case _:
            return READ_DOCUMENTATION, ""


# --- the checks of the doctor ---------------------------------------------------------------------


NO_ANSWER: Final = Phrase("{model} 没有答复：{why}", "{model} does not answer: {why}")
NAME_ONE_THAT_SEES: Final = Phrase(
    "在 LLM_VISION_MODEL 里写一个能看图、接口地址相同的模型",
    "Name a model with vision in LLM_VISION_MODEL, at the same base URL",
)
IN_ONE_PIECE: Final = Phrase(
    "{model} 用 {seconds} 秒答复，一次发完，不是流式",
    "{model} answers in {seconds} s, in one piece, not streamed",
)
STREAMED: Final = Phrase(
    "{model} 用 {seconds} 秒答复，流式，首个 token 等了 {first} 秒",
    "{model} answers in {seconds} s, streamed, first token after {first} s",
)
THROUGH_PROXY: Final = Phrase("{said}，经过代理 {proxy}", "{said}, through the proxy {proxy}")
CATALOGUE.register(__name__, globals())
TOOL_QUESTION = ModelRequest(
    (UserMessage("What is the weather in Beijing? Call the tool."),),
    (
        ToolSpec(
            "get_weather",
            "The weather of a city",
            {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "The city"}},
                "required": ["city"],
            },
        ),
    ),
)

RED_SQUARE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQMAAACQp+OdAAAABlBMVEXcFB7cFB61D1IXAAAAD0lEQVR42mNg"
    "GAWjgHwAAAJAAAHgTR1EAAAAAElFTkSuQmCC"
)
"""PNG, 64 x 64 pixels: some services refuse smaller pictures."""

PICTURE_QUESTION = ModelRequest(
    (UserMessage("What colour is this picture? Answer with one word.", images=(RED_SQUARE,)),),
)
RED = ("red", "红", "紅", "crimson", "scarlet")

Try = Callable[[ModelRequest], Coroutine[None, None, ModelTrial]]
Charge = Callable[[Endpoint, Usage], None]
"""Receives the usage of a request."""


def free(_endpoint: Endpoint, _usage: Usage) -> None:
    """Ignores the usage."""


async def check_main_model(
    settings: Settings, *, clock: Clock, charge: Charge = free
) -> list[Check]:
    """Whether the main model answers and, if so, whether it calls a tool."""
    ask = _asking(settings.main_model, clock, charge)
    answered = _judge_answer("model", settings.main_model, await ask(QUESTION))
    return [answered] if answered.fix else [answered, _judge_call(await ask(TOOL_QUESTION))]


async def check_coder(settings: Settings, *, clock: Clock, charge: Charge = free) -> list[Check]:
    """Whether the Coder's model answers, if it is not the main one."""
    endpoint = settings.coder_endpoint
    if endpoint == settings.main_model:
        return [ok("coder", IS_MAIN_MODEL)]
    trial = await _asking(endpoint, clock, charge)(QUESTION)
    return [_judge_answer("coder", endpoint, trial)]


async def check_fallbacks(
    settings: Settings, *, clock: Clock, charge: Charge = free
) -> list[Check]:
    """Whether each fallback model answers, with its first key; asked concurrently."""
    async with asyncio.TaskGroup() as group:
        asked = [
            (one, group.create_task(_asking(one, clock, charge)(QUESTION)))
            for one in settings.main_models[1:]
        ]
    return [_judge_fallback(one, task.result()) for one, task in asked]


async def check_vision(settings: Settings, *, clock: Clock, charge: Charge = free) -> list[Check]:
    """Whether the model for pictures sees one; no check if there is no such model."""
    if not (settings.llm_vision_model or read_known(settings.llm_prices).sees(settings.llm_model)):
        return []
    endpoint = (*settings.vision_models, settings.main_model)[0]
    trial = await _asking(endpoint, clock, charge)(PICTURE_QUESTION)
    return [_judge_sight(endpoint, trial)]


async def check_clock(settings: Settings, *, clock: Clock) -> list[Check]:
    """The difference between this machine's clock and the Date header that the model's server sends
    with any response, even a refusal.
    """
    url = join_url(settings.main_model.base_url).with_user(None)
    timeout = aiohttp.ClientTimeout(total=HEADERS_WITHIN)
    try:
        async with (
            make_session() as session,
            session.get(
                url, proxy=find_proxy(url), allow_redirects=False, timeout=timeout
            ) as response,
        ):
            theirs = parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    except (aiohttp.ClientError, OSError):
        return [
            warning(
                "clock",
                NOT_COMPARED,
                SEE_MODEL,
            )
        ]
    except ValueError:
        return [
            ok(
                "clock",
                NO_TIME,
            )
        ]
    skew = clock.now() - theirs
    if abs(skew) <= SKEW:
        return [ok("clock", CLOCKS_AGREE)]
    return [
        warning(
            "clock",
            CLOCK_AHEAD if skew > 0 else CLOCK_BEHIND,
            SET_CLOCK,
            seconds=f"{abs(skew):.0f}",
        )
    ]


def _asking(endpoint: Endpoint, clock: Clock, charge: Charge) -> Try:
    async def ask(request: ModelRequest) -> ModelTrial:
        trial = await try_endpoint(endpoint, clock=clock, request=request, timeouts=LOADED)
        if trial.answer is not None and trial.answer.usage is not None:
            charge(endpoint, trial.answer.usage)
        return trial

    return ask


def _judge_answer(check: str, endpoint: Endpoint, trial: ModelTrial) -> Check:
    if trial.answer is None:
        return failure(
            check,
            NO_ANSWER,
            trial.fix,
            model=endpoint.model,
            why=trial.why,
        )
    first, taken = trial.answer.first_token, f"{trial.seconds:.1f}"
    if first is None:
        said = IN_ONE_PIECE.fill(model=endpoint.model, seconds=taken)
    else:
        said = STREAMED.fill(model=endpoint.model, seconds=taken, first=f"{first:.1f}")
    if proxy := find_proxy(join_url(endpoint.base_url)):
        said = THROUGH_PROXY.fill(said=said, proxy=URL(proxy).with_user(None).origin())
    return ok(check, said)


def _judge_fallback(endpoint: Endpoint, trial: ModelTrial) -> Check:
    """The check as a warning at most, since the bot works without it."""
    check = _judge_answer("fallback", endpoint, trial)
    return replace(check, outcome=Outcome.WARNING) if trial.answer is None else check


def _judge_sight(endpoint: Endpoint, trial: ModelTrial) -> Check:
    """A warning: the bot then answers as if there were no picture."""
    if trial.answer is None:
        return warning(
            "vision",
            CANNOT_SEE,
            trial.fix,
            model=endpoint.model,
            why=trial.why,
        )
    said = trial.answer.message.text.strip()
    if not any(word in said.lower() for word in RED):
        return warning(
            "vision",
            SAW_NOT_RED,
            NAME_ONE_THAT_SEES,
            model=endpoint.model,
            said=f"{said[:60]!r}",
        )
    return ok(
        "vision",
        SEES_PICTURES,
        model=endpoint.model,
        seconds=f"{trial.seconds:.1f}",
    )


def _judge_call(trial: ModelTrial) -> Check:
    if trial.answer is None:
        return failure(
            "model tools",
            TOOL_REQUEST_FAILS,
            trial.fix,
            why=trial.why,
        )
    if not trial.answer.message.tool_calls:
        return warning(
            "model tools",
            NO_TOOL_CALL,
            TAKE_ONE_WITH_TOOLS,
        )
    return ok(
        "model tools",
        CALLS_TOOL,
        seconds=f"{trial.seconds:.1f}",
    )
