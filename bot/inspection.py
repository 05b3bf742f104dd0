"""What an operator looks at: the tools there are, one call of a tool, the runs there were."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, closing, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from pydantic_core import to_jsonable_python

from adapters.fetching.client import HttpxWeb
from adapters.logs.lines import UNSAFE, UNSAFE_IN_TRACEBACKS
from adapters.metrics.metrics import Metrics
from adapters.openai.client import make_session
from adapters.storage.database import Database
from adapters.storage.run_lines import lines_of_run, run_lines
from adapters.traces.lines import Line
from adapters.traces.reading import RunSummary, chain, interrupted, read_lines, summaries
from bot.app import as_it_is, user_agent
from bot.assembly import build_models
from bot.clock import RandomIds, SystemClock
from bot.discovery import report
from bot.domain.errors import Problem, ToolUnavailable
from bot.domain.ports import Clock, Speaker
from bot.domain.result import ToolResult
from bot.domain.run import Asker
from bot.domain.suspension import Allow, ApprovalRequest, Deny
from bot.domain.tool import Progress, Tool, ToolContext
from bot.media import open_media
from bot.staffing import Staff
from bot.tooling import PORTS, build_ports, build_toolset, find_tools
from bot.toolset import NOWHERE
from config.settings import Settings
from tools.get_game_version.games import Games

logger = logging.getLogger(__name__)

NEEDS_CONVERSATION = (
    "{name} needs a conversation: it speaks where somebody asked, and here nobody did. Try it in `make run ARGS=chat`."
)
NO = "not allowed at the terminal"
YES = {"y", "yes", "是", "好", "同意"}

Ask = Callable[[str], str]
Journal = Callable[[], AbstractContextManager[Database]]


# --- tools ----------------------------------------------------------------------------------------


def list_tools(settings: Settings, *, clock: Clock | None = None) -> tuple[list[dict[str, Any]], tuple[Problem, ...]]:
    """Every tool with what is to be known of it, and what is wrong with the files they come from."""
    found = find_tools(settings)
    toolset = build_toolset(settings, found.tools, clock=clock or SystemClock())
    states = zip(toolset.list(), toolset.check_availability(PORTS), strict=True)
    rows = [
        {
            "name": tool.name,
            "type": str(tool.type),
            "permission": str(toolset.permission_of(tool)),
            "audience": str(tool.audience),
            "side_effects": str(tool.side_effects),
            "available": status.available,
            "reason": status.reason,
            "label": tool.label,
            "summary": tool.summary,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "idempotent": tool.idempotent,
            "timeout": tool.timeout,
            "rate": str(tool.rate or ""),
            "needs": [need.__name__ for need in tool.needs],
            "requires": list(tool.requires),
        }
        for tool, status in states
    ]
    return rows, found.problems


def tools_to_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """A line for each tool, in columns."""
    heads = ("TOOL", "TYPE", "PERMISSION", "AUDIENCE", "SIDE EFFECTS", "AVAILABLE")
    keys = ("name", "type", "permission", "audience", "side_effects")
    told = [(*(row[key] for key in keys), "yes" if row["available"] else f"no: it {row['reason']}") for row in rows]
    return columns([heads, *told])


@dataclass(frozen=True, slots=True)
class TerminalApprover:
    """Asks whoever sits at the terminal; `ask` prints a question and gives the line that is typed."""

    ask: Ask

    async def approve(self, request: ApprovalRequest) -> Allow | Deny:
        """Fits `Approver`."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()
        question = f"{request.asks.translate(UNSAFE)}\nAllow this call? 允许吗？[y/N] "

        def read() -> None:
            try:
                answer = self.ask(question)
            except EOFError:
                answer = ""
            with suppress(RuntimeError):  # the command has ended meanwhile
                loop.call_soon_threadsafe(answered.set_result, answer)

        # Not one of the loop's own threads: those are waited for at the end.
        threading.Thread(target=read, daemon=True, name="terminal").start()
        return Allow() if (await answered).strip().lower() in YES else Deny(NO)


