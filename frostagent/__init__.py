"""FrostAgent as a library: agents, tools, hooks, approvals, models behind OpenAI-compatible APIs.

    from frostagent import Agent, connect, tool

    async with connect("https://api.deepseek.com", "deepseek-chat", api_key) as model:
        reply = await Agent(model=model, tools=[roll_dice]).chat("Roll a dice, please.")

Each name is imported on first use: a program that only needs `tool` does not load the HTTP client.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frostagent.agent import Agent, Builder, RunOptions, ToolLike
    from frostagent.callbacks import OnToolError, OnToolResult, SendHook
    from frostagent.clock import SystemClock
    from frostagent.engine.budget import Limits
    from frostagent.engine.engine import OnLimit
    from frostagent.engine.external_tools import class_tool, foreign_tool
    from frostagent.engine.toolset import ApprovalHandler, Subscriber, Toolset
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
        BadHistory,
        BotError,
        ConfigError,
        ContentFiltered,
        ContextOverflow,
        DaySpent,
        ImagesUnsupported,
        InvalidArguments,
        MediaError,
        ModelAuth,
        ModelBilling,
        ModelError,
        ModelNotFound,
        ModelOverloaded,
        ModelRateLimited,
        ModelRejected,
        ModelStalled,
        ModelTransport,
        Problem,
        ToolCancelled,
        ToolDenied,
        ToolError,
        ToolFailed,
        ToolNotFound,
        ToolRateLimited,
        ToolsUnsupported,
        ToolTimeout,
        ToolUnavailable,
        ToolUseFailed,
    )
    from frostagent.types.hooks import (
        AfterCall,
        BeforeCall,
        Block,
        Change,
        Hook,
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
    from frostagent.words import Words, use_words

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
    "BadHistory",
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
    "ContentFiltered",
    "ContextOverflow",
    "DaySpent",
    "Decision",
    "Declarations",
    "Deny",
    "Execution",
    "FinishReason",
    "Finished",
    "ForeignDeclarations",
    "FunctionDeclarations",
    "Hook",
    "Ids",
    "Image",
    "ImagesUnsupported",
    "InMemory",
    "InvalidArguments",
    "Limits",
    "MediaError",
    "Memory",
    "Message",
    "ModelAuth",
    "ModelBilling",
    "ModelError",
    "ModelNotFound",
    "ModelOverloaded",
    "ModelRateLimited",
    "ModelRejected",
    "ModelRequest",
    "ModelStalled",
    "ModelTransport",
    "MustWait",
    "Observer",
    "OnLimit",
    "OnToolError",
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
    "ToolUseFailed",
    "ToolsUnsupported",
    "Toolset",
    "UnfitAnswer",
    "UnsuitableType",
    "Usage",
    "UserMessage",
    "Waiting",
    "Words",
    "call",
    "class_tool",
    "command_tool",
    "connect",
    "foreign_tool",
    "tool",
    "use_words",
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
        "OnToolError",
        "OnToolResult",
        "SendHook",
    ),
    "frostagent.clock": ("SystemClock",),
    "frostagent.engine.engine": ("OnLimit",),
    "frostagent.engine.external_tools": (
        "class_tool",
        "foreign_tool",
    ),
    "frostagent.engine.toolset": ("ApprovalHandler", "Subscriber", "Toolset"),
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
        "BadHistory",
        "BotError",
        "ConfigError",
        "ContentFiltered",
        "ContextOverflow",
        "DaySpent",
        "ImagesUnsupported",
        "InvalidArguments",
        "MediaError",
        "ModelAuth",
        "ModelBilling",
        "ModelError",
        "ModelNotFound",
        "ModelOverloaded",
        "ModelRateLimited",
        "ModelRejected",
        "ModelStalled",
        "ModelTransport",
        "Problem",
        "ToolCancelled",
        "ToolDenied",
        "ToolError",
        "ToolFailed",
        "ToolNotFound",
        "ToolRateLimited",
        "ToolTimeout",
        "ToolUnavailable",
        "ToolUseFailed",
        "ToolsUnsupported",
    ),
    "frostagent.types.hooks": (
        "AfterCall",
        "BeforeCall",
        "Block",
        "Change",
        "Hook",
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
    "frostagent.words": ("Words", "use_words"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_OLD_NAMES = {"Hooks": "Hook"}  # kept for one more release

if TYPE_CHECKING:
    Hooks = Hook


if not TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a public name from its module; the first use of an old one is a FutureWarning."""
        new = _OLD_NAMES.get(name, name)
        if new not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if new != name:
            message = f"frostagent.{name} is deprecated: it is called {new} now"
            warnings.warn(message, FutureWarning, stacklevel=2)
        found = globals()[name] = getattr(import_module(_HOME_OF[new]), new)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
