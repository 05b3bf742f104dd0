"""FrostAgent as a library: one place to import from, and `connect`, which makes a model of a url, a
name and a key.

from frostagent import Agent, connect, tool

async with connect("https://api.deepseek.com", "deepseek-chat", api_key) as model:
    reply = await Agent(model=model, tools=[roll_dice]).chat("Roll a dice, please.")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from frostagent.agent import Agent, Builder, ToolLike
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.callbacks import ApprovalHandler, OnToolResult, SendHook, Subscriber
from frostagent.engine.engine import OnLimit
from frostagent.engine.external_tools import class_tool, foreign_tool
from frostagent.engine.toolset import Toolset
from frostagent.models.failover import Failover
from frostagent.models.openai.client import OpenAIModel, make_session
from frostagent.models.openai.deadlines import Timeouts
from frostagent.models.openai.endpoint import EitherUrl
from frostagent.models.upstreams import Upstream
from frostagent.programs import command_tool
from frostagent.reply import (
    MustWait,
    Reply,
    RunFailed,
    StepLimitReached,
    Structured,
    UnfitAnswer,
    Waiting,
)
from frostagent.sessions import InMemory, Memory
from frostagent.testing.scripted_model import ScriptedModel, call
from frostagent.types.errors import (
    BotError,
    ConfigError,
    InvalidArguments,
    ModelError,
    Problem,
    ToolCancelled,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolRateLimited,
    ToolTimeout,
    ToolUnavailable,
)
from frostagent.types.hooks import (
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
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from frostagent.types.ports import Approver, ChatModel, Clock, Ids, Observer
from frostagent.types.results import Image, ToolResult
from frostagent.types.runs import (
    Asker,
    RunContinued,
    RunEvent,
    RunFinished,
    RunPaused,
    RunStarted,
    StepFinished,
    Stop,
    ToolFailure,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
)
from frostagent.types.schema import UnsuitableType
from frostagent.types.suspension import (
    Allow,
    ApprovalRequest,
    BadSuspension,
    Decision,
    Deny,
    Pending,
    Suspend,
)
from frostagent.types.tools import Tool, ToolContext, ToolStatus, tool
from frostagent.types.traits import Audience, Execution, Permission, Rate, SideEffects, ToolType

__all__ = [
    "AfterCall",
    "Agent",
    "Allow",
    "ApprovalHandler",
    "ApprovalRequest",
    "Approver",
    "Asker",
    "AssistantMessage",
    "Audience",
    "BadSuspension",
    "BeforeCall",
    "Block",
    "BotError",
    "Builder",
    "Change",
    "ChatModel",
    "Clock",
    "Completion",
    "ConfigError",
    "Decision",
    "Deny",
    "Execution",
    "FinishReason",
    "Hooks",
    "Ids",
    "Image",
    "InMemory",
    "InvalidArguments",
    "Memory",
    "Message",
    "ModelError",
    "ModelRequest",
    "MustWait",
    "Observer",
    "OnLimit",
    "OnToolResult",
    "Pending",
    "Permission",
    "Problem",
    "Rate",
    "Reply",
    "RequestEvent",
    "Reshape",
    "Rewrite",
    "RunContinued",
    "RunEvent",
    "RunFailed",
    "RunFinished",
    "RunPaused",
    "RunStarted",
    "ScriptedModel",
    "SendHook",
    "SideEffects",
    "StepEvent",
    "StepFinished",
    "StepLimitReached",
    "Stop",
    "StopRun",
    "Structured",
    "Subscriber",
    "Suspend",
    "SystemClock",
    "SystemMessage",
    "Timeouts",
    "Tool",
    "ToolCall",
    "ToolCancelled",
    "ToolContext",
    "ToolDenied",
    "ToolError",
    "ToolFailed",
    "ToolFailure",
    "ToolFinished",
    "ToolLike",
    "ToolMessage",
    "ToolNotFound",
    "ToolProgressed",
    "ToolRateLimited",
    "ToolResult",
    "ToolSpec",
    "ToolStarted",
    "ToolStatus",
    "ToolTimeout",
    "ToolType",
    "ToolUnavailable",
    "Toolset",
    "UnfitAnswer",
    "UnsuitableType",
    "Usage",
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
    base_url: str,
    model: str,
    api_key: str = "",
    *,
    dialect: str = "",
    timeouts: Timeouts | None = None,
) -> AsyncIterator[ChatModel]:
    """A model behind any OpenAI-compatible API, while the block runs; busy servers are asked again.

    `base_url` as the vendor gives it, with or without /v1: where nothing is there, the other is
    tried. `api_key` may be empty for a local server; `dialect` is found by itself if empty
    (docs/models.md). Raises ConfigError where the url is none.
    """
    async with make_session() as session:
        make = partial(
            OpenAIModel,
            session=session,
            api_key=api_key,
            model=model,
            dialect=dialect,
            timeouts=timeouts,
        )
        try:
            client = EitherUrl(lambda url: make(base_url=url), base_url)
        except ValueError as error:
            raise ConfigError(
                Problem("connect", str(error), "Give the base url as the vendor writes it.")
            ) from None
        yield Failover([Upstream(client)], clock=SystemClock(), ids=RandomIds())
