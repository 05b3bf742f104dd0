"""Chooses the tools of a request: at most MOST_SCHEMAS including those of servers, whose text is at
most MOST_CHARACTERS.

Beyond that, whole servers are only named in the description of `use_tools`, with one line for each
tool. A call of it brings a server's tools for the rest of the run. The opened servers are read from
the run's own messages, so they survive a wait.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from frostagent.text.masking import one_line
from frostagent.types.messages import AssistantMessage, Message
from frostagent.types.tools import Tool

MOST_SCHEMAS: Final = 40
MOST_CHARACTERS: Final = 120_000  # of names, descriptions and schemas: some 30,000 tokens
MOST_NAMED: Final = 60  # tools listed of a server that is only named
LONGEST_LINE: Final = 80  # characters on each of them
USE_TOOLS: Final = "use_tools"


def servers_of(tools: Iterable[Tool]) -> dict[str, list[Tool]]:
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.server:
            found.setdefault(tool.server, []).append(tool)
    return found


def choose_tools(
    tools: Sequence[Tool], opened: Sequence[str]
) -> tuple[Sequence[Tool], Mapping[str, Sequence[Tool]]]:
    """The tools in a request, in the order given, and by server the tools that are only named.

    Tools of no server are always included. Then come opened servers, the latest first, then the
    others by name, each whole or not at all; only an opened server that is too large on its own is
    included in part.
    """
    by_server = servers_of(tools)
    own = [tool for tool in tools if not tool.server]
    plain = [tool for tool in own if tool.name != USE_TOOLS]
    if not by_server:
        return plain, {}
    if len(plain) == len(own):
        return tools, {}
    foreign = [tool for tool in tools if tool.server]
    if _prefix(foreign, MOST_SCHEMAS - len(plain), MOST_CHARACTERS) == len(foreign):
        return [tool for tool in tools if tool.name != USE_TOOLS], {}
    room, characters = max(0, MOST_SCHEMAS - len(own)), MOST_CHARACTERS
    held = set[str]()
    named = dict[str, Sequence[Tool]]()
    first = [server for server in dict.fromkeys(reversed(opened)) if server in by_server]
    for server in (*first, *sorted(by_server.keys() - set(first))):
        of_it = by_server[server]
        part = _prefix(of_it, room, characters)
        if part < len(of_it):
            part = part if server in first else 0
            named[server] = of_it[part:]
        held.update(tool.name for tool in of_it[:part])
        room -= part
        characters -= sum(map(_size, of_it[:part]))
    return [tool for tool in tools if not tool.server or tool.name in held], named


def _prefix(tools: Sequence[Tool], room: int, characters: int) -> int:
    """How many of the first tools fit."""
    for number, tool in enumerate(tools):
        characters -= _size(tool)
        if number >= room or characters < 0:
            return number
    return len(tools)


def _size(tool: Tool) -> int:
    """The characters a tool takes in a request."""
    return len(tool.name) + len(tool.description) + len(json.dumps(dict(tool.parameters)))


def describe_servers(description: str, named: Mapping[str, Sequence[Tool]]) -> str:
    """The description of `use_tools`, with the servers and tools it can bring."""
    lines = [description]
    for server, tools in sorted(named.items()):
        lines.append(f"server {server}:")
        lines += [f"- {tool.name}: {first_line(tool)}" for tool in tools[:MOST_NAMED]]
        if len(tools) > MOST_NAMED:
            lines.append(f"- and {len(tools) - MOST_NAMED} more")
    return "\n".join(lines)


def first_line(tool: Tool) -> str:
    return one_line(tool.description.strip().partition("\n")[0], LONGEST_LINE)


def opened_servers(messages: Iterable[Message]) -> tuple[str, ...]:
    """The servers whose tools a run has requested, in order."""
    calls = (
        call
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
        if call.name == USE_TOOLS
    )
    return tuple(filter(None, (_server_in(call.arguments) for call in calls)))


def _server_in(arguments: str) -> str:
    try:
        server = json.loads(arguments)["server"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return server if isinstance(server, str) else ""
