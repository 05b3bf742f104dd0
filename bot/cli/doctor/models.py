"""The models: the main one answers, streams, calls a tool; the Coder's, where it is another;
whether pictures are seen; and the clock, by that of the main one's server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from email.utils import parsedate_to_datetime

import aiohttp
from yarl import URL

from adapters.openai.client import make_session
from adapters.openai.deadlines import Timeouts
from adapters.openai.endpoint import find_proxy, join_url
from bot.cli.doctor.checks import Check, warn, well, wrong
from bot.cli.doctor.chinese import sentence, translate_error, translate_mend
from bot.cli.setup.trial import NO_EYES, QUESTION, ModelTrial, try_endpoint
from bot.domain.model_messages import ModelRequest, ToolSpec, Usage, UserMessage
from bot.domain.ports import Clock
from bot.policy.prices import read_known
from config.endpoints import Endpoint
from config.settings import Settings

PATIENCE = Timeouts(connect=6.0, first_token=14.0, idle=14.0, total=14.0)
"""Seconds of one request."""

HEADERS_WITHIN = 8.0  # seconds
SKEW = 60.0  # seconds; vendors and certificates take more, QQ and people do not

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
"""64 x 64 dots, PNG: some services refuse smaller pictures."""

PICTURE_QUESTION = ModelRequest(
    (UserMessage("What colour is this picture? Answer with one word.", images=(RED_SQUARE,)),),
)
RED = ("red", "红", "紅", "crimson", "scarlet")

Try = Callable[[ModelRequest], Coroutine[None, None, ModelTrial]]
Charge = Callable[[Endpoint, Usage], None]
"""Is told what a request took."""


def free(_endpoint: Endpoint, _usage: Usage) -> None:
    """Nobody counts what requests take."""


async def check_main_model(
    settings: Settings, *, clock: Clock, charge: Charge = free
) -> list[Check]:
    """Whether the main model answers in words; if so, whether it calls a tool."""
    ask = _asking(settings.main_model, clock, charge)
    answered = _judge_answer("model", settings.main_model, await ask(QUESTION))
    return [answered] if answered.mend else [answered, _judge_call(await ask(TOOL_QUESTION))]


async def check_coder(settings: Settings, *, clock: Clock, charge: Charge = free) -> list[Check]:
    """Whether the Coder's model answers, where it is not the main one."""
    endpoint = settings.coder_endpoint
    if endpoint == settings.main_model:
        return [well("coder", "is the main model")]
    trial = await _asking(endpoint, clock, charge)(QUESTION)
    return [_judge_answer("coder", endpoint, trial)]


async def check_fallbacks(
    settings: Settings, *, clock: Clock, charge: Charge = free
) -> list[Check]:
    """Whether those that stand in for the main model answer, by their first keys; asked side by
    side.
    """
    async with asyncio.TaskGroup() as group:
        asked = [
            (one, group.create_task(_asking(one, clock, charge)(QUESTION)))
            for one in settings.main_models[1:]
        ]
    return [_judge_fallback(one, task.result()) for one, task in asked]


async def check_vision(settings: Settings, *, clock: Clock, charge: Charge = free) -> list[Check]:
    """Whether the model that is shown pictures sees one; nothing to say where none is shown any."""
    if not (settings.llm_vision_model or read_known(settings.llm_prices).sees(settings.llm_model)):
        return []
    endpoint = (*settings.vision_models, settings.main_model)[0]
    trial = await _asking(endpoint, clock, charge)(PICTURE_QUESTION)
    return [_judge_sight(endpoint, trial)]


async def check_clock(settings: Settings, *, clock: Clock) -> list[Check]:
    """How far this machine's clock is from the Date that the model's server sends with any answer,
    a refusal too.
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
            warn(
                "clock",
                "could not be compared: the model's server does not answer",
                "See what `model` says",
            )
        ]
    except ValueError:
        return [well("clock", "the model's server does not say what time it is")]
    skew = clock.now() - theirs
    if abs(skew) <= SKEW:
        return [well("clock", "agrees with the model's server")]
    said = sentence(
        "is {} s ahead of the model's server" if skew > 0 else "is {} s behind the model's server",
        f"{abs(skew):.0f}",
    )
    return [
        warn(
            "clock",
            said,
            "Let this machine set its clock by NTP, as with `timedatectl set-ntp true`",
        )
    ]


def _asking(endpoint: Endpoint, clock: Clock, charge: Charge) -> Try:
    async def ask(request: ModelRequest) -> ModelTrial:
        trial = await try_endpoint(endpoint, clock=clock, request=request, timeouts=PATIENCE)
        if trial.answer is not None and trial.answer.usage is not None:
            charge(endpoint, trial.answer.usage)
        return trial

    return ask


def _judge_answer(check: str, endpoint: Endpoint, trial: ModelTrial) -> Check:
    if trial.answer is None:
        return wrong(
            check,
            sentence("{} does not answer: {}", endpoint.model, translate_error(trial.why)),
            translate_mend(trial.mend),
        )
    first, taken = trial.answer.first_token, f"{trial.seconds:.1f}"
    said = (
        sentence("{} answers in {} s, in one piece, not streamed", endpoint.model, taken)
        if first is None
        else sentence(
            "{} answers in {} s, streamed, first token after {} s",
            endpoint.model,
            taken,
            f"{first:.1f}",
        )
    )
    if proxy := find_proxy(join_url(endpoint.base_url)):
        said = sentence("{}, through the proxy {}", said, URL(proxy).with_user(None).origin())
    return well(check, said)


def _judge_fallback(endpoint: Endpoint, trial: ModelTrial) -> Check:
    """The bot can do without it, so it is no more than a warning."""
    if trial.answer is None:
        return warn(
            "fallback",
            sentence("{} does not answer: {}", endpoint.model, translate_error(trial.why)),
            translate_mend(trial.mend),
        )
    return _judge_answer("fallback", endpoint, trial)


def _judge_sight(endpoint: Endpoint, trial: ModelTrial) -> Check:
    """The bot can do without: it answers as if it had not been shown the picture."""
    if trial.answer is None:
        return warn(
            "vision",
            sentence("{} cannot be shown pictures: {}", endpoint.model, translate_error(trial.why)),
            translate_mend(trial.mend),
        )
    said = trial.answer.message.text.strip()
    if not any(word in said.lower() for word in RED):
        return warn(
            "vision",
            sentence("{} was shown a red picture and says: {}", endpoint.model, f"{said[:60]!r}"),
            NO_EYES,
        )
    return well(
        "vision", sentence("{} sees pictures, in {} s", endpoint.model, f"{trial.seconds:.1f}")
    )


def _judge_call(trial: ModelTrial) -> Check:
    if trial.answer is None:
        return wrong(
            "model tools",
            sentence("a request with a tool fails: {}", translate_error(trial.why)),
            translate_mend(trial.mend),
        )
    if not trial.answer.message.tool_calls:
        return warn(
            "model tools",
            "the model answered in words instead of calling a tool",
            "Take one that calls tools",
        )
    return well("model tools", sentence("calls a tool in {} s", f"{trial.seconds:.1f}"))
