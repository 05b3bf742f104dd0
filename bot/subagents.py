"""The subagents that the settings name: the Coder, and those of SUBAGENTS_FILE."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

from pydantic import SecretStr

from bot.core.language import Bilingual, Language
from bot.mcp_servers import belongs_to_server
from bot.prompt.wording_en import EN
from config import values
from config.endpoints import Endpoint, in_order
from config.mcp_servers import read_servers
from config.settings import Settings
from config.tables import (
    CODER,
    NESTED,
    SUBAGENTS_MEND,
    SUBAGENTS_SETTING,
    SubagentRow,
    read_subagents,
)
from frostagent.engine.call_executor import CallExecutor
from frostagent.engine.engine import Engine
from frostagent.engine.subagents import NamedSubagents, Subagent
from frostagent.engine.toolset import Toolset
from frostagent.types.errors import ConfigError, Problem
from frostagent.types.ports import ChatModel, Clock, Observer, Speaker, Subagents
from frostagent.types.traits import SideEffects

logger = logging.getLogger(__name__)

CODER_DESCRIPTION = "writes, explains and mends code"
CODER_PROMPT = """\
You are Coder, a programmer who is asked by a chat bot on behalf of a person in a chat.
Do the task completely. Give working code in one fenced block with its language and a file name, \
as in
```python snake.py, then at most three short sentences on how to use it and what to look out for. \
Answer in the language
of the task. Never invent a library."""


class SubagentRegistry:
    """Reads the subagents, and reads them again. `subagents` is the port of runs; the tool in
    `toolset` that asks them lists them. `model_at` makes a model that asks these endpoints in
    order.

    Raises ConfigError for a file that cannot be used. A name in an allow-list that no tool has is
    logged and ignored, because the tool's file may be broken.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        model_at: Callable[[tuple[Endpoint, ...]], ChatModel],
        toolset: Toolset,
        clock: Clock,
    ) -> None:
        self.subagents = NamedSubagents(clock=clock, words=EN.engine[Language.ENGLISH])
        self._settings = settings
        self._model_at = model_at
        self.toolset = toolset
        self._clock = clock
        self._tool = toolset.get(NESTED)
        rows, problems = self._read()
        if problems:
            raise ConfigError(*problems)
        for problem in self._strange_tools(rows):
            logger.warning("%s", problem)
        self._replace_all(rows)

    def reload(self) -> tuple[Problem, ...]:
        """Read the file again and return its problems; with any problem, nothing changes."""
        rows, problems = self._read()
        problems = (*problems, *self._strange_tools(rows))
        if not problems:
            self._replace_all(rows)
        return problems

    def refresh(self) -> None:
        """Assign the tools that exist now: those of servers come and go."""
        servers, _ = read_servers(self._settings.mcp_file, self._settings.mcp_keys)
        if any(belongs_to_server(name, servers) for row in self._rows for name in row.tools):
            self._replace_all(self._rows)

    def _strange_tools(self, rows: tuple[SubagentRow, ...]) -> tuple[Problem, ...]:
        """The problems of names that no tool has; tools of servers may come later."""
        servers, _ = read_servers(self._settings.mcp_file, self._settings.mcp_keys)
        known = [
            row.model_copy(
                update={
                    "tools": [name for name in row.tools if not belongs_to_server(name, servers)]
                }
            )
            for row in rows
        ]
        return tuple(strange_tools(known, self.toolset))

    def _read(self) -> tuple[tuple[SubagentRow, ...], tuple[Problem, ...]]:
        return read_subagents(self._settings.subagents_file, self._settings.subagent_keys)

    def _replace_all(self, rows: tuple[SubagentRow, ...]) -> None:
        self._rows = rows
        has_coder = any(row.is_coder for row in rows)
        everybody = rows if has_coder else (SubagentRow(name=CODER), *rows)
        self.subagents.replace_all([self._build(row) for row in everybody])
        if self._tool is not None and Subagents in self._tool.needs:
            self.toolset.register(self.subagents.described_tool(self._tool), replace=True)

    def _build(self, row: SubagentRow) -> Subagent:
        tools = self.toolset.part(row.tools)
        model = self._model_at(endpoints_of(row, self._settings))
        executor = CallExecutor(tools, max_calls=self._settings.tools_max_calls)

        def runner(observer: Observer) -> Engine:
            return Engine(
                model=model,
                toolset=tools,
                clock=self._clock,
                observer=observer,
                executor=executor,
                max_steps=row.max_steps,
                deadline=row.deadline,
            )

        return Subagent(
            name=row.name,
            description=row.description.strip() or CODER_DESCRIPTION,
            prompt=row.prompt.strip() or CODER_PROMPT,
            runner=runner,
            deadline=row.deadline,
            max_tokens=row.max_tokens,
            speaks=any(Speaker in tool.needs for tool in tools.list()),
            side_effects=SideEffects.strictest(tool.side_effects for tool in tools.list()),
        )


def strange_tools(rows: Iterable[SubagentRow], toolset: Toolset) -> Iterator[Problem]:
    """A problem for each name in an allow-list that no tool has."""
    known = [tool.name for tool in toolset.list()]
    for row in rows:
        for name in row.tools:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                what = Bilingual(
                    f"{row.name}: tools: there is no tool {name[:64]}",
                    f"{row.name}：tools：没有 {name[:64]} 这个工具",
                )
                fix = SUBAGENTS_MEND
                if near:
                    fix = Bilingual(f"Did you mean {near[0]}?", f"是不是想写 {near[0]}？")
                yield Problem(SUBAGENTS_SETTING, what, fix)


def endpoints_of(row: SubagentRow, settings: Settings) -> tuple[Endpoint, ...]:
    """The row's endpoints in order: its own, else the Coder's or the main one; then the fallbacks.

    A key is never sent to another base URL than the one it was set for.
    """
    base = settings.coder_endpoint if row.is_coder else settings.main_model
    if not (row.base_url or row.model or row.api_key):
        return in_order(base, *settings.main_models)
    elsewhere = row.base_url not in {"", base.base_url}
    model = row.model or base.model
    key = SecretStr("") if elsewhere else base.api_key
    if row.api_key:
        key = values.keys(settings.subagent_keys[row.api_key])
    context = base.context if not elsewhere and model == base.model else 0
    own = Endpoint(
        row.base_url or base.base_url, key, model, "" if elsewhere else base.dialect, context
    )
    return in_order(own, *settings.main_models)
