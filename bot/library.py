"""FrostAgent as a library: one place to import from, and `connect`, which makes a model of a url, a name and a key.

from bot.library import Agent, connect, tool

async with connect("https://api.deepseek.com", "deepseek-chat", api_key) as model:
    reply = await Agent(model=model, tools=[roll_dice]).chat("Roll a dice, please.")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapters.openai.client import OpenAIModel, Timeouts, make_session
from bot.agent import Agent, Builder
from bot.clock import RandomIds, SystemClock
from bot.domain.chat import UserMessage
from bot.domain.errors import BotError, ConfigError, ModelError, Problem, ToolError, ToolFailed
from bot.domain.foreign import class_tool, foreign_tool
from bot.domain.hooks import (
    AfterCall,
    BeforeCall,
    Block,
    Change,
    Hooks,
    RequestEvent,
    Reshape,
    Rewrite,
    StepEvent,
    StopRun,
)
from bot.domain.ports import ChatModel
from bot.domain.result import Image, ToolResult
from bot.domain.run import Asker, RunEvent, Stop
from bot.domain.suspension import Allow, ApprovalRequest, Deny, Pending
from bot.domain.tool import Tool, ToolContext, tool
from bot.domain.traits import Audience, Permission, Rate, SideEffects, ToolType
from bot.memory import InMemory, Memory
from bot.models import Failover
from bot.programs import command_tool
from bot.reply import MustWait, Reply, RunFailed, StepLimitReached, Structured, UnfitAnswer, Waiting
from bot.scripted import ScriptedModel, call
from bot.toolset import Toolset
from bot.upstreams import Upstream

__all__ = [
    "AfterCall",
    "Agent",
    "Allow",
    "ApprovalRequest",
    "Asker",
    "Audience",
    "BeforeCall",
    "Block",
    "BotError",
    "Builder",
    "Change",
    "ChatModel",
    "ConfigError",
    "Deny",
    "Hooks",
    "Image",
    "InMemory",
    "Memory",
    "ModelError",
    "MustWait",
    "Pending",
    "Permission",
    "Rate",
    "Reply",
    "RequestEvent",
    "Reshape",
    "Rewrite",
    "RunEvent",
    "RunFailed",
    "ScriptedModel",
    "SideEffects",
    "StepEvent",
    "StepLimitReached",
    "Stop",
    "StopRun",
    "Structured",
    "SystemClock",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolFailed",
    "ToolResult",
    "ToolType",
    "Toolset",
    "UnfitAnswer",
    "UserMessage",
    "Waiting",
    "call",
    "class_tool",
    "command_tool",
    "connect",
    "foreign_tool",
    "tool",
]


@asynccontextmanager
async def connect(
    base_url: str, model: str, api_key: str = "", *, dialect: str = "", timeouts: Timeouts | None = None
) -> AsyncIterator[ChatModel]:
    """A model behind any OpenAI-compatible API, while the block runs; busy servers are asked again.

    `base_url` as the vendor gives it, with or without /v1; `api_key` may be empty for a local server; `dialect` is
    found by itself if empty (docs/models.md). Raises ConfigError where the url is none.
    """
    async with make_session() as session:
        try:
            client = OpenAIModel(
                session=session, base_url=base_url, api_key=api_key, model=model, dialect=dialect, timeouts=timeouts
            )
        except ValueError as error:
            raise ConfigError(Problem("connect", str(error), "Give the base url as the vendor writes it.")) from None
        yield Failover([Upstream(client)], clock=SystemClock(), ids=RandomIds())
