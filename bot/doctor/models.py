"""The model: it answers, streams, calls a tool; the Coder's, where it is another; and the clock, by its server's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime

import aiohttp

from adapters.openai.client import Timeouts, make_session
from adapters.openai.endpoint import find_proxy, join_url
from bot.doctor.checks import Check, warn, well, wrong
from bot.domain.chat import ModelRequest, ToolSpec, UserMessage
from bot.domain.ports import Clock
from bot.setup.trial import QUESTION, Trial, try_endpoint
from config.settings import Endpoint, Settings

PATIENCE = Timeouts(connect=6.0, first_byte=14.0, idle=14.0, total=14.0)
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

Try = Callable[[ModelRequest], Awaitable[Trial]]


async def check_main_model(settings: Settings, *, clock: Clock) -> list[Check]:
    """Whether the main model answers in words; if so, whether it calls a tool."""
    ask = _asking(settings.main_model, clock)
    answered = _judge_answer("model", settings.main_model, await ask(QUESTION))
    return [answered] if answered.mend else [answered, _judge_call(await ask(TOOL_QUESTION))]


async def check_coder(settings: Settings, *, clock: Clock) -> list[Check]:
    """Whether the Coder's model answers, where it is not the main one."""
    endpoint = settings.coder_endpoint
    if endpoint == settings.main_model:
        return [well("coder", "is the main model")]
    return [_judge_answer("coder", endpoint, await _asking(endpoint, clock)(QUESTION))]


async def check_clock(settings: Settings, *, clock: Clock) -> list[Check]:
    """How far this machine's clock is from the Date that the model's server sends with any answer, a refusal too."""
    url = join_url(settings.main_model.base_url).with_user(None)
    timeout = aiohttp.ClientTimeout(total=HEADERS_WITHIN)
    try:
        async with (
            make_session() as session,
            session.get(url, proxy=find_proxy(url), allow_redirects=False, timeout=timeout) as response,
        ):
            theirs = parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    except (aiohttp.ClientError, OSError):
        return [warn("clock", "could not be compared: the model's server does not answer", "See what `model` says")]
    except ValueError:
        return [well("clock", "the model's server does not say what time it is")]
    skew = clock.now() - theirs
    if abs(skew) <= SKEW:
        return [well("clock", "agrees with the model's server")]
    said = f"is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the model's server"
    return [warn("clock", said, "Let this machine set its clock by NTP, as with `timedatectl set-ntp true`")]


def _asking(endpoint: Endpoint, clock: Clock) -> Try:
    async def ask(request: ModelRequest) -> Trial:
        return await try_endpoint(endpoint, clock=clock, request=request, timeouts=PATIENCE)

    return ask


def _judge_answer(check: str, endpoint: Endpoint, trial: Trial) -> Check:
    if trial.answer is None:
        return wrong(check, f"{endpoint.model} does not answer: {trial.why}", trial.mend)
    first = trial.answer.first_token
    streamed = "in one piece, not streamed" if first is None else f"streamed, first token after {first:.1f} s"
    return well(check, f"{endpoint.model} answers in {trial.seconds:.1f} s, {streamed}")


def _judge_call(trial: Trial) -> Check:
    if trial.answer is None:
        return wrong("model tools", f"a request with a tool fails: {trial.why}", trial.mend)
    if not trial.answer.message.tool_calls:
        return warn("model tools", "the model answered in words instead of calling a tool", "Take one that calls tools")
    return well("model tools", f"calls a tool in {trial.seconds:.1f} s")
