"""MCP_FILE: which servers it names, and all that is wrong with it at once, in both languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.core.language import Language, text_in
from config import mcp_servers
from config.loading import load_settings
from config.mcp_servers import read_servers, variables_in
from config.secrets import secrets_of
from frostagent.text.masking import Mask, server_secrets
from frostagent.types.errors import ConfigError
from tests.cases import each_case
from tests.config.reading import GOOD


def written(folder: Path, servers: object) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps(servers), "utf-8")
    return file


def test_the_usual_json_is_read_with_what_we_add(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {
            "mcpServers": {
                "files": {"command": "npx", "args": ["-y", "x"], "env": {"KEY": "${MY_KEY}"}, "trust": "read"},
                "web": {"type": "http", "url": "https://a.test/mcp", "headers": {"A": "b"}, "groups": [4242]},
                "off": {"command": "x", "disabled": True},
            }
        },
    )
    assert variables_in(file) == ("MY_KEY",)
    rows, problems = read_servers(file, {"MY_KEY": SecretStr("sesame")})
    assert problems == ()
    assert list(rows) == ["files", "web"]
    assert rows["files"].env == {"KEY": "sesame"}
    assert (rows["web"].trust, rows["web"].groups) == ("ask", [4242])
    assert read_servers(None, {}) == ({}, ())


@each_case(
    ("servers", "wrong"),
    [
        ({"a": {}}, "a: needs either command or url"),
        ({"a": {"command": "x", "url": "http://b"}}, "a: needs either command or url"),
        ({"a": {"command": "x", "headers": {"b": "c"}}}, "a: headers go with a url"),
        ({"a": {"url": "http://b", "env": {"b": "c"}}}, "a: args, env and cwd go with a command"),
        ({"a": {"url": "ftp://b"}}, "a: url: must begin with http:// or https://"),
        ({"a": {"type": "sse", "url": "http://b"}}, "a: type: sse is no longer supported"),
        ({"a": {"command": "x", "trust": "yes"}}, "a: trust: "),
        ({"a": {"command": "x", "groups": [0]}}, "a: groups.0: must be the number of a group"),
        ({"a": {"command": "x", "timeout": 0}}, "a: timeout: "),
        ({"a": {"command": "x", "colour": 1}}, "a: colour: "),
        ({"a": {"command": "x", "env": {"K": "${NOWHERE}"}}}, "a: ${NOWHERE} is not set"),
        ({"a b": {"command": "x"}}, "a b: a name has"),
        ({"a": ["x"]}, "a: must be an object"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, servers: Any, wrong: str) -> None:
    rows, problems = read_servers(written(tmp_path, {"mcpServers": {"good": {"command": "x"}, **servers}}), {})
    assert list(rows) == ["good"]
    (problem,) = problems
    assert problem.what.startswith(f"mcp.json: {wrong}")
    assert text_in(Language.CHINESE, problem.what) != problem.what


@each_case("text", ["{", "[]", "{}", '{"mcpServers": []}', "\udcff", '{"mcpServers": {}, "x": 1}', "[" * 100_000])
def test_a_file_that_is_none_is_one_problem(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    rows, problems = read_servers(file, {})
    assert (rows, len(problems)) == ({}, 1)


def test_everything_wrong_is_told_at_once_and_no_secret_with_it(tmp_path: Path) -> None:
    servers = {"a": {"command": "x", "env": {"KEY": "sesame-4711", "OTHER": 5}}, "b": {}}
    with pytest.raises(ConfigError) as caught:
        load_settings(environ=GOOD | {"MCP_FILE": str(written(tmp_path, {"mcpServers": servers}))}, env_file=None)
    (problem,) = caught.value.problems
    assert "a: env.OTHER: " in problem.what
    assert "b: needs either" in problem.what
    assert "sesame-4711" not in str(problem)


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_servers, "has_sdk", lambda: False)
    file = written(tmp_path, {"mcpServers": {"a": {"command": "x"}}})
    (problem,) = read_servers(file, {})[1]
    assert "requirements-mcp.txt" in problem.fix
    assert read_servers(written(tmp_path, {"mcpServers": {}}), {})[1] == ()


def test_its_secrets_are_those_of_the_settings(tmp_path: Path) -> None:
    servers = {
        "a": {"command": "x", "env": {"KEY": "${MY_KEY}", "MODE": "production"}},
        "b": {"url": "https://b.test/mcp?key=in-the-url-1", "headers": {"Authorization": "Bearer behind-bearer-1"}},
    }
    file = written(tmp_path, {"mcpServers": servers})
    settings, _ = load_settings(environ=GOOD | {"MCP_FILE": str(file), "MY_KEY": "sesame-4711"}, env_file=None)
    found = secrets_of(settings)
    assert {"sesame-4711", "in-the-url-1", "behind-bearer-1"} <= found
    assert "production" not in found


@each_case(
    ("name", "value", "hidden"),
    [
        ("DIR", "/srv/shared", False),
        ("DIR", "C:\\data", False),
        ("URL", "https://a.test/x", False),
        ("URL", "https://u:hunter2@a.test/x", True),
        ("DEBUG", "true", False),
        ("PORT", "8080", False),
        ("TOKEN", "/srv/shared", True),
        ("ANY", "hunter22", True),
        ("Accept", "application/json", False),
    ],
)
def test_what_is_obviously_plain_is_no_secret(name: str, value: str, hidden: bool) -> None:
    assert (value in server_secrets(env={name: value})) is hidden


def test_a_mask_learns() -> None:
    mask = Mask(["first-secret"])
    mask.learn(["second-secret"])
    assert mask("first-secret second-secret third") == "*** *** third"
