"""The parts of a step besides its calls: the request, the hooks around it, the words for people."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from bot.domain.cancellation import BROKEN, isolate
from bot.domain.chat import Completion, FinishReason, ModelRequest, UserMessage, joined
from bot.domain.hooks import (
    Hooks,
    MaybeAwaitable,
    Metadata,
    RequestEvent,
    Reshape,
    StepEvent,
    StopRun,
)
from bot.domain.ports import ChatModel
from bot.engine.letting_go import settled
from bot.policy.tokens import estimate, estimate_message

logger = logging.getLogger(__name__)

CUT_OFF = "…"

Event = TypeVar("Event")
Answer = TypeVar("Answer")


def words_of(completion: Completion) -> str:
    """The model's words for people: its text, or its refusal; marked where the output limit cut it
    off.
    """
    text = (completion.message.text or completion.refusal).strip()
    return text + CUT_OFF if text and completion.finish is FinishReason.LENGTH else text


def tokens_of(request: ModelRequest, completion: Completion) -> float:
    """The tokens of a request and its answer; estimated where the vendor does not say."""
    if usage := completion.usage:
        return usage.prompt + usage.completion
    return estimate(request) + estimate_message(completion.message)


def drain(queue: deque[UserMessage]) -> UserMessage | None:
    """All that waits in the queue as one message, since two in a row are one to most models; None
    if nothing does.
    """
    if not queue:
        return None
    return joined([queue.popleft() for _ in range(len(queue))])


async def ask_before_request(
    hooks: Sequence[Hooks], request: ModelRequest, model: ChatModel, metadata: Metadata
) -> tuple[ModelRequest, ChatModel]:
    """The request and the model as the hooks want them, each seeing what those before it made of
    them.
    """
    for hook in hooks:
        if hook.before_request is None:
            continue
        event = RequestEvent(messages=request.messages, model=model, metadata=metadata)
        answer = await consult(hook.before_request, event)
        if isinstance(answer, Reshape):
            request = (
                request if answer.messages is None else replace(request, messages=answer.messages)
            )
            model = answer.model or model
    return request, model


async def ask_after_step(hooks: Sequence[Hooks], event: StepEvent) -> StopRun | None:
    """All hooks are asked; the first that wants the run to end is heard."""
    answers = [
        await consult(hook.after_step, event) for hook in hooks if hook.after_step is not None
    ]
    return next((answer for answer in answers if isinstance(answer, StopRun)), None)


async def consult(
    hook: Callable[[Event], MaybeAwaitable[Answer | None]], event: Event
) -> Answer | None:
    """The hook's answer; None where it breaks, since a run is never broken by one."""
    try:
        return await settled(hook(event), name=f"a hook on {type(event).__name__}")
    except BROKEN as broken:
        isolate(broken)
        logger.exception("a hook broke on %s", type(event).__name__)
        return None