async def call_tool(
    settings: Settings, name: str, arguments: str, *, ask: Ask | None, tell: Callable[[str], None]
) -> ToolResult:
    """Run a tool as the engine would, on an owner's authority; nobody can be asked about it where `ask` is None.

    What is said while it runs goes to `tell`.
    """
    clock, ids = SystemClock(), RandomIds()
    found = find_tools(settings)
    report(found.problems)
    toolset = build_toolset(settings, found.tools, clock=clock)
    toolset.approver = None if ask is None else TerminalApprover(ask)
    tool = toolset.get(name)
    if tool is not None and Speaker in tool.needs:
        text = NEEDS_CONVERSATION.format(name=name)
        return ToolResult(f"error: {text} [{ToolUnavailable.code}]", is_error=True, code=ToolUnavailable.code)
    async with AsyncExitStack() as stack:
        staff = None
        if settings.coder_endpoint.base_url:
            session = await stack.enter_async_context(make_session())
            metrics = Metrics(tools=found.names, clock=clock)
            models = build_models(
                settings, session=session, wrap=as_it_is, metrics=metrics, clock=clock, ids=ids, tell=tell
            )
            staff = Staff(settings, models=models, toolset=toolset, clock=clock).subagents
            tool = toolset.get(name)
        web = HttpxWeb(clock=clock, user_agent=user_agent(settings), base_urls=settings.tools_mirrors)
        stack.push_async_callback(web.aclose)
        games = Games(clock=clock, file=settings.games_file)
        media = await stack.enter_async_context(open_media(settings, clock=clock, user_agent=user_agent(settings)))
        ports = build_ports(settings, subagents=staff, media=media.media, web=web, games=games, clock=clock)
        return await toolset.execute(name, arguments, _context(tool, ports, clock, tell))


def _context(tool: Tool | None, ports: Mapping[type, object], clock: Clock, tell: Callable[[str], None]) -> ToolContext:
    return ToolContext(
        run_id="tools",
        step=1,
        call_id="call",
        conversation=NOWHERE,
        asker=Asker(0, "operator", is_owner=True),
        deadline=clock.monotonic() + (tool.timeout if tool else 0.0),
        ports=ports,
        reports=Progress(lambda partial: tell(partial.content)),
    )


def result_to_text(result: ToolResult) -> str:
    """What the model would read."""
    pictures = [f"[picture: {len(image.url)} characters]" for image in result.images]
    return "\n".join([result.content.translate(UNSAFE_IN_TRACEBACKS), *pictures])


def result_to_json(result: ToolResult) -> str:
    """The result as data, with the details that only people see."""
    images = [image.url for image in result.images]
    told = {
        "content": result.content,
        "is_error": result.is_error,
        "code": result.code,
        "details": result.details,
        "images": images,
    }
    return to_json(told)


# --- runs -----------------------------------------------------------------------------------------


def latest_runs(settings: Settings, journal: Journal, *, limit: int) -> list[RunSummary]:
    """The latest runs, the newest first: of the file LOG_RUNS, of the journal where that is not set."""
    if settings.log_runs is not None:
        found = list(islice(summaries(_lines_of_file(settings)), limit))
        return list(map(interrupted, found)) if _nobody_runs(settings) else found
    with journal() as database:
        with database.reading() as connection:
            found = summaries(run_lines(connection, limit=limit, content=False))
        return found if database.holder() is not None else list(map(interrupted, found))


def _nobody_runs(settings: Settings) -> bool:
    """Whether no process has the journal; False where that cannot be known."""
    if not hasattr(os, "fork"):  # Windows has no lock to look at
        return False
    try:
        with closing(Database(settings.store_url.get_secret_value(), migrate=lambda _: None)) as database:
            return database.holder() is None
    except Exception:
        logger.debug("nobody knows whether a bot runs", exc_info=True)
        return False


def lines_of(settings: Settings, journal: Journal, run: str) -> list[Line]:
    """All that is known of one run; in the file, the beginning of its id will do. Texts with LOG_CONTENT=1 only."""
    if settings.log_runs is not None:
        return chain(_lines_of_file(settings), run)
    with journal() as database, database.reading() as connection:
        return list(lines_of_run(connection, run, content=settings.log_content))


