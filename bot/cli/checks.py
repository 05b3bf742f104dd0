"""The results of `doctor` and `setup`: each check says in both languages what it found and how to
fix it. The report is lines or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from bot.cli.layout import columns
from bot.core.language import CATALOGUE, Bilingual, Phrase, bilingual
from frostagent.types.errors import Problem

NOTHING: Final = Bilingual("", "")

LOG_IN: Final = Phrase(
    "在 OneBot 服务上重新登录账号（在它的 WebUI 里扫码）",
    "Log the account in again at the OneBot server (scan the QR code in its WebUI)",
)
"""How to fix an account that is offline."""
WRONG: Final = Phrase("{name} {what}", "{name} {what}")


class Outcome(StrEnum):
    """WARNING: the bot works without it. PROBLEM: it does not."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


NAMES: Final[Mapping[str, Phrase]] = {
    Outcome.OK: Phrase("正常", "ok"),
    Outcome.WARNING: Phrase("警告", "warning"),
    Outcome.PROBLEM: Phrase("问题", "problem"),
    "account": Phrase("账号", "account"),
    "broker": Phrase("消息队列", "broker"),
    "clock": Phrase("时钟", "clock"),
    "coder": Phrase("Coder 的模型", "coder"),
    "console proxy": Phrase("控制台的代理", "console proxy"),
    "data folder": Phrase("数据目录", "data folder"),
    "drafts": Phrase("草稿", "drafts"),
    "fallback": Phrase("备用模型", "fallback"),
    "games": Phrase("游戏表", "games"),
    "gateways": Phrase("gateway", "gateways"),
    "leases": Phrase("租约", "leases"),
    "limits": Phrase("额度", "limits"),
    "mcp": Phrase("MCP 服务器", "mcp"),
    "media url": Phrase("大文件", "media url"),
    "model": Phrase("模型", "model"),
    "model tools": Phrase("模型调用工具", "model tools"),
    "new groups": Phrase("新的群", "new groups"),
    "onebot": Phrase("OneBot", "onebot"),
    "onebot host": Phrase("OneBot 地址", "onebot host"),
    "onebot port": Phrase("OneBot 端口", "onebot port"),
    "picture": Phrase("图片", "picture"),
    "ports": Phrase("端口", "ports"),
    "prices": Phrase("价格表", "prices"),
    "privacy": Phrase("文件权限", "privacy"),
    "requests": Phrase("好友申请和邀请", "requests"),
    "search": Phrase("联网搜索", "search"),
    "settings": Phrase("配置", "settings"),
    "store": Phrase("数据库", "store"),
    "token": Phrase("令牌", "token"),
    "tools": Phrase("工具", "tools"),
    "documents": Phrase("读文件", "documents"),
    "versions": Phrase("游戏版本", "versions"),
    "vision": Phrase("看图的模型", "vision"),
    "weather": Phrase("天气", "weather"),
    "web port": Phrase("网页端口", "web port"),
    "workers": Phrase("worker", "workers"),
}
"""The displayed names of outcomes and checks."""
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `name` is stable; `fix` says what to do, empty if all is well;
    `setting` is the variable that the fix changes, empty if none.
    """

    name: str
    outcome: Outcome
    said: Bilingual
    fix: Bilingual = NOTHING
    setting: str = ""


def ok(name: str, said: Phrase | str, /, **values: object) -> Check:
    """A passed check. Here and below, `values` fill the placeholders of the texts."""
    return Check(name, Outcome.OK, _filled(said, values))


def warning(name: str, said: Phrase | str, fix: Phrase | str, /, **values: object) -> Check:
    """A problem that the bot can work with."""
    return Check(name, Outcome.WARNING, _filled(said, values), _filled(fix, values))


def failure(name: str, said: Phrase | str, fix: Phrase | str, /, **values: object) -> Check:
    """A problem that keeps the bot from working."""
    return Check(name, Outcome.PROBLEM, _filled(said, values), _filled(fix, values))


def failures(name: str, problems: Iterable[Problem]) -> list[Check]:
    """One check for each problem of a ConfigError."""
    return [failure(name, describe(problem), problem.fix) for problem in problems]


def describe(problem: Problem) -> Bilingual:
    """The setting and what is wrong with it."""
    return WRONG.fill(name=problem.name, what=problem.what)


def to_json(checks: Collection[Check]) -> str:
    """A list of objects {check, verdict, said, mend}, in English."""
    rows = [
        {"check": one.name, "verdict": one.outcome, "said": one.said, "mend": one.fix}
        for one in checks
    ]
    return json.dumps(rows, ensure_ascii=False, indent=2)


def to_text(checks: Collection[Check]) -> Bilingual:
    """One line per check, in columns: outcome, name, and finding with its fix."""
    return columns([_row(check) for check in checks])


def exit_code(checks: Collection[Check]) -> int:
    """1 if there is a problem, else 0."""
    return int(any(check.outcome is Outcome.PROBLEM for check in checks))


def masked(check: Check, mask: Callable[[str], str]) -> Check:
    """The check without secrets: servers quote their requests."""
    return replace(check, said=check.said.each(mask), fix=check.fix.each(mask))


def _filled(line: Phrase | str, values: dict[str, object]) -> Bilingual:
    return line.fill(**values) if isinstance(line, Phrase) else bilingual(line)


def _row(check: Check) -> tuple[str, str, str]:
    said, fix = check.said, check.fix
    words = Bilingual(
        ". ".join(filter(None, (said.en, fix.en))), "。".join(filter(None, (said.zh, fix.zh)))
    )
    outcome, name = NAMES[check.outcome].fill(), NAMES.get(check.name)
    return outcome, name.fill() if name else check.name, words.each(lambda it: " ".join(it.split()))
