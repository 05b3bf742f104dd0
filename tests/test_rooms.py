"""The gate over who imports whom turns red where it should: what leaks is planted into a copy of the tree.

The contracts in pyproject.toml hold our own rooms; the lists here which libraries each room may take.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cases import each_case

ROOT = Path(__file__).parents[1]
OURS = {"frostagent", "bot", "adapters", "tools", "config"}

LIBRARIES = {
    "frostagent/types": {"pydantic", "pydantic_core", "typing_extensions"},
    "frostagent/text": {"rapidfuzz"},
    "frostagent/engine": {"jsonschema", "referencing", "typing_extensions"},
    "frostagent/models": {"aiohttp", "cachetools", "orjson", "pydantic", "yarl"},
    "frostagent/testing": set(),
    "frostagent/agent.py": {"typing_extensions"},
    "frostagent/programs.py": {"typing_extensions"},
    "frostagent/reply.py": {"typing_extensions"},
    "frostagent/sessions.py": {"cachetools"},
    "frostagent/streaming.py": {"typing_extensions"},
    "frostagent/tracing.py": {"cachetools", "opentelemetry"},
    "frostagent/mcp.py": {"anyio", "httpx2", "mcp", "mcp_types"},
    "frostagent/mcp_list.py": {"mcp", "mcp_types", "pydantic", "typing_extensions"},
    "frostagent/mcp_stdio.py": {"anyio", "mcp", "mcp_types"},
    "frostagent/structured.py": {"jsonschema", "pydantic", "typing_extensions"},
    "bot/core": {"pydantic"},
    "bot/domain": set(),
    "bot/settings_store.py": set(),
    "bot/quiet": set(),
    "bot/budget": set(),
    "bot/policy": {"pydantic", "rapidfuzz"},
    "bot/prompt": {"rapidfuzz"},
    "bot/runtime": {"uvloop"},
    "bot/memory": {"cachetools"},
    "bot/outbox": {"cachetools"},
    "bot/approvals": {"cachetools"},
    "bot/chat": {"cachetools"},
    "bot/commands": set(),
    "bot/recap.py": set(),
    "bot/welcome.py": set(),
    "bot/jobs": {"cronsim", "feedparser"},
    "bot/cluster": set(),
    "bot/console": {"aiohttp"},
    "bot/trial": {"pydantic"},
    "bot/web.py": set(),
    "bot/build.py": {"aiohttp"},
    "bot/chat_models.py": {"aiohttp"},
    "bot/configured_tools.py": set(),
    "bot/mcp_servers.py": set(),
    "bot/subagents.py": {"pydantic"},
    "bot/cli": {"aiohttp", "dotenv", "pydantic", "pydantic_core", "sqlalchemy", "typer", "websockets", "yarl"},
    "bot/app.py": {"sqlalchemy"},
    "bot/gateway.py": set(),
    "bot/worker.py": set(),
    "bot/library.py": set(),
    "bot/programs.py": set(),
    "bot/__main__.py": set(),
    "bot/__init__.py": set(),
    "config": {"dotenv", "pydantic", "pydantic_core", "pydantic_settings"},
    "tools": {"PIL", "cachetools", "pydantic", "pylopdf_fonts_zh_cn", "rapidfuzz"},
    "adapters/broker": {"aio_pika", "aiormq", "pamqp"},
    "adapters/console": {"aiohttp", "jinja2"},
    "adapters/control": set(),
    "adapters/fetching": {"cachetools", "httpcore", "httpx"},
    "adapters/logs": set(),
    "adapters/media": {"cachetools", "PIL"},
    "adapters/metrics": {"prometheus_client"},
    "adapters/offline": {"aiohttp"},
    "adapters/onebot": {"cachetools", "orjson", "websockets"},
    "adapters/simulator": {"websockets"},
    "adapters/storage": {"alembic", "pydantic", "sqlalchemy"},
    "adapters/traces": {"cachetools", "opentelemetry"},
    "adapters/web": {"aiohttp"},
    "adapters/words": {"re2"},
    "adapters/__init__.py": set(),
}
"""Libraries that a room may import, the standard one aside. A room that is not here may import none."""

EVERYWHERE = {"msgspec"}
"""The domain's types are its: whoever makes a changed copy of one needs it."""

EDGE = {"http", "multiprocessing", "select", "selectors", "smtplib", "socket", "sqlite3", "ssl", "subprocess"}
"""Modules of the standard library that reach outside: for adapters, and for commands."""
PURE = {"bot/core": {"logging", "threading"}, "frostagent/types": {"logging", "threading"}}
"""Of the standard library, what a room of pure words has no use for."""
OUTSIDE = ("adapters", "bot/cli", "bot/app.py", "config", "tools")


