"""What the conformance tests share: the documents' own example tools, and what an agent told while it ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frostagent import Agent, Reply, RunEvent, ScriptedModel, Tool, foreign_tool, tool
from frostagent.types.messages import ToolMessage
from frostagent.types.runs import ToolFinished

WEATHER_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "description": "City name, e.g. San Francisco"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Temperature unit"},
    },
    "required": ["location"],
}


def get_weather(arguments: dict[str, Any]) -> dict[str, Any]:
    """The handler of document 000."""
    return {"location": arguments["location"], "temp": 22, "unit": arguments.get("unit") or "celsius"}


def weather_tool(ran: list[dict[str, Any]] | None = None, **declared: Any) -> Tool:
    """The definition of document 000; `ran` is the ledger of its runs: their arguments."""

    def execute(arguments: dict[str, Any]) -> dict[str, Any]:
        if ran is not None:
            ran.append(arguments)
        return get_weather(arguments)

    about = "Get the current weather for a location"
    return foreign_tool("get_weather", about, WEATHER_PARAMETERS, execute, **declared)


def counted(**declared: Any) -> tuple[Tool, list[str]]:
    """A tool, and the ledger of its runs: what a tool that never ran has not written."""
    ran: list[str] = []

    @tool(**declared)
    async def look(text: str = "") -> str:
        """Looks."""
        ran.append(text)
        return f"look {len(ran)}"

    return look, ran


@tool(side_effects="none", idempotent=True)
async def echo(text: str) -> str:
    """Gives the text back."""
    return text


@tool
async def crash() -> str:
    """Breaks."""
    raise ZeroDivisionError("secret detail")


class Told:
    """Subscribes to an agent and keeps what it tells."""

    def __init__(self, agent: Agent) -> None:
        self.events: list[RunEvent] = []
        agent.subscribe(self.events.append)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def finished(self) -> list[ToolFinished]:
        return [event for event in self.events if isinstance(event, ToolFinished)]


def results(reply: Reply) -> list[ToolMessage]:
    """The results of a run's calls, in order."""
    return [message for message in reply.messages if isinstance(message, ToolMessage)]


async def result_of(agent: Agent, model: ScriptedModel) -> str:
    """What the one call of a run came to, as the model read it."""
    with model:
        (message,) = results(await agent.chat("go"))
    return message.content
