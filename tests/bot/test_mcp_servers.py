"""The servers of MCP_FILE beside a bot: read again, withheld, shown, and never in the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.core.conversation import Conversation
from bot.mcp_servers import McpServers, belongs_to_server
from config.settings import Settings
from frostagent.cancellation import background
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.toolset import Toolset
from frostagent.mcp import MCPServer
from frostagent.text.masking import Mask
from frostagent.types.errors import ConfigError
from tests.e2e.scenarios.servers import servers_in_memory
from tests.fakes import until

OWNER, GROUP = 20001, 4242


class Setting:
    def __init__(self, folder: Path, **servers: Any) -> None:
        self.file = folder / "mcp.json"
        self.write(**servers)
        self.tools = Toolset()
        self.mask = Mask()
        self.servers = McpServers(
            Settings(mcp_file=self.file),
            toolset=self.tools,
            owners={OWNER},
            masks=[self.mask],
            clock=SystemClock(),
            ids=RandomIds(),
        )

    def write(self, **servers: Any) -> None:
        rows = {name: {"command": "memory", **row} for name, row in servers.items()}
        self.file.write_text(json.dumps({"mcpServers": rows}), "utf-8")

    @property
    def there(self) -> list[str]:
        return [one.name for one in self.servers.statuses() if not one.reason]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with servers_in_memory():
            async with background(self.servers.run()):
                yield


async def test_what_is_unchanged_stays_connected_over_a_reload(tmp_path: Path) -> None:
    setting = Setting(tmp_path, x={"tools": ["look_up"]}, y={})
    async with setting.running():
        await until(lambda: setting.there == ["x", "y"])
        kept, before = setting.tools.get("x_look_up"), setting.servers.statuses()[0]
        assert (before.trust, before.tools, before.tokens > 0) == ("ask", ("x_look_up",), True)
        setting.write(x={"tools": ["look_up"]}, z={"env": {"KEY": "sesame-4711"}})
        assert setting.servers.reload() == ()
        await until(lambda: setting.there == ["x", "z"])
        assert setting.tools.get("x_look_up") is kept
        assert setting.tools.get("y_look_up") is None
        assert setting.mask("sesame-4711") == "***"
        setting.write(x={"url": "http://b"})
        (problem,) = setting.servers.reload()
        assert "either command or url" in problem.what
        assert setting.there == ["x", "z"]


async def test_a_server_that_breaks_our_own_code_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(tmp_path, x={}, y={})
    run = MCPServer.run

    async def break_off(self: MCPServer) -> None:
        if self.name == "x":
            raise RuntimeError("a bug")
        await run(self)

    monkeypatch.setattr(MCPServer, "run", break_off)
    async with setting.running():
        await until(lambda: setting.there == ["y"])
        await asyncio.sleep(0)
        assert setting.there == ["y"]


def test_a_server_for_groups_is_for_them_and_for_owners_in_private(tmp_path: Path) -> None:
    servers = Setting(tmp_path, x={"groups": [GROUP]}, y={}).servers
    assert servers.withheld(Conversation(1, "group", GROUP)) == frozenset()
    assert servers.withheld(Conversation(1, "group", 5252)) == {"x"}
    assert servers.withheld(Conversation(1, "private", 20002)) == {"x"}
    assert servers.withheld(Conversation(1, "private", OWNER)) == frozenset()


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    servers = McpServers(Settings(), toolset=Toolset(), owners=(), clock=SystemClock(), ids=RandomIds())
    assert servers.statuses() == ()
    assert servers.withheld(Conversation(1, "group", GROUP)) == frozenset()
    (tmp_path / "mcp.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        McpServers(
            Settings(mcp_file=tmp_path / "mcp.json"), toolset=Toolset(), owners=(), clock=SystemClock(), ids=RandomIds()
        )


def test_a_name_tells_whose_tool_it_may_be() -> None:
    assert belongs_to_server("my_files_read", ["my-files"])
    assert not belongs_to_server("myfiles", ["my-files", "other"])
