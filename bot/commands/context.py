"""`/context`: the size of the next prompt, in tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.core.command import Asked, Command, command, tokens
from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, Phrase
from bot.memory.history import History
from frostagent.models.tokens import estimate, estimate_messages, estimate_text
from frostagent.types.messages import ModelRequest, UserMessage

PERSONA_AND_RULES = Phrase("人设和规则", "persona and rules")
TOOLS = Phrase("工具说明", "tools")
SERVERS = Phrase("{tools}（其中 MCP {servers}）", "{tools} (MCP: {servers})")
SUMMARY = Phrase("摘要", "summary")
ROUNDS = Phrase("对话 {number} 轮", "{number} rounds")
OVERHEARD = Phrase("旁听未读 {overheard} 行", "{overheard} lines overheard")
IN_ALL = Phrase(
    "合计约 {whole} token；对话最多留 {room}",
    "about {whole} tokens in all; rounds may take {room}",
)
CATALOGUE.register(__name__, globals())


@dataclass(frozen=True, slots=True)
class ContextSize:
    """Estimated tokens of the system prompt, the tools, the summary and the included rounds
    (`number` of them); the lines `overheard` since; and the `room` that rounds may take. `servers`
    are the MCP servers whose tools may be included, with the tokens of those tools.
    """

    system: float
    tools: float
    summary: float
    rounds: float
    number: int
    overheard: int
    room: float
    servers: tuple[tuple[str, int], ...] = ()

    @property
    def whole(self) -> float:
        return self.system + self.tools + self.summary + self.rounds


async def measure_context(
    history: History,
    where: Conversation,
    *,
    head: ModelRequest,
    room: float,
    servers: tuple[tuple[str, int], ...] = (),
) -> ContextSize:
    """The size of the next prompt of a conversation after this `head`."""
    await history.load(where)
    rounds = history.messages(where)
    system = estimate_messages(head.messages)
    return ContextSize(
        system=system,
        tools=estimate(head) - system,
        summary=estimate_text(history.summary(where)),
        rounds=estimate_messages(rounds),
        number=sum(isinstance(message, UserMessage) for message in rounds),
        overheard=len(history.unread(where)),
        room=room,
        servers=servers,
    )


def context_command(measure: Callable[[Conversation], Awaitable[ContextSize]]) -> Command:
    """The size by blocks, in the order of the prompt."""

    @command(
        "context", "上下文", about=("下个问题会带上多少", "what the next question will include")
    )
    async def context(asked: Asked) -> str:
        size = await measure(asked.where)
        tools = TOOLS.format(asked.language)
        if size.servers:
            each = ", ".join(f"{name} {tokens(number)}" for name, number in size.servers)
            tools = SERVERS.format(asked.language, tools=tools, servers=each)
        blocks = (
            (PERSONA_AND_RULES.format(asked.language), size.system),
            (tools, size.tools),
            (SUMMARY.format(asked.language), size.summary),
            (ROUNDS.format(asked.language, number=size.number), size.rounds),
        )
        lines = [f"{name}: {tokens(round(number))}" for name, number in blocks]
        room = tokens(round(size.room))
        whole = tokens(round(size.whole))
        return "\n".join(
            [
                *lines,
                OVERHEARD.format(asked.language, overheard=size.overheard),
                IN_ALL.format(asked.language, whole=whole, room=room),
            ]
        )

    return context
