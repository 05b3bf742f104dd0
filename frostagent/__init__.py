"""FrostAgent as a library: agents, tools, hooks, approvals, models behind OpenAI-compatible APIs.

from frostagent import Agent, connect, tool

async with connect("https://api.deepseek.com", "deepseek-chat", api_key) as model:
    reply = await Agent(model=model, tools=[roll_dice]).chat("Roll a dice, please.")

A name is imported when it is first asked for: who only needs `tool` does not load the HTTP client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frostagent.agent import Agent, Builder, RunOptions, ToolLike
    from frostagent.callbacks import OnToolResult, SendHook, Subscriber
    from frostagent.clock import SystemClock
    from frostagent.engine.budget import Limits
    from frostagent.engine.engine import OnLimit
    from frostagent.engine.external_tools import class_tool, foreign_tool
    from frostagent.engine.toolset import ApprovalHandler, Toolset
    from frostagent.models.connection import connect
    from frostagent.models.openai.client import Timeouts
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
    from frostagent.streaming import AgentStream, Finished, StreamEvent
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
        ReasoningDelta,
        SystemMessage,
        TextDelta,
        TextDiscarded,
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
    from frostagent.types.tools import (
        Declarations,
        ForeignDeclarations,
        FunctionDeclarations,
        Tool,
        ToolContext,
        ToolStatus,
        tool,
    )
    from frostagent.types.traits import Audience, Execution, Permission, Rate, SideEffects, ToolType

__all__ = [
    "AfterCall",
    "Agent",
    "AgentStream",
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
    "Declarations",
    "Deny",
    "Execution",
    "FinishReason",
    "Finished",
    "ForeignDeclarations",
    "FunctionDeclarations",
    "Hooks",
    "Ids",
    "Image",
    "InMemory",
    "InvalidArguments",
    "Limits",
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
    "ReasoningDelta",
    "Reply",
    "RequestEvent",
    "Reshape",
    "Rewrite",
    "RunContinued",
    "RunEvent",
    "RunFailed",
    "RunFinished",
    "RunOptions",
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
    "StreamEvent",
    "Structured",
    "Subscriber",
    "Suspend",
    "SystemClock",
    "SystemMessage",
    "TextDelta",
    "TextDiscarded",
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

_HOMES = {
    "frostagent.agent": (
        "Agent",
        "Builder",
        "RunOptions",
        "ToolLike",
    ),
    "frostagent.engine.budget": ("Limits",),
    "frostagent.callbacks": (
        "OnToolResult",
        "SendHook",
        "Subscriber",
    ),
    "frostagent.clock": ("SystemClock",),
    "frostagent.engine.engine": ("OnLimit",),
    "frostagent.engine.external_tools": (
        "class_tool",
        "foreign_tool",
    ),
    "frostagent.engine.toolset": ("ApprovalHandler", "Toolset"),
    "frostagent.models.connection": ("connect",),
    "frostagent.models.openai.client": ("Timeouts",),
    "frostagent.programs": ("command_tool",),
    "frostagent.reply": (
        "MustWait",
        "Reply",
        "RunFailed",
        "StepLimitReached",
        "Structured",
        "UnfitAnswer",
        "Waiting",
    ),
    "frostagent.sessions": (
        "InMemory",
        "Memory",
    ),
    "frostagent.streaming": ("AgentStream", "Finished", "StreamEvent"),
    "frostagent.testing.scripted_model": (
        "ScriptedModel",
        "call",
    ),
    "frostagent.types.errors": (
        "BotError",
        "ConfigError",
        "InvalidArguments",
        "ModelError",
        "Problem",
        "ToolCancelled",
        "ToolDenied",
        "ToolError",
        "ToolFailed",
        "ToolNotFound",
        "ToolRateLimited",
        "ToolTimeout",
        "ToolUnavailable",
    ),
    "frostagent.types.hooks": (
        "AfterCall",
        "BeforeCall",
        "Block",
        "Change",
        "Hooks",
        "RequestEvent",
        "Reshape",
        "Rewrite",
        "StepEvent",
        "StopRun",
    ),
    "frostagent.types.messages": (
        "AssistantMessage",
        "Completion",
        "FinishReason",
        "Message",
        "ModelRequest",
        "ReasoningDelta",
        "SystemMessage",
        "TextDelta",
        "TextDiscarded",
        "ToolCall",
        "ToolMessage",
        "ToolSpec",
        "Usage",
        "UserMessage",
    ),
    "frostagent.types.ports": (
        "Approver",
        "ChatModel",
        "Clock",
        "Ids",
        "Observer",
    ),
    "frostagent.types.results": (
        "Image",
        "ToolResult",
    ),
    "frostagent.types.runs": (
        "Asker",
        "RunContinued",
        "RunEvent",
        "RunFinished",
        "RunPaused",
        "RunStarted",
        "StepFinished",
        "Stop",
        "ToolFailure",
        "ToolFinished",
        "ToolProgressed",
        "ToolStarted",
    ),
    "frostagent.types.schema": ("UnsuitableType",),
    "frostagent.types.suspension": (
        "Allow",
        "ApprovalRequest",
        "BadSuspension",
        "Decision",
        "Deny",
        "Pending",
        "Suspend",
    ),
    "frostagent.types.tools": (
        "Declarations",
        "ForeignDeclarations",
        "FunctionDeclarations",
        "Tool",
        "ToolContext",
        "ToolStatus",
        "tool",
    ),
    "frostagent.types.traits": (
        "Audience",
        "Execution",
        "Permission",
        "Rate",
        "SideEffects",
        "ToolType",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
