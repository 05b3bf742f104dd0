"""Keeps the tools of servers in a registry, as the servers list them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeGuard

from frostagent.cancellation import background
from frostagent.engine.offered_tools import LONGEST_LINE, USE_TOOLS, servers_of
from frostagent.engine.registry import Registry
from frostagent.text.masking import one_line
from frostagent.types.errors import ToolFailed
from frostagent.types.tools import Tool, ToolContext, make_tool
from frostagent.types.traits import SideEffects

logger = logging.getLogger(__name__)

ABOUT_USE_TOOLS: Final = (
    "Brings the tools of a server, which can be called from the next step on. Call it before you "
    "need one of them."
)
BROUGHT: Final = "The tools of {server} can be called now: {names}."
NO_SUCH_SERVER: Final = "there is no server {server} here; there is {servers}."


class ToolServer(Protocol):
    """A process that offers tools, which may change."""

    name: str

    def offered(self) -> tuple[Tool, ...]: ...

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call this method after each change of the tools. Its object is held weakly."""
        ...

    async def first_try(self) -> None:
        """Return once the first attempt to connect has succeeded or failed."""
        ...

    async def run(self) -> None: ...


def is_server(source: object) -> TypeGuard[ToolServer]:
    """Whether this is a server rather than a tool."""
    return not isinstance(source, type) and all(
        callable(getattr(source, name, None)) for name in ("offered", "first_try", "run")
    )


class ServerTools:
    """Mirrors a server's tools in a registry, as long as this object is referenced.

    `clashes` has one line for each tool left out because its name is taken. `changed` is called
    after each change of the registry. Several registries may share a server.
    """

    def __init__(
        self, registry: Registry, server: ToolServer, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.clashes: tuple[str, ...] = ()
        self._changed = changed
        self._registry = registry
        self._server = server
        self._names: set[str] = set()
        self._is_withdrawn = False
        server.subscribe(self.update)
        self.update()

    def update(self) -> None:
        """Apply the server's current list."""
        if self._is_withdrawn:
            return
        registry, own, clashes = self._registry, set[str](), list[str]()
        offered = {tool.name: tool for tool in self._server.offered()}
        before = registry.version
        for name in self._names - offered.keys():
            if name in registry:
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
        if registry.version != before:
            self._changed()

    def withdraw(self) -> None:
        """Remove its tools from the registry, for good."""
        self._is_withdrawn = True
        for name in self._names:
            if name in self._registry:
                self._registry.remove(name)
        self._names.clear()


@asynccontextmanager
async def connected(servers: Iterable[ToolServer]) -> AsyncIterator[None]:
    """Connect all servers concurrently; the block begins once each has been tried."""
    servers = tuple(servers)
    raised: Exception | None = None
    async with background(*(server.run() for server in servers)):
        for server in servers:
            await server.first_try()
        try:
            yield
        except Exception as error:  # noqa: BLE001  # raised again below, outside of a group
            raised = error
    if raised is not None:
        raise raised


def use_tools(registry: Registry) -> Tool:
    """The tool that brings the tools of a server. It returns only names, in our alphabet."""

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
