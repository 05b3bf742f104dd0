"""`mcp list`, `mcp try` and the doctor's look at servers, each a program of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bot.cli.checks import Outcome
from bot.cli.mcp_commands import PATIENCE, check_servers, look_at, rows_of, servers_to_text, try_server
from config.settings import Settings
from frostagent.types.errors import ConfigError
from frostagent.types.results import ToolResult
from tests.frostagent.mcp.servers import STRANGE

SECRET = "sesame-open-4711"


def settings(folder: Path) -> Settings:
    servers = {
        "odd": {"command": sys.executable, "args": [str(STRANGE), "schemas"], "env": {"KEY": SECRET}, "trust": "read"},
        "gone": {"command": "no-such-program-4711", "groups": [4242]},
    }
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return Settings(mcp_file=file)


async def test_servers_are_listed_with_what_they_offer_or_why_they_are_away(tmp_path: Path) -> None:
    odd, gone = await look_at(rows_of(settings(tmp_path)), seconds=PATIENCE)
    assert (odd.reason, odd.trust, "odd_fine" in odd.tools, odd.tokens > 0) == ("", "read", True, True)
    assert "no-such-program-4711" in gone.reason
    text = servers_to_text([odd, gone])
    assert "odd: left out: broken" in text
    assert "4242" in text


def test_without_servers_it_says_which_setting_is_missing() -> None:
    assert "MCP_FILE is not set" in servers_to_text([])


async def test_a_server_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nope.*The servers are: odd, gone"):
        await try_server(settings(tmp_path), "nope", "", "", ask=None)
    with pytest.raises(ConfigError, match=r"nope.*Set MCP_FILE"):
        await try_server(Settings(), "nope", "", "", ask=None)


async def test_a_server_is_tried(tmp_path: Path) -> None:
    made = settings(tmp_path)
    listed = await try_server(made, "odd", "", "{}", ask=None)
    assert isinstance(listed, str)
    assert "odd_fine" in listed
    result = await try_server(made, "odd", "fine", "{}", ask=None)
    assert isinstance(result, ToolResult)
    assert result.content == "done"
    with pytest.raises(ConfigError, match="no server nobody"):
        await try_server(made, "nobody", "", "{}", ask=None)
    with pytest.raises(ConfigError, match="cannot be reached"):
        await try_server(made, "gone", "", "{}", ask=None)


async def test_the_doctor_looks_at_each(tmp_path: Path) -> None:
    checks = await check_servers(settings(tmp_path))
    assert [check.outcome for check in checks] == [Outcome.OK, Outcome.WARNING, Outcome.WARNING]
    assert await check_servers(Settings()) == []
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert [check.outcome for check in await check_servers(Settings(mcp_file=broken))] == [Outcome.WARNING]
