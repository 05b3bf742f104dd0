"""Entries for tests: plain ones, and hypothesis's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from adapters.storage.batches import Put
from adapters.storage.database import Database
from bot.core.actions import SendMessage
from bot.core.conversation import Conversation
from bot.core.events import MessageReceived, Sender
from bot.core.jobs import Job, JobKind, JobMade
from bot.core.journal import (
    AttachmentNamed,
    Entry,
    Judged,
    MessageObserved,
    RequestMade,
    SendQueued,
    TurnClosed,
    TurnOpened,
    TurnSteered,
)
from bot.core.memories import MemoryKept, StoredFact, Visibility
from bot.core.segments import Mention, Picture, Segment
from bot.policy.memory_rules import terms
from frostagent.types.messages import (
    AssistantMessage,
    Completion,
    FinishReason,
    Message,
    Reasoning,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from frostagent.types.runs import StepFinished, Stop, ToolFinished, ToolStarted
from frostagent.types.speech import Attachment, Face, Quote, Text
from tests.fakes import BOT, GROUP, said

T = TypeVar("T")

NOW = 1_700_000_000.0
ANSWER = AssistantMessage("你好！", reasoning=Reasoning("hm", "https://x.test/v1", "m", "reasoning_content"))
CALLING = AssistantMessage(
    tool_calls=(ToolCall("c1", "get_weather", '{"city": "北京"}'), ToolCall("c2", "nothing", "{"))
)


def heard(text: str = "chatter", **more: Any) -> MessageObserved:
    """Somebody says something that is not for the bot."""
    return MessageObserved(said(text, at=False, **more), overheard=True)


def asked(text: str = "hello", **more: Any) -> MessageObserved:
    """Somebody says something to the bot."""
    return MessageObserved(said(text, **more), overheard=False)


def verdict(sender: int = 777) -> Judged:
    """Somebody called the bot."""
    return Judged(conversation=GROUP, message_id="5", sender=sender, wakes=True, reason="mention")


def opening(
    turn_id: str, question: MessageReceived | None = None, *, at: float = NOW, retry_of: str = ""
) -> TurnOpened:
    question = question or said("hello")
    user = UserMessage(f"[提问]\n{question.sender.name}({question.sender.user_id}): hello")
    return TurnOpened(turn_id=turn_id, question=question, user=user, at=at, retry_of=retry_of)


def steering(turn_id: str, message: MessageReceived | None = None, *, step: int = 0) -> TurnSteered:
    """Its asker says more."""
    message = message or said("no, tomorrow")
    text = "".join(segment.text for segment in message.segments if isinstance(segment, Text))
    return TurnSteered(turn_id=turn_id, message=message, user=UserMessage(text), step=step)


def closing(opened: TurnOpened, *answer: Message, stop: Stop = Stop.ANSWERED, keep: bool = True) -> TurnClosed:
    return TurnClosed(
        turn_id=opened.turn_id,
        stop=stop,
        round=(opened.user, *(answer or (ANSWER,))) if keep else (),
        usage=Usage(10, 5),
        steps=1,
        at=opened.at + 1,
    )


def step(turn_id: str, number: int = 1, message: AssistantMessage = ANSWER) -> StepFinished:
    completion = Completion(message, FinishReason.STOP, Usage(10, 5, 3, 1, 0.25), model="demo")
    return StepFinished(run_id=turn_id, step=number, completion=completion, seconds=0.5)


def beside(turn_id: str, message: AssistantMessage | None = None, *, outcome: str = "ok") -> RequestMade:
    """A request that is no step of its turn: a subagent's."""
    return RequestMade(
        turn_id=turn_id, model="demo", outcome=outcome, seconds=0.5, at=NOW, run=f"{turn_id}/1/c1", message=message
    )


def began(turn_id: str, step: int = 1, call_id: str = "c1", name: str = "get_weather") -> ToolStarted:
    return ToolStarted(run_id=turn_id, step=step, call=ToolCall(call_id, name, ""))


def ended(turn_id: str, result: ToolMessage, step: int = 1, *, code: str = "ok", seconds: float = 1.0) -> ToolFinished:
    call = ToolCall(result.call_id, result.name, "")
    return ToolFinished(run_id=turn_id, step=step, call=call, result=result, code=code, seconds=seconds)