def room_of(path: str) -> str:
    """The key of LIBRARIES for a module: a package, its sub-package, or the module itself."""
    top, _, rest = path.partition("/")
    return top if top in {"config", "tools"} else f"{top}/{rest.partition('/')[0]}"


def strangers(sources: Mapping[str, str]) -> Iterator[str]:
    """Every import of a library that its room may not have."""
    for path, text in sources.items():
        room = room_of(path)
        for node in ast.walk(ast.parse(text, path)):
            match node:
                case ast.Import():
                    names = [alias.name for alias in node.names]
                case ast.ImportFrom(module=str(module), level=0):
                    names = [module]
                case _:
                    continue
            for name in (name.partition(".")[0] for name in names):
                is_outer = name in EDGE and not path.startswith(OUTSIDE)
                is_foreign = name not in OURS | sys.stdlib_module_names | EVERYWHERE | LIBRARIES.get(room, set())
                if is_outer or is_foreign or name in PURE.get(room, set()):
                    yield f"{path}: {name}"


def tree() -> dict[str, str]:
    files = (file for top in sorted(OURS) for file in sorted((ROOT / top).rglob("*.py")))
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


def test_no_room_takes_a_library_that_is_not_its_own() -> None:
    found = list(strangers(tree()))
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@each_case(
    ("path", "line"),
    [
        ("bot/core/ports.py", "import sqlalchemy"),
        ("frostagent/types/tools.py", "import threading"),
        ("bot/chat/turn.py", "from sqlalchemy import text"),
        ("bot/prompt/transcript.py", "import aiohttp"),
        ("frostagent/engine/engine.py", "import socket"),
        ("bot/outbox/outbox.py", "import websockets.asyncio.client"),
        ("bot/attic/new.py", "import orjson"),
        ("adapters/web/pages.py", "import sqlalchemy"),
        ("adapters/new/client.py", "import requests"),
        ("config/settings.py", "import httpx"),
        ("tools/roll.py", "import httpx"),
    ],
)
def test_a_library_in_the_wrong_room_is_found(path: str, line: str) -> None:
    assert [said.partition(":")[0] for said in strangers({path: line})] == [path]


LEAKS = [
    ("adapters/onebot/fields.py", "bot.prompt.newcomer"),
    ("bot/runtime/loop.py", "adapters.web.server"),
    ("frostagent/types/messages.py", "bot.policy.wake"),
    ("bot/policy/wake.py", "bot.prompt.render"),
    ("frostagent/models/upstreams.py", "frostagent.engine.registry"),
    ("frostagent/engine/registry.py", "frostagent.sessions"),
    ("frostagent/models/upstreams.py", "bot.memory.history"),
    ("bot/outbox/sender.py", "bot.chat.active_conversations"),
    ("bot/outbox/sender.py", "bot.approvals.decision"),
    ("bot/approvals/registry.py", "bot.chat.way"),
    ("bot/chat/dispatcher.py", "bot.library"),
    ("bot/chat/lanes.py", "bot.chat.way"),
    ("frostagent/sessions.py", "bot.memory.recorder"),
    ("bot/build.py", "bot.cli.process"),
    ("bot/chat/deduplicator.py", "config.settings"),
    ("adapters/web/server.py", "adapters.logs.output"),
    ("tools/send_message.py", "adapters.logs.output"),
    ("tools/get_weather/__init__.py", "tools.send_message"),
    ("tools/memory.py", "bot.domain.tool"),
    ("config/settings.py", "frostagent.types.messages"),
]


def planted(folder: Path) -> str:
    """What the gate says of a copy of the tree in which every leak was planted."""
    for top in OURS:
        shutil.copytree(ROOT / top, folder / top, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "bot/prompt/newcomer.py").write_text('"""A module that no contract names."""\n')
    (folder / "bot/attic.py").write_text('"""A module without a room."""\n')
    for path, name in LEAKS:
        with (folder / path).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {name}\n")
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", lint, "--no-cache"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.system
def test_every_leak_that_is_planted_turns_the_gate_red(tmp_path: Path) -> None:
    said = planted(tmp_path)
    importers = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path, _ in LEAKS]
    arrows = [f"{importer} -> {name}" for importer, (_, name) in zip(importers, LEAKS, strict=True)]
    missed = [arrow for arrow in arrows if arrow not in said]
    assert not missed, said
    assert "attic" in said
