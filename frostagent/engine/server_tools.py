"""Tools of servers in a registry: kept as the server lists them, and offered so that a request
never holds more than MOST_SCHEMAS.

Where there are more, whole servers are left out and named in the description of `use_tools`, with a
line for each tool. A call of it brings the tools of a server for the rest of the run: which servers
a run has opened stands in its own messages, so that it is known after a wait as well.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeGuard

from frostagent.cancellation import background
from frostagent.text.masking import one_line
from frostagent.types.errors import ToolFailed
from frostagent.types.messages import AssistantMessage, Message
from frostagent.types.tools import Tool, ToolContext, make_tool
from frostagent.types.traits import SideEffects

if TYPE_CHECKING:
    from frostagent.engine.registry import Registry

logger = logging.getLogger(__name__)

MOST_SCHEMAS: Final = 40
MOST_NAMED: Final = 60  # tools of a server that is only named
LONGEST_LINE: Final = 80  # characters about such a tool
USE_TOOLS: Final = "use_tools"
ABOUT_USE_TOOLS: Final = (
    "Brings the tools of a server, which can be called from the next step on. Call it before you "
    "need one of them."
)
BROUGHT: Final = "The tools of {server} can be called now: {names}."
NO_SUCH_SERVER: Final = "there is no server {server} here; there is {servers}."


class ToolServer(Protocol):
    """A process that offers tools, which may change. `on_change` is called then."""

    name: str
    on_change: Callable[[], None]

    def offered(self) -> tuple[Tool, ...]: ...

    async def first_try(self) -> None:
        """Return once it is connected, or could not be at the first try."""
        ...

    async def run(self) -> None:
        """Stay connected until this is cancelled."""
        ...


def is_server(source: object) -> TypeGuard[ToolServer]:
    """Whether this is a server rather than a tool."""
    return not isinstance(source, type) and all(
        callable(getattr(source, name, None)) for name in ("offered", "first_try", "run")
    )


class ServerTools:
    """Keeps the tools of a server in a registry as the server lists them. `clashes` has a line for
    each that is left out since the registry has another of its name.
    """

    def __init__(self, registry: Registry, server: ToolServer) -> None:
        self.clashes: tuple[str, ...] = ()
        self._registry = registry
        self._server = server
        self._names: set[str] = set()
        server.on_change = self.update
        self.update()

    def update(self) -> None:
        """Take over the server's list."""
        registry, own, clashes = self._registry, set[str](), list[str]()
        offered = {tool.name: tool for tool in self._server.offered()}
        for name in self._names - offered.keys():
            registry.remove(name)
        for name, tool in offered.items():
            if name not in self._names and registry.get(name) is not None:
                clashes.append(f"{name}: there is another tool of this name")
                continue
            if registry.get(name) is not tool:
                registry.register(tool, replace=True)
            own.add(name)
        if own and registry.get(USE_TOOLS) is None:
            registry.register(use_tools(registry))
        if new := set(clashes).difference(self.clashes):
            logger.warning("server %s: left out: %s", self._server.name, "; ".join(sorted(new)))
        self._names, self.clashes = own, tuple(clashes)

    def withdraw(self) -> None:
        """Take its tools out of the registry, for good."""
        self._server.on_change = lambda: None
        for name in self._names:
            self._registry.remove(name)
        self._names.clear()


@asynccontextmanager
async def connected(servers: Iterable[ToolServer]) -> AsyncIterator[None]:
    """All servers, connected side by side while the block runs; it begins once each was tried."""
    servers = tuple(servers)
    async with background(*(server.run() for server in servers)):
        for server in servers:
            await server.first_try()
        yield


def use_tools(registry: Registry) -> Tool:
    """The tool that brings the tools of a server. Its result is names, in our own alphabet."""

    async def bring(context: ToolContext, server: str) -> str:
        by_server = servers_of(registry.usable(context.ports, context.terms))
        if server not in by_server:
            servers = ", ".join(by_server) or "none"
            raise ToolFailed(
                NO_SUCH_SERVER.format(server=one_line(server, LONGEST_LINE), servers=servers)
            )
        names = ", ".join(tool.name for tool in by_server[server])
        return BROUGHT.format(server=server, names=names)

    return make_tool(
        bring,
        name=USE_TOOLS,
        description=ABOUT_USE_TOOLS,
        side_effects=SideEffects.READ,
        trusted_result=True,
        idempotent=True,
    )


def servers_of(tools: Iterable[Tool]) -> dict[str, list[Tool]]:
    """The tools of each server."""
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.server:
            found.setdefault(tool.server, []).append(tool)
    return found


def choose_tools(
    tools: Sequence[Tool], opened: Sequence[str]
) -> tuple[Sequence[Tool], Mapping[str, Sequence[Tool]]]:
    """The tools whose schemas a request holds, in the order given, and by server those that are
    only named.

    Those of no server are always held. Then come the servers that were opened, the latest first,
    then the others in the order of their names, each whole or not at all; only of an opened one
    that alone is too large a part is held.
    """
    by_server = servers_of(tools)
    own = [tool for tool in tools if not tool.server]
    plain = [tool for tool in own if tool.name != USE_TOOLS]
    if not by_server:
        return plain, {}
    if len(plain) + sum(map(len, by_server.values())) <= MOST_SCHEMAS or len(plain) == len(own):
        return [tool for tool in tools if tool.name != USE_TOOLS], {}
    room = max(0, MOST_SCHEMAS - len(own))
    held = set[str]()
    named = dict[str, Sequence[Tool]]()
    first = [server for server in dict.fromkeys(reversed(opened)) if server in by_server]
    for server in (*first, *sorted(by_server.keys() - set(first))):
        of_it = by_server[server]
        if len(of_it) <= room:
            part = len(of_it)
        else:
            part = room if server in first else 0
            named[server] = of_it[part:]
        held.update(tool.name for tool in of_it[:part])
        room -= part
    return [tool for tool in tools if not tool.server or tool.name in held], named


def describe_servers(description: str, named: Mapping[str, Sequence[Tool]]) -> str:
    """The description of `use_tools`, with the servers and tools that it can bring."""
    lines = [description]
    for server, tools in sorted(named.items()):
        lines.append(f"server {server}:")
        lines += [f"- {tool.name}: {first_line(tool)}" for tool in tools[:MOST_NAMED]]
        if len(tools) > MOST_NAMED:
            lines.append(f"- and {len(tools) - MOST_NAMED} more")
    return "\n".join(lines)


def first_line(tool: Tool) -> str:
    """What the tool is for, in a line."""
    return one_line(tool.description.strip().partition("\n")[0], LONGEST_LINE)


def opened_servers(messages: Iterable[Message]) -> tuple[str, ...]:
    """The servers whose tools a run has asked for, in order."""
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