def sending(send_id: str, turn_id: str, text: str = "你好！", where: Conversation = GROUP, **more: Any) -> SendQueued:
    return SendQueued(
        send_id=send_id, turn_id=turn_id, action=SendMessage(where, (Text(text),)), final=True, at=NOW, **more
    )


def job(number: int, words: str = "交作业", *, where: Conversation = GROUP, maker: int = 777, **more: Any) -> JobMade:
    """A reminder for a minute from now."""
    moments = {"made": NOW, "due": NOW + 60, "wake": NOW + 60, "kind": JobKind.TEXT, "message_id": "1"}
    return JobMade(Job(number=number, where=where, maker=maker, words=words, **{**moments, **more}))


def fact(
    memory_id: str,
    text: str,
    *,
    where: Conversation = GROUP,
    subject: int = 777,
    author: int = 777,
    visibility: Visibility = Visibility.HERE,
    used: float = NOW,
    expires: float = NOW + 1e6,
    sources: tuple[str, ...] = ("1", "2"),
) -> MemoryKept:
    memory = StoredFact(
        memory_id=memory_id,
        scope=where,
        subject=subject,
        author=author,
        text=text,
        visibility=visibility,
        sources=sources,
        made=NOW,
        used=used,
        expires=expires,
    )
    return MemoryKept(memory, terms(text))


# --- any ------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(1, 2**63 - 1)
COLUMNS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)

SEGMENT: st.SearchStrategy[Segment] = st.one_of(
    st.builds(Text, WORDS),
    st.builds(Mention, NUMBERS, WORDS),
    st.builds(Quote, WORDS),
    st.builds(Face, WORDS, WORDS),
    st.builds(Picture, WORDS, WORDS, WORDS, st.integers(0, 2**40), st.booleans()),
)

CALLS = st.lists(st.builds(ToolCall, WORDS, WORDS, WORDS, WORDS), max_size=2).map(tuple)
MESSAGE: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, WORDS, st.lists(WORDS, max_size=2).map(tuple)),
    st.builds(AssistantMessage, WORDS, CALLS, st.none() | st.builds(Reasoning, WORDS, WORDS, WORDS, WORDS, WORDS)),
    st.builds(ToolMessage, WORDS, WORDS, WORDS, st.booleans()),
)
ROUND = st.lists(MESSAGE, min_size=1, max_size=4).map(tuple)
SEND = st.lists(
    st.one_of(
        st.builds(Text, WORDS),
        st.builds(Quote, WORDS),
        st.builds(Attachment, st.sampled_from(["image", "record", "video", "file"]), WORDS, WORDS),
    ),
    max_size=3,
).map(tuple)


@st.composite
def messages(
    draw: st.DrawFn, where: Conversation = GROUP, message_id: st.SearchStrategy[str] = COLUMNS
) -> MessageReceived:
    """Anything anybody may say there."""
    return MessageReceived(
        self_id=BOT,
        time=draw(st.floats(0, 2e9)),
        conversation=where,
        message_id=draw(message_id),
        sender=Sender(
            draw(NUMBERS), draw(COLUMNS), draw(COLUMNS), draw(st.sampled_from(["owner", "member", "unknown"]))
        ),
        segments=tuple(draw(st.lists(SEGMENT, max_size=3))),
        sub_type=draw(COLUMNS),
        message_seq=draw(COLUMNS),
        group_name=draw(COLUMNS),
    )


def put(*entries: Entry, at: float = NOW) -> list[Put]:
    """Entries as the writer hands them to the batches."""
    return [Put(entry, at) for entry in entries]


def read(database: Database, query: Callable[..., T], *arguments: Any) -> T:
    """What a query finds in the database as it is now."""
    with database.reading() as connection:
        return query(connection, *arguments)


def thing(number: int, *, message_id: str = "7", user: int = 777, where: Conversation = GROUP) -> AttachmentNamed:
    """A picture that got a name."""
    picture = Picture(f"{number}.png", summary=f"picture {number} of {user}")
    return AttachmentNamed(
        conversation=where, number=number, message_id=message_id, sender=Sender(user), segment=picture
    )
