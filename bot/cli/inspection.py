"""The tools as an operator looks at them: a list, and one call of one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

from adapters.fetching.client import HttpxWeb
from adapters.fetching.lazy import LazyWeb
from adapters.logs.output import UNSAFE, UNSAFE_IN_TRACEBACKS
from adapters.media.reader_process import ReaderProcess
from bot.build import build_media_folder, owners_language, page_client, sent_media_client
from bot.chat_models import ChatModels
from bot.cli.past_runs import columns, to_json
from bot.configured_tools import (
    TOOL_PORTS,
    build_ports,
    build_toolset,
    find_tools,
    search_account,
    search_hosts,
)
from bot.core.conversation import NOWHERE
from bot.core.language import Bilingual, text_in
from bot.runtime.tool_discovery import report
from bot.runtime.version import user_agent
from bot.subagents import SubagentRegistry
from config.settings import Settings
from frostagent.clock import RandomIds, SystemClock
from frostagent.engine.tool_execution import Progress
from frostagent.models.openai.client import make_session
from frostagent.types.errors import Problem, ToolUnavailable
from frostagent.types.ports import Approver, Clock, Speaker
from frostagent.types.results import ToolResult
from frostagent.types.runs import Asker
from frostagent.types.suspension import Allow, ApprovalRequest, Deny
from frostagent.types.tools import Tool, ToolContext
from tools.get_game_version.games import Games
from tools.read_page.pages import Pages
from tools.search_web.search import WebSearch

NEEDS_CONVERSATION = (
    "{name} needs a conversation: it speaks where somebody asked, and here nobody did. Try it in "
    "`make run ARGS=chat`."
)
NO = "not allowed at the terminal"
YES = {"y", "yes", "是", "好", "同意"}

Ask = Callable[[str], str]


def list_tools(
    settings: Settings, *, clock: Clock | None = None
) -> tuple[list[dict[str, Any]], tuple[Problem, ...]]:
    """Every tool with what is to be known of it, and what is wrong with the files they come
    from.
    """
    found = find_tools(settings)
    toolset = build_toolset(settings, found.tools, clock=clock or SystemClock())
    states = zip(toolset.list(), toolset.check_availability(TOOL_PORTS), strict=True)
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
    told = [
        (*(row[key] for key in keys), "yes" if row["available"] else f"no: it {row['reason']}")
        for row in rows
    ]
    return columns([heads, *told])


@dataclass(frozen=True, slots=True)
class TerminalApprover:
    """Asks whoever sits at the terminal; `ask` prints a question and gives the line that is
    typed.
    """

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
    """Run a tool as the engine would, on an owner's authority; nobody can be asked about it where
    `ask` is None.

    What is said while it runs goes to `tell`.
    """
    clock, ids = SystemClock(), RandomIds()
    found = find_tools(settings)
    report(found.problems)
    toolset = build_toolset(settings, found.tools, clock=clock)
    tool = toolset.get(name)
    if tool is not None and Speaker in tool.needs:
        lacking = ToolUnavailable(NEEDS_CONVERSATION.format(name=name))
        return ToolResult(lacking.told, is_error=True, code=lacking.code)

    def say(line: Bilingual) -> None:
        tell(text_in(owners_language(settings), line))

    async with AsyncExitStack() as stack:
        subagents = None
        if settings.coder_endpoint.base_url:
            session = await stack.enter_async_context(make_session())
            models = ChatModels(
                settings,
                session=session,
                clock=clock,
                ids=ids,
                tell=say,
            )
            subagents = SubagentRegistry(
                settings, model_at=models.at, toolset=toolset, clock=clock
            ).subagents
            tool = toolset.get(name)
        web = HttpxWeb(
            clock=clock,
            user_agent=user_agent(settings.tools_contact),
            base_urls=settings.tools_mirrors,
        )
        stack.push_async_callback(web.aclose)
        search_client = LazyWeb(
            clock=clock,
            user_agent=user_agent(settings.tools_contact),
            base_urls=search_hosts(settings),
        )
        stack.push_async_callback(search_client.aclose)
        games = Games(clock=clock, file=settings.games_file)
        sent = sent_media_client(settings, clock=clock)
        stack.push_async_callback(sent.aclose)
        media = build_media_folder(settings, client=sent)
        pages_client = page_client(settings, clock=clock)
        stack.push_async_callback(pages_client.aclose)
        reader = ReaderProcess()
        stack.push_async_callback(reader.aclose)
        ports = build_ports(
            settings,
            subagents=subagents,
            media=media,
            web=web,
            games=games,
            search=WebSearch(search_account(settings), web=search_client, clock=clock),
            pages=Pages(web=pages_client, documents=reader, clock=clock),
            clock=clock,
        )
        if ask is not None:
            ports[Approver] = TerminalApprover(ask)
        return await toolset.execute(name, arguments, _context(tool, ports, clock, tell))


def _context(
    tool: Tool | None, ports: Mapping[type, object], clock: Clock, tell: Callable[[str], None]
) -> ToolContext:
    return ToolContext(
        run_id="tools",
        step=1,
        call_id="call",
        conversation=str(NOWHERE),
        asker=Asker("0", "operator", is_owner=True),
        deadline=clock.monotonic() + (tool.timeout if tool else 0.0),
        ports=ports,
        reports=Progress(lambda partial: tell(partial.content)),
    )


def result_to_text(result: ToolResult) -> str:
    """The result as the model would read it."""
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
