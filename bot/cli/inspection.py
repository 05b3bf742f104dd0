"""The commands `tools` and `tools call`: a list of all tools, and one call of one of them."""

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
from bot.build import build_media_folder, page_client, sent_media_client
from bot.chat_models import ChatModels
from bot.cli.layout import columns, joined
from bot.cli.past_runs import to_json
from bot.configured_tools import (
    TOOL_PORTS,
    build_ports,
    build_toolset,
    find_tools,
    search_account,
    search_hosts,
)
from bot.core.conversation import NOWHERE
from bot.core.language import CATALOGUE, Bilingual, Phrase
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

NEEDS_CONVERSATION = Phrase(
    "{name} 要在会话里用：它在提问的地方说话，而这里没有人提问。用 `make run ARGS=chat` 试它。",
    "{name} needs a conversation: it speaks where a question was asked, and here was none. Try it"
    " in `make run ARGS=chat`.",
)
MAY_CALL = Phrase("{asks}\n允许这次调用吗？[y/N] ", "{asks}\nAllow this call? [y/N] ")
NO = Phrase("没有在终端上允许", "not allowed at the terminal")
YES = {"y", "yes", "是", "好", "同意"}
HEADS = (
    Phrase("工具", "TOOL"),
    Phrase("类型", "TYPE"),
    Phrase("许可", "PERMISSION"),
    Phrase("谁能用", "AUDIENCE"),
    Phrase("作用", "SIDE EFFECTS"),
    Phrase("现在能用", "AVAILABLE"),
)
AVAILABLE = Phrase("能", "yes")
UNAVAILABLE = Phrase("不能：{reason}", "no: it {reason}")
PICTURE = Phrase("[图片：{count} 个字符]", "[picture: {count} characters]")
CATALOGUE.register(__name__, globals())

Ask = Callable[[str], str]


def list_tools(
    settings: Settings, *, clock: Clock | None = None
) -> tuple[list[dict[str, Any]], tuple[Problem, ...]]:
    """Every tool with its properties, and the problems of the files that tools come from."""
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


def tools_to_text(rows: Iterable[Mapping[str, Any]]) -> Bilingual:
    """A line for each tool, in columns."""
    heads = [head.fill() for head in HEADS]
    keys = ("name", "type", "permission", "audience", "side_effects")
    told = [
        [*(row[key] for key in keys), (AVAILABLE if row["available"] else UNAVAILABLE).fill(**row)]
        for row in rows
    ]
    return columns([heads, *told])


@dataclass(frozen=True, slots=True)
class TerminalApprover:
    """Asks the person at the terminal: `ask` prints a question and returns the line they type."""

    ask: Ask

    async def approve(self, request: ApprovalRequest) -> Allow | Deny:
        """Fits `Approver`."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()
        question = MAY_CALL.fill(asks=request.asks.translate(UNSAFE))

        def read() -> None:
            try:
                answer = self.ask(question)
            except EOFError:
                answer = ""
            with suppress(RuntimeError):  # the command has ended meanwhile
                loop.call_soon_threadsafe(answered.set_result, answer)

        # Not a thread of the loop: the loop waits for those when it closes.
        threading.Thread(target=read, daemon=True, name="terminal").start()
        return Allow() if (await answered).strip().lower() in YES else Deny(NO.fill())


async def call_tool(
    settings: Settings, name: str, arguments: str, *, ask: Ask | None, tell: Callable[[str], None]
) -> ToolResult:
    """Run a tool as the engine would, with an owner's rights. If `ask` is None, a call that needs
    approval is refused. Progress goes to `tell`.
    """
    clock, ids = SystemClock(), RandomIds()
    found = find_tools(settings)
    report(found.problems)
    toolset = build_toolset(settings, found.tools, clock=clock)
    tool = toolset.get(name)
    if tool is not None and Speaker in tool.needs:
        lacking = ToolUnavailable(NEEDS_CONVERSATION.fill(name=name))
        return ToolResult(lacking.told, is_error=True, code=lacking.code)

    def say(line: Bilingual) -> None:
        tell(line)

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


def result_to_text(result: ToolResult) -> Bilingual:
    """The result as the model would read it."""
    pictures = [PICTURE.fill(count=len(image.url)) for image in result.images]
    return joined([result.content.translate(UNSAFE_IN_TRACEBACKS), *pictures])


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
