"""What `doctor` and `setup` find out: each check says in both languages how it went and how to fix
it; and the report of all, as lines or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from unicodedata import east_asian_width

from bot.core.language import CATALOGUE, Bilingual, Language, Phrase, bilingual
from frostagent.types.errors import Problem

NOTHING: Final = Bilingual("", "")

LOG_IN: Final = Phrase(
    "在 OneBot 服务上重新登录账号（在它的 WebUI 里扫码）",
    "Log the account in again at the OneBot server (scan the QR code in its WebUI)",
)
"""How to fix an account that is offline."""
WRONG: Final = Phrase("{name} {what}", "{name} {what}")
CATALOGUE.register(__name__, globals())


class Outcome(StrEnum):
    """`OK`; `WARNING`, the bot can do without; `PROBLEM`, it cannot."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


IN_CHINESE: Final = {
    Outcome.OK: "正常",
    Outcome.WARNING: "警告",
    Outcome.PROBLEM: "问题",
    "account": "账号",
    "broker": "消息队列",
    "clock": "时钟",
    "coder": "Coder 的模型",
    "console proxy": "控制台的代理",
    "data folder": "数据目录",
    "drafts": "草稿",
    "fallback": "备用模型",
    "games": "游戏表",
    "gateways": "gateway",
    "leases": "租约",
    "limits": "额度",
    "mcp": "MCP 服务器",
    "media url": "大文件",
    "model": "模型",
    "model tools": "模型调用工具",
    "new groups": "新的群",
    "onebot": "OneBot",
    "onebot host": "OneBot 地址",
    "onebot port": "OneBot 端口",
    "picture": "图片",
    "ports": "端口",
    "prices": "价格表",
    "privacy": "文件权限",
    "requests": "好友申请和邀请",
    "search": "联网搜索",
    "settings": "配置",
    "store": "数据库",
    "token": "令牌",
    "tools": "工具",
    "versions": "游戏版本",
    "vision": "看图的模型",
    "weather": "天气",
    "web port": "网页端口",
    "workers": "worker",
}
"""The outcomes, and the checks by their names, for people."""


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found out. `name` is stable; `fix` says what to do, empty if all is well;
    `setting` is the variable that the fix changes, empty if it changes none.
    """

    name: str
    outcome: Outcome
    said: Bilingual
    fix: Bilingual = NOTHING
    setting: str = ""


def ok(name: str, said: Phrase | str, /, **values: object) -> Check:
    """All is well. Here and below, the lines are filled with `values`, if there are any."""
    return Check(name, Outcome.OK, _filled(said, values))


def warning(name: str, said: Phrase | str, fix: Phrase | str, /, **values: object) -> Check:
    """The bot can do without, but not as well."""
    return Check(name, Outcome.WARNING, _filled(said, values), _filled(fix, values))


def failure(name: str, said: Phrase | str, fix: Phrase | str, /, **values: object) -> Check:
    """The bot cannot work like this."""
    return Check(name, Outcome.PROBLEM, _filled(said, values), _filled(fix, values))


def failures(name: str, problems: Iterable[Problem]) -> list[Check]:
    """The problems of a ConfigError, a line each, under the names that were typed."""
    return [failure(name, describe(problem), problem.mend) for problem in problems]


def describe(problem: Problem) -> Bilingual:
    """What is wrong with a setting."""
    return WRONG.fill(name=problem.name, what=problem.what)


def to_json(checks: Collection[Check]) -> str:
    """A list of objects {check, verdict, said, mend}, in English."""
    rows = [
        {"check": one.name, "verdict": one.outcome, "said": one.said, "mend": one.fix}
        for one in checks
    ]
    return json.dumps(rows, ensure_ascii=False, indent=2)


def to_text(checks: Collection[Check], tongue: Language = Language.ENGLISH) -> str:
    """A line for each check, in columns, the fix behind what is wrong."""
    rows = [_row(check, tongue) for check in checks]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)][:-1]
    return "\n".join("  ".join([*map(_padded, row, widths), row[-1]]) for row in rows)


def exit_code(checks: Collection[Check]) -> int:
    """0 without a problem, else 1."""
    return int(any(check.outcome is Outcome.PROBLEM for check in checks))


def masked(check: Check, mask: Callable[[str], str]) -> Check:
    """The check without secrets: servers quote what they were sent."""
    return replace(check, said=check.said.each(mask), fix=check.fix.each(mask))


def _filled(line: Phrase | str, values: dict[str, object]) -> Bilingual:
    return line.fill(**values) if isinstance(line, Phrase) else bilingual(line)


def _row(check: Check, tongue: Language) -> tuple[str, str, str]:
    """The outcome, the name of the check, and the words."""
    if tongue is Language.CHINESE:
        outcome, name = IN_CHINESE[check.outcome], IN_CHINESE.get(check.name, check.name)
        words = "。".join(filter(None, (check.said.zh, check.fix.zh)))
    else:
        outcome, name = str(check.outcome), check.name
        words = ". ".join(filter(None, (check.said, check.fix)))
    return outcome, name, " ".join(words.split())


def _width(text: str) -> int:
    """How many columns of a terminal it takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