def _lines_of_file(settings: Settings) -> Iterator[Line]:
    if settings.log_runs is None or not settings.log_runs.exists():
        return
    with settings.log_runs.open(encoding="utf-8", errors="replace") as file:
        yield from read_lines(file)


def runs_to_text(runs: Iterable[RunSummary]) -> str:
    """A line for each run, in columns."""
    heads = ("RUN", "STARTED", "OUTCOME", "STEPS", "TOOLS", "TOKENS", "COST", "SECONDS", "CONVERSATION")
    return columns([heads, *map(_row, runs)])


def _row(run: RunSummary) -> tuple[str, ...]:
    times = Counter(run.tools)
    tools = " ".join(name if number == 1 else f"{name}*{number}" for name, number in times.items())
    failed = f" ({run.failed} failed)" if run.failed else ""
    return (
        run.run,
        _here(run.started),
        run.outcome,
        str(run.steps),
        f"{tools or '-'}{failed}",
        str(run.tokens),
        "-" if run.cost is None else f"${run.cost:.4f}",
        f"{run.seconds:.1f}",
        run.conversation,
    )


def chain_to_text(lines: Iterable[Line]) -> str:
    """A run from its start to its end: each answer of the model, then the calls it made."""
    return "\n".join(
        f"{_here(str(line['timestamp']), 'milliseconds')}  {_told(line)}".translate(UNSAFE) for line in lines
    )


def _here(moment: str, to: str = "seconds") -> str:
    """A moment in UTC as the clock on the wall has it, with its zone: 2026-01-31 20:00:00+08:00."""
    try:
        return datetime.fromisoformat(moment).astimezone().isoformat(" ", to)
    except ValueError:
        return moment


def _told(line: Line) -> str:
    match line:
        case {"layer": "run", "action": "end"}:
            why = f": {line['error']}" if line.get("error") else ""
            return f"run {line['run']} {line['outcome']}{why}, {line['steps']} steps{_took(line)}{_said(line, 'text')}"
        case {"layer": "run", "action": action}:
            where = f" in {line['conversation']} for {line['asker']}" if "conversation" in line else ""
            return f"run {line['run']} {action}{where}"
        case {"layer": "inference"}:
            calls = f", calls {' '.join(line['calls'])}" if line.get("calls") else ""
            tokens = "" if line.get("prompt") is None else f", {line['prompt']} + {line['completion']} tokens"
            answer = f"step {line['step']}: {line['model'] or 'the model'} answered {line['response']}"
            return f"{answer} ({line['finish']}{tokens}{calls}){_took(line)}{_said(line, 'text')}"
        case {"layer": "tool", "action": "execute_start"}:
            return f"step {line['step']}: {line['name']} {line['call_id']} starts{_said(line, 'args')}"
        case {"layer": "tool"}:
            how = "cancelled" if line["action"] == "execute_cancelled" else line.get("error") or "ok"
            result = "" if line.get("error") else _said(line, "result")
            return f"step {line['step']}: {line['name']} {line['call_id']} {how}{_took(line)}{_waited(line)}{result}"
        case _:
            return json.dumps(line, ensure_ascii=False)


def _took(line: Line) -> str:
    return f", {line['duration_ms'] / 1000:.2f} s" if line.get("duration_ms") is not None else ""


def _waited(line: Line) -> str:
    milliseconds = line.get("waited_ms") or 0
    return f" after {milliseconds / 1000:.2f} s" if milliseconds >= 10 else ""


def _said(line: Line, name: str) -> str:
    match line.get(name):
        case None | "":
            return ""
        case str(text):
            return f"  {text}"
        case value:
            return f"  {json.dumps(value, ensure_ascii=False)}"


# --- how it is told -------------------------------------------------------------------------------


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of texts, each column as wide as its widest; nothing in it commands a terminal."""
    safe = [[text.translate(UNSAFE) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*safe, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in safe)


def to_json(value: object) -> str:
    """For programs."""
    return json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False, indent=2)
