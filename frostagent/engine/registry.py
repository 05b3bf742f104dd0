"""The registry of tools, and which of them can be used now."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from frostagent.engine.authority import is_sufficient
from frostagent.engine.call_checks import CallChecks
from frostagent.engine.external_tools import as_tool
from frostagent.engine.offered_tools import USE_TOOLS, choose_tools, describe_servers
from frostagent.engine.tool_execution import unavailable_reason
from frostagent.types.errors import ConfigError, Problem, ToolNotFound
from frostagent.types.messages import ToolSpec
from frostagent.types.runs import Terms
from frostagent.types.tools import Tool, ToolStatus
from frostagent.types.traits import Permission

logger = logging.getLogger(__name__)

EVERYWHERE = Terms()


class Registry:
    """Tools by name, and the checks of their calls. A part shares rules and quotas."""

    def __init__(self, tools: Iterable[object], *, checks: CallChecks) -> None:
        """Raises TypeError for an invalid tool, ConfigError for two tools of one name."""
        self._tools: dict[str, Tool] = {}
        self._offered: tuple[Tool, ...] = ()  # tools that the operator does not deny
        # those of them that lack nothing and are allowed, by a run's ports and terms
        self._allowed: dict[Hashable, tuple[Tool, ...]] = {}
        self._definitions: dict[Hashable, tuple[ToolSpec, ...]] = {}
        self.version = 0  # rises with each change
        self._has_untrusted = False
        # tools already logged as lacking configuration
        self._missed: set[str] = set()
        self._at_hand: frozenset[type] | None = None  # the capabilities of its agents
        self.checks = checks
        self.hooks = checks.hooks  # for calls and, in an engine, for requests and steps
        for tool in tools:
            self.register(tool)

    def register(self, source: object, *, replace: bool = False) -> None:
        """Add a tool. Raises ConfigError for a second tool of one name, unless it replaces it on
        purpose; TypeError (UnsuitableType) or ValueError for an invalid one. Nothing is added then.
        """
        tool = as_tool(source)
        if tool.name in self._tools and not (replace or tool.replaces):
            raise ConfigError(
                Problem(
                    f"tool {tool.name}",
                    "is registered twice",
                    "Rename one, or register it with replace=True.",
                )
            )
        self._tools[tool.name] = tool
        self._changed()

    def replace(self, source: object) -> None:
        """Replace the tool of the same name. Raises KeyError, else as `register` does."""
        tool = as_tool(source)
        if tool.name not in self._tools:
            raise KeyError(tool.name)
        self.register(tool, replace=True)

    def remove(self, name: str) -> Tool:
        """Remove and return a tool. Raises KeyError."""
        tool = self._tools.pop(name)
        self._changed()
        return tool

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        """The tools, sorted by name."""
        return iter(self.list())

    def __contains__(self, tool: object) -> bool:
        """Whether there is a tool of this name, or this very tool."""
        if isinstance(tool, Tool):
            return self._tools.get(tool.name) is tool
        return tool in self._tools

    def __getitem__(self, name: str) -> Tool:
        """The tool of this name. Raises KeyError."""
        return self._tools[name]

    def _changed(self) -> None:
        self.version += 1
        self._offered = tuple(
            tool
            for tool in self._tools.values()
            if self.checks.permission(tool) is not Permission.DENY
        )
        self._has_untrusted = any(tool.untrusted_description for tool in self._offered)
        self._allowed.clear()
        self._definitions.clear()

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def look_up(self, name: str, terms: Terms = EVERYWHERE) -> Tool:
        """The tool with the name a model used. Raises ToolNotFound, with a text for the model, also
        for a tool of a server that `terms` withhold.
        """
        tool = self._tools.get(name)
        if tool is not None and tool.server not in terms.withheld:
            return tool
        names = [each.name for each in self.list() if each.server not in terms.withheld]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ToolNotFound(
            f'tool not found: "{name[:64]}".{hint} Available: {", ".join(names) or "none"}.'
        )

    def list(self) -> tuple[Tool, ...]:
        """All tools, sorted by name."""
        return tuple(self._tools[name] for name in sorted(self._tools))

    def part(self, names: Collection[str]) -> Registry:
        """A registry of these tools, with the same rules and quotas."""
        return Registry((tool for tool in self.list() if tool.name in names), checks=self.checks)

    def permission_of(self, tool: Tool) -> Permission:
        """What the operator set for this tool, else what it declares."""
        return self.checks.permission(tool)

    def unknown_names(self) -> tuple[str, ...]:
        """Names the operator denies or wants approved that no tool has, sorted."""
        return tuple(sorted(self.checks.named.difference(self._tools)))

    def definitions(
        self,
        ports: Collection[type] = (),
        terms: Terms = EVERYWHERE,
        opened: tuple[str, ...] = (),
    ) -> tuple[ToolSpec, ...]:
        """The definitions for the model: tools that can be used with these ports now and that
        someone in the conversation may call. Server tools without room are only named, by
        `use_tools`; `opened` servers come first.

        Returns the same object for the same tools, so that adapters can cache their own form.
        """
        audiences = tuple(terms.audiences.items())
        there = tuple(ports), terms.denied, terms.highest, audiences, terms.withheld
        if (allowed := self._allowed.get(there)) is None:
            allowed = self._allowed[there] = self._allowed_with(ports, terms)
            self._tell_of_missed()
        names = tuple(
            [
                tool.name
                for tool in allowed
                if tool.available is None or not unavailable_reason(tool)
            ]
        )
        key = names, opened
        if (definitions := self._definitions.get(key)) is None:
            known = frozenset(names)
            definitions = self._specs([tool for tool in allowed if tool.name in known], opened)
            self._definitions[key] = definitions
        return definitions

    def _specs(self, tools: Sequence[Tool], opened: Sequence[str]) -> tuple[ToolSpec, ...]:
        shown, named = choose_tools(tools, opened)
        return tuple(
            replace(tool.spec, description=describe_servers(tool.description, named))
            if named and tool.name == USE_TOOLS
            else tool.spec
            for tool in shown
        )

    def usable(self, ports: Collection[type] = (), terms: Terms = EVERYWHERE) -> tuple[Tool, ...]:
        """The tools that can be used with these ports now, as in `definitions`, by name."""
        allowed = self._allowed_with(ports, terms)
        return tuple(tool for tool in allowed if not unavailable_reason(tool))

    def untrusted_servers(
        self, ports: Collection[type] = (), terms: Terms = EVERYWHERE
    ) -> tuple[str, ...]:
        """The servers whose untrusted descriptions such requests contain."""
        if not self._has_untrusted:
            return ()
        tools = self.usable(ports, terms)
        return tuple(dict.fromkeys(tool.server for tool in tools if tool.untrusted_description))

    def _allowed_with(self, ports: Collection[type], terms: Terms) -> tuple[Tool, ...]:
        """The tools allowed on these terms, available or not, by name."""
        return tuple(
            tool
            for tool in sorted(self._offered, key=lambda tool: tool.name)
            if tool.function is not None
            and not self.checks.lacks(tool, ports)
            and tool.name not in terms.denied
            and tool.server not in terms.withheld
            and is_sufficient(terms.highest, terms.audience(tool.name, tool.audience))
        )

    def all_definitions(self) -> tuple[ToolSpec, ...]:
        """Every tool as a model would see it, by name; server tools up to the limit."""
        return self._specs(self.list(), ())

    def check_availability(self, ports: Collection[type] | None = None) -> tuple[ToolStatus, ...]:
        """Whether each tool can be used now, sorted by name. Without `ports`, by the capabilities
        of its agents; with no agent, needs count as met.
        """
        statuses = []
        at_hand = self._at_hand if ports is None else ports
        for tool in self.list():
            reason = self._why_not(tool, tool.needs if at_hand is None else at_hand)
            statuses.append(ToolStatus(tool.name, tool.type, tool.about, not reason, reason))
        return tuple(statuses)

    def serve(self, agent: str, ports: Collection[type]) -> None:
        """Register an agent's capabilities. Warns once of each tool that it cannot use."""
        self._at_hand = (self._at_hand or frozenset()).union(ports)
        missed = {
            tool.name: reason
            for tool in self._offered
            if (reason := self.checks.lacks(tool, ports)) and tool.name not in self._missed
        }
        if missed:
            text = "agent %s does not offer what it lacks something for: %s"
            logger.warning(text, agent, "; ".join(f"{name} {why}" for name, why in missed.items()))
        self._missed.update(missed)

    def lost(self, ports: Collection[type] = ()) -> ToolStatus | None:
        """The first critical tool that cannot be used; denied ones do not count."""
        for tool in self._offered:
            if tool.critical and (reason := self._why_not(tool, ports)):
                return ToolStatus(tool.name, tool.type, tool.about, available=False, reason=reason)
        return None

    def _tell_of_missed(self) -> None:
        """Log, once for each, the tools that lack required configuration."""
        for tool in self._offered:
            if tool.name not in self._missed and (reason := self.checks.lacks(tool, tool.needs)):
                self._missed.add(tool.name)
                logger.warning("tool %s is not offered: it %s", tool.name, reason)

    def _why_not(self, tool: Tool, ports: Collection[type]) -> str:
        return self.checks.lacks(tool, ports) or unavailable_reason(tool)
