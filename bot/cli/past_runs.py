"""The commands `runs` and `runs show`. Apart from `inspection`, which imports all that tools need:
without it they start in a third of the time.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from datetime import datetime
from itertools import islice
from typing import Final

from pydantic_core import to_jsonable_python

from adapters.logs.output import UNSAFE
from adapters.storage.database import Database
from adapters.storage.queries.export import lines_of_run, run_lines
from adapters.traces.run_log import RunSummary, chain, interrupted, read_lines, summaries
from bot.cli.layout import columns, joined
from bot.core.journal import Undelivered
from bot.core.language import CATALOGUE, Bilingual, Phrase
from config.settings import Settings
from frostagent.tracing import Line
from frostagent.types.runs import Stop

logger = logging.getLogger(__name__)

DELIVERIES: Final[Mapping[str, Phrase]] = {
    Stop.ANSWERED: Phrase("后来送到了", "arrived after all"),
    Undelivered.NOT_DELIVERED: Phrase("没有送到", "not delivered"),
    Undelivered.UNCONFIRMED: Phrase("QQ 没有确认", "not confirmed by QQ"),
}
HEADS: Final = (
    Phrase("运行", "RUN"),
    Phrase("开始", "STARTED"),
    Phrase("结果", "OUTCOME"),
    Phrase("步数", "STEPS"),
    Phrase("工具", "TOOLS"),
    Phrase("token", "TOKENS"),
    Phrase("费用", "COST"),
    Phrase("秒", "SECONDS"),
    Phrase("会话", "CONVERSATION"),
)
TOOLS: Final = Phrase("{tools}（{failed} 次失败）", "{tools} ({failed} failed)")
AT: Final = Phrase("{moment}  {what}", "{moment}  {what}")
RUN_ENDS: Final = Phrase(
    "运行 {run} {outcome}{why}，{steps} 步{took}{said}",
    "run {run} {outcome}{why}, {steps} steps{took}{said}",
)
WHY: Final = Phrase("：{why}", ": {why}")
DELIVERED: Final = Phrase("运行 {run} 的回答：{outcome}", "run {run}, its answer: {outcome}")
RUN_DOES: Final = Phrase("运行 {run} {action}{where}", "run {run} {action}{where}")
WHERE: Final = Phrase("，在 {conversation}，{asker} 问的", " in {conversation} for {asker}")
ANSWERED: Final = Phrase(
    "第 {step} 步：{model} 回答了 {response}（{finish}{tokens}{calls}）{took}{said}",
    "step {step}: {model} answered {response} ({finish}{tokens}{calls}){took}{said}",
)
A_MODEL: Final = Phrase("模型", "the model")
TOKENS: Final = Phrase("，{prompt} + {completion} token", ", {prompt} + {completion} tokens")
CALLS: Final = Phrase("，调用 {calls}", ", calls {calls}")
TOOL_STARTS: Final = Phrase(
    "第 {step} 步：{name} {call_id} 开始{said}", "step {step}: {name} {call_id} starts{said}"
)
TOOL_ENDS: Final = Phrase(
    "第 {step} 步：{name} {call_id} {how}{took}{waited}{said}",
    "step {step}: {name} {call_id} {how}{took}{waited}{said}",
)
CANCELLED: Final = Phrase("已取消", "cancelled")
FINE: Final = Phrase("正常", "ok")
TOOK: Final = Phrase("，{seconds} 秒", ", {seconds} s")
WAITED: Final = Phrase("，先等了 {seconds} 秒", " after {seconds} s")
CATALOGUE.register(__name__, globals())

Journal = Callable[[], AbstractContextManager[Database]]


def latest_runs(settings: Settings, journal: Journal, *, limit: int) -> list[RunSummary]:
    """The latest runs, newest first: from the file LOG_RUNS, or from the journal if that is not
    set.
    """
    if settings.log_runs is not None:
        found = list(islice(summaries(_lines_of_file(settings)), limit))
        return list(map(interrupted, found)) if _nobody_runs(settings) else found
    with journal() as database:
        with database.reading() as connection:
            found = summaries(run_lines(connection, limit=limit, content=False))
        return found if database.holder() is not None else list(map(interrupted, found))


def _nobody_runs(settings: Settings) -> bool:
    """Whether no process has the journal open; False if that is unknown."""
    if not hasattr(os, "fork"):  # on Windows there is no lock to check
        return False
    try:
        with closing(
            Database(settings.store_url.get_secret_value(), migrate=lambda _: None)
        ) as database:
            return database.holder() is None
    except Exception:
        logger.debug("nobody knows whether a bot runs", exc_info=True)
        return False


def lines_of(settings: Settings, journal: Journal, run: str) -> list[Line]:
    """All records of a run. In the file LOG_RUNS, the beginning of the run's ID is enough. Texts
    are included only with LOG_CONTENT=1.
    """
    if settings.log_runs is not None:
        return chain(_lines_of_file(settings), run)
    with journal() as database, database.reading() as connection:
        return list(lines_of_run(connection, run, content=settings.log_content))


def _lines_of_file(settings: Settings) -> Iterator[Line]:
    if settings.log_runs is None or not settings.log_runs.exists():
        return
    with settings.log_runs.open(encoding="utf-8", errors="replace") as file:
        yield from read_lines(file)


def runs_to_text(runs: Iterable[RunSummary]) -> Bilingual:
    """A line for each run, in columns."""
    return columns([[head.fill() for head in HEADS], *map(_row, runs)])


def _row(run: RunSummary) -> tuple[str, ...]:
    times = Counter(run.tools)
    tools = " ".join(name if number == 1 else f"{name}*{number}" for name, number in times.items())
    return (
        run.run,
        _here(run.started),
        run.outcome,
        str(run.steps),
        TOOLS.fill(tools=tools or "-", failed=run.failed) if run.failed else tools or "-",
        str(run.tokens),
        "-" if run.cost is None else f"${run.cost:.4f}",
        f"{run.seconds:.1f}",
        run.conversation,
    )


def chain_to_text(lines: Iterable[Line]) -> Bilingual:
    """A run from its start to its end: each answer of the model, then the calls it made."""
    return joined(
        AT.fill(moment=_here(str(line["timestamp"]), "milliseconds"), what=_told(line)).each(
            lambda text: text.translate(UNSAFE)
        )
        for line in lines
    )


def _here(moment: str, to: str = "seconds") -> str:
    """A UTC time as local time with its zone: 2026-01-31 20:00:00+08:00."""
    try:
        return datetime.fromisoformat(moment).astimezone().isoformat(" ", to)
    except ValueError:
        return moment


def _told(line: Line) -> str:
    match line:
        case {"layer": "run", "action": "end"}:
            return RUN_ENDS.fill(
                run=line["run"],
                outcome=line["outcome"],
                why=WHY.fill(why=line["error"]) if line.get("error") else "",
                steps=line["steps"],
                took=_took(line),
                said=_said(line, "text"),
            )
        case {"layer": "run", "action": "delivery"}:
            outcome = DELIVERIES.get(line["outcome"], line["outcome"])
            return DELIVERED.fill(run=line["run"], outcome=outcome)
        case {"layer": "run", "action": action}:
            where = (
                WHERE.fill(conversation=line["conversation"], asker=line["asker"])
                if "conversation" in line
                else ""
            )
            return RUN_DOES.fill(run=line["run"], action=action, where=where)
        case {"layer": "inference"}:
            is_counted = line.get("prompt") is not None
            return ANSWERED.fill(
                step=line["step"],
                model=line["model"] or A_MODEL,
                response=line["response"],
                finish=line["finish"],
                tokens=TOKENS.fill(prompt=line["prompt"], completion=line["completion"])
                if is_counted
                else "",
                calls=CALLS.fill(calls=" ".join(line["calls"])) if line.get("calls") else "",
                took=_took(line),
                said=_said(line, "text"),
            )
        case {"layer": "tool", "action": "execute_start"}:
            return TOOL_STARTS.fill(
                step=line["step"],
                name=line["name"],
                call_id=line["call_id"],
                said=_said(line, "args"),
            )
        case {"layer": "tool"}:
            is_cancelled = line["action"] == "execute_cancelled"
            return TOOL_ENDS.fill(
                step=line["step"],
                name=line["name"],
                call_id=line["call_id"],
                how=CANCELLED if is_cancelled else line.get("error") or FINE,
                took=_took(line),
                waited=_waited(line),
                said="" if line.get("error") else _said(line, "result"),
            )
        case _:
            return json.dumps(line, ensure_ascii=False)


def _took(line: Line) -> str:
    milliseconds = line.get("duration_ms")
    return "" if milliseconds is None else TOOK.fill(seconds=f"{milliseconds / 1000:.2f}")


def _waited(line: Line) -> str:
    milliseconds = line.get("waited_ms") or 0
    return WAITED.fill(seconds=f"{milliseconds / 1000:.2f}") if milliseconds >= 10 else ""


def _said(line: Line, name: str) -> str:
    match line.get(name):
        case None | "":
            return ""
        case str(text):
            return f"  {text}"
        case value:
            return f"  {json.dumps(value, ensure_ascii=False)}"


def to_json(value: object) -> str:
    """The value as JSON, for programs."""
    return json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False, indent=2)
