"""MCP_FILE: the usual JSON of MCP servers, with our additions (`docs/mcp.md`), and its problems.
Starts no server and needs no SDK.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from bot.core.language import Bilingual, Language, Phrase, text_in
from config import values
from config.tables import complaints
from frostagent.text.masking import server_secrets
from frostagent.types.errors import Problem

MCP_SETTING = "MCP_FILE"
MCP_MEND = Bilingual("Correct it as docs/mcp.md says", "按 docs/zh/mcp.md 改正")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
TOP = "mcpServers"
LARGEST = 2**20  # bytes of the file

NOT_JSON = Phrase(
    "{file} 不是正确的 JSON：第 {line} 行第 {column} 个字附近",
    "{file} is not JSON: line {line}, column {column}",
)


def _check_url(url: str) -> str:
    if url and not re.match(r"https?://[^/\s]", url):
        raise ValueError(
            Bilingual("must begin with http:// or https://", "要以 http:// 或 https:// 开头")
        )
    return url


def _check_group(number: int) -> int:
    if number < 1:
        raise ValueError(Bilingual("must be the number of a group", "要写群号"))
    return number


class ServerRow(BaseModel):
    """A server's row in the file. `groups` are those whose members may have its tools called,
    empty: all chats; `tools` are the wanted ones, empty: all; `timeout` is in seconds per call.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, strict=True, defer_build=True
    )

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str = ""
    url: Annotated[str, AfterValidator(_check_url)] = ""
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False
    trust: Literal["ask", "read", "full"] = "ask"
    audience: Literal["everyone", "group_admin", "owner"] = "everyone"
    groups: list[Annotated[int, AfterValidator(_check_group)]] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    timeout: Annotated[float, Field(ge=1, le=600, allow_inf_nan=False)] = 60.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts to mask."""
        return server_secrets(env=self.env, headers=self.headers, texts=(self.url, *self.args))


def read_servers(
    file: Path | None, keys: Mapping[str, SecretStr]
) -> tuple[Mapping[str, ServerRow], tuple[Problem, ...]]:
    """Return the valid servers by name, and the problems. `keys` are the variables that the file
    may name as `${NAME}`.
    """
    if file is None:
        return {}, ()
    data, wrong = _read(file)
    good: dict[str, ServerRow] = {}
    for name, written in data.items():
        shown = name[:32]
        if not NAME.fullmatch(name):
            wrong.append(
                Bilingual(
                    f"{file.name}: {shown}: a name has 1 to 32 letters, digits, - or _",
                    f"{file.name}：{shown}：名字要写 1 到 32 个字母、数字、- 或 _",
                )
            )
            continue
        found = list(_faults(written, keys))
        if not found:
            row = ServerRow.model_validate(_filled(written, keys))
            if not row.disabled:
                good[name] = row
        wrong += [
            Bilingual(
                f"{file.name}: {shown}: {fault}",
                f"{file.name}：{shown}：{text_in(Language.CHINESE, fault)}",
            )
            for fault in found
        ]
    problems = [Problem(MCP_SETTING, what, MCP_MEND) for what in wrong]
    if good and not problems and not has_sdk():
        problems.append(
            Problem(
                MCP_SETTING,
                Bilingual("needs a library that is not installed", "需要的库没有安装"),
                Bilingual(
                    "Install it: .venv/bin/pip install -r requirements-mcp.txt; without a"
                    " checkout: pip install 'frostagent[mcp]'",
                    "安装它：.venv/bin/pip install -r requirements-mcp.txt，没有源码目录时用"
                    " pip install 'frostagent[mcp]'",
                ),
            )
        )
    return good, tuple(problems)


def has_sdk() -> bool:
    """Whether the extra `mcp` is installed."""
    return find_spec("mcp") is not None


def variables_in(file: Path | None) -> tuple[str, ...]:
    """The variables that the file names as `${NAME}`, as far as it is readable."""
    if file is None:
        return ()
    data, _ = _read(file)
    return tuple(dict.fromkeys(VARIABLE.findall(json.dumps(data))))


def _read(file: Path) -> tuple[dict[str, Any], list[Bilingual]]:
    shown = values.shown_path(file)
    try:
        raw = file.read_bytes()[: LARGEST + 1]
        data = json.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        why = values.why_unreadable(error)
        return {}, [Bilingual(f"{shown} cannot be read {why}", f"{shown} 读不了{why.zh}")]
    except UnicodeDecodeError:
        return {}, [Bilingual(f"{shown} is not UTF-8 text", f"{shown} 不是 UTF-8 文本")]
    except json.JSONDecodeError as error:
        return {}, [NOT_JSON.fill(file=shown, line=error.lineno, column=error.colno)]
    except RecursionError:
        return {}, [Bilingual(f"{shown} is not JSON", f"{shown} 不是正确的 JSON")]
    servers = data.get(TOP) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        what = Bilingual(
            f'{file.name} has no "{TOP}": servers by their names',
            f"{file.name} 里没有 “{TOP}”：要按名字写服务器",
        )
        return {}, [what]
    return servers, [
        Bilingual(
            f"{file.name} has {name[:32]} beside {TOP}",
            f"{file.name} 里除了 {TOP} 还有 {name[:32]}",
        )
        for name in data
        if name != TOP
    ]


def _faults(written: object, keys: Mapping[str, SecretStr]) -> Iterator[Bilingual]:
    if not isinstance(written, dict):
        yield Bilingual("must be an object", "要写成对象")
        return
    if written.get("type") == "sse":
        yield Bilingual(
            "type: sse is no longer supported; write the server's streamable HTTP URL",
            "type：不再支持 sse，请写服务器的 streamable HTTP 地址",
        )
        return
    for name in dict.fromkeys(VARIABLE.findall(json.dumps(written))):
        if name not in keys:
            yield Bilingual(f"${{{name}}} is not set", f"${{{name}}} 没有设置")
    try:
        row = ServerRow.model_validate(_filled(written, keys))
    except ValidationError as error:
        yield from complaints(error)
        return
    if bool(row.command) == bool(row.url):
        yield Bilingual("needs either command or url", "command 和 url 要写其中一个")
    elif row.url and (row.args or row.env or row.cwd):
        yield Bilingual(
            "args, env and cwd go with a command", "args、env 和 cwd 只能和 command 一起写"
        )
    elif row.command and row.headers:
        yield Bilingual("headers go with a url", "headers 只能和 url 一起写")


def _filled(written: Any, keys: Mapping[str, SecretStr]) -> Any:
    def value_of(found: re.Match[str]) -> str:
        key = keys.get(found[1])
        return found[0] if key is None else key.get_secret_value()

    return _map_texts(written, lambda text: VARIABLE.sub(value_of, text))


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list():
            return [_map_texts(each, change) for each in value]
        case dict():
            return {name: _map_texts(each, change) for name, each in value.items()}
        case _:
            return value
