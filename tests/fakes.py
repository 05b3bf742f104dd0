"""Fakes at the ports; each fails when it is misused or when its script is not used up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import TypeAlias

from msgspec.structs import replace

from bot.core.actions import Gesture, SendMessage, as_received
from bot.core.conversation import Conversation
from bot.core.errors import ActionRefused, ActionUnsupported
from bot.core.events import Event, MessageReceived, Role, Sender
from bot.core.group_admin import GroupAct, JoinRequest
from bot.core.journal import (
    Entry,
    KnownLine,
    LogQuery,
    MessageErased,
    MessageObserved,
    PersonaChosen,
    PictureDescribed,
    PlaceSet,
    Recovery,
    Remembered,
    SendChanged,
    SendQueued,
    SendState,
    Spoken,
    StoredSend,
    TurnClosed,
    TurnOpened,
    Undelivered,
)
from bot.core.ports import JoinedGroup, Member
from bot.core.segments import Forward, Mention, Segment
from bot.policy.wake import Rules
from bot.prompt.compose import Forwarded, ForwardedMessage
from frostagent.testing import scripted_model
from frostagent.types.errors import BotError
from frostagent.types.messages import AssistantMessage, Completion, FinishReason, ToolCall, Usage
from frostagent.types.runs import Asker, RunEvent, Stop
from frostagent.types.speech import Text
from frostagent.types.tools import ToolContext

BOT = 10001
GROUP = Conversation(BOT, "group", 4242)
PRIVATE = Conversation(BOT, "private", 777)


class ManualClock:
    """Time that only passes when somebody waits for it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


class SteppedClock(ManualClock):
    """Time that passes only when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        end = self.time + seconds
        while self.time < end:
            await self._passed.wait()

    async def advance(self, seconds: float) -> None:
        """Let everybody do what is due, then time pass, then everybody do what is due by that."""
        await self._settle()
        self.time += seconds
        self._passed.set()
        self._passed = asyncio.Event()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


class CountingIds:
    """Trace ids t1, t2, ...; always the same jitter."""

    def __init__(self, jitter: float = 0.5) -> None:
        self._numbers = count(1)
        self._jitter = jitter

    def trace(self) -> str:
        return f"t{next(self._numbers)}"

    def jitter(self) -> float:
        return self._jitter


class RecordingObserver:
    """Keeps every run event."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []

    def notice(self, event: RunEvent) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[RunEvent]:
        return [event for event in self.events if event.type == kind]


Step: TypeAlias = scripted_model.Step
ScriptedModel = scripted_model.ScriptedModel


def words(text: str, *, finish: FinishReason = FinishReason.STOP, refusal: str = "") -> Completion:
    """A model's step that answers in words."""
    return Completion(AssistantMessage(text), finish, Usage(10, 5), refusal=refusal)


def calls(*asked: tuple[str, str], text: str = "", finish: FinishReason = FinishReason.TOOL_CALLS) -> Completion:
    """A model's step that calls tools: (name, raw arguments) pairs; ids are c0, c1, ..."""
    made = tuple(ToolCall(f"c{index}", name, arguments) for index, (name, arguments) in enumerate(asked))
    return Completion(AssistantMessage(text, made), finish, Usage(10, 5))


def inside(*messages: MessageReceived) -> Forwarded:
    """A forward of these messages."""
    return Forwarded(tuple(map(ForwardedMessage, messages)))


def same_rules(_where: Conversation, rules: Rules) -> Rules:
    """The rules of a place where no persona has others."""
    return rules


class RecordingTransport:
    """A OneBot server that takes everything and numbers it, unless told to fail; knows the messages it is given."""

    def __init__(self, known: Iterable[MessageReceived] = ()) -> None:
        self.sent: list[SendMessage] = []
        self.gestures: list[Gesture] = []
        self.acts: list[tuple[Conversation, GroupAct]] = []
        self.admitted: list[tuple[JoinRequest, bool, str]] = []
        self.tells = True  # whether it would say that QQ refused an act
        self.unsupported = False  # whether it can make no sign
        self.failures: list[BotError] = []
        self.known = {message.message_id: message for message in known}
        self.forwards: dict[str, tuple[MessageReceived, ...]] = {}
        self.looked_up: list[str] = []
        self.opened: list[str] = []
        self.histories: dict[Conversation, tuple[MessageReceived, ...]] = {}
        self.histories_asked: list[Conversation] = []
        self.groups: list[JoinedGroup] = []
        self.members: dict[tuple[Conversation, int], Member] = {}
        self.members_asked: list[tuple[Conversation, int]] = []
        self.member_failures: list[BotError] = []
        self._ids = count(9001)

    async def send(self, action: SendMessage) -> str:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(action)
        return str(next(self._ids))

    async def gesture(self, gesture: Gesture) -> None:
        await asyncio.sleep(0)
        if self.unsupported:
            raise ActionUnsupported("set_msg_emoji_like", retcode=1404, wording="不支持的Api")
        self.gestures.append(gesture)

    async def act(self, group: Conversation, act: GroupAct) -> bool:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.acts.append((group, act))
        return self.tells

    async def admit(self, petition: JoinRequest, *, granted: bool, reason: str = "") -> bool:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.admitted.append((petition, granted, reason))
        return self.tells

    async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
        assert account == BOT
        self.looked_up.append(message_id)
        return self.known.get(message_id)

    async def get_history(self, conversation: Conversation, *, count: int = 20) -> tuple[MessageReceived, ...]:
        await asyncio.sleep(0)
        self.histories_asked.append(conversation)
        if conversation not in self.histories:
            raise ActionRefused("get_group_msg_history", retcode=1404, wording="不支持的Api get_group_msg_history")
        return self.histories[conversation][-count:]

    async def get_groups(self, account: int) -> tuple[JoinedGroup, ...]:
        await asyncio.sleep(0)
        return tuple(self.groups)

    async def get_member(self, group: Conversation, user_id: int) -> Member:
        self.members_asked.append((group, user_id))
        await asyncio.sleep(0)
        if self.member_failures:
            raise self.member_failures.pop(0)
        return self.members.get((group, user_id), Member())

    async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
        assert account == BOT
        self.opened.append(forward.id)
        if forward.id not in self.forwards:
            raise ActionRefused("get_forward_msg", retcode=1200, wording="消息不存在")
        return self.forwards[forward.id]

    @property
    def texts(self) -> list[str]:
        """The words of each message sent."""
        return ["".join(s.text for s in action.segments if isinstance(s, Text)) for action in self.sent]


class RecordingStore:
    """A journal in a list: keeps every entry in order, and answers from what it is given.

    `entries` is all that was put, `durable` how many of them are promised (a commit promises all before it). While
    `trouble` is set nothing is promised and nothing can be read. `find` also knows the messages put here.
    """

    def __init__(
        self,
        *,
        remembered: Mapping[Conversation, Remembered] | None = None,
        known: Iterable[MessageReceived] = (),
        recovery: Recovery | None = None,
    ) -> None:
        self.entries: list[Entry] = []
        self.durable = 0
        self.trouble = False
        self.remembered = dict(remembered or {})
        self.recovery = recovery or Recovery()
        self.asked: list[Conversation] = []
        self.searched: list[LogQuery] = []
        self._known = {(message.conversation, message.message_id): message for message in known}
        self._heard = set(self._known)
        self._erased: set[tuple[Conversation, str]] = set()
        self._sends: dict[str, SendQueued] = {}

    async def choices(self) -> Mapping[Conversation, str] | None:
        chosen = {one.conversation: one.persona for one in self.entries if isinstance(one, PersonaChosen)}
        return None if self.trouble else chosen

    async def groups(self) -> Collection[Conversation] | None:
        return None if self.trouble else {where for where, _ in self._heard if where.is_group}

    async def settings(self, name: str) -> Mapping[Conversation, str] | None:
        made = (one for one in self.entries if isinstance(one, PlaceSet) and one.name == name)
        values = {one.conversation: one.value for one in made}
        return None if self.trouble else {where: value for where, value in values.items() if value}

    def put(self, *entries: Entry) -> None:
        for entry in entries:
            self.entries.append(entry)
            match entry:
                case MessageObserved(message=message):
                    self._heard.add((message.conversation, message.message_id))
                    self._known[message.conversation, message.message_id] = message
                case SendQueued():
                    self._sends[entry.send_id] = entry
                case SendChanged(send_id=send_id, message_id=message_id) if message_id and send_id in self._sends:
                    self._heard.add((self._sends[send_id].action.conversation, message_id))
                case MessageErased(conversation=conversation, message_id=message_id):
                    self._known.pop((conversation, message_id), None)
                    self._erased.add((conversation, message_id))
                case _:
                    pass

    async def commit(self, *entries: Entry) -> bool:
        self.put(*entries)
        await asyncio.sleep(0)
        if not self.trouble:
            self.durable = len(self.entries)
        return not self.trouble

    async def remember(self, conversation: Conversation) -> Remembered | None:
        self.asked.append(conversation)
        await asyncio.sleep(0)
        return None if self.trouble else self.remembered.get(conversation, Remembered())

    async def find(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        await asyncio.sleep(0)
        return None if self.trouble else self._known.get((conversation, message_id))

    async def heard(self, conversation: Conversation, message_ids: Collection[str]) -> set[str] | None:
        await asyncio.sleep(0)
        return None if self.trouble else {name for name in message_ids if (conversation, name) in self._heard}

    async def latest(self, conversation: Conversation) -> tuple[KnownLine, ...] | None:
        await asyncio.sleep(0)
        taken = [
            KnownLine(one.message_id, one.sender.user_id, one.time, one.segments)
            for (where, _), one in self._known.items()
            if where == conversation
        ]
        sent = [
            KnownLine(one.message_id, conversation.platform_id, one.at, tuple(map(as_received, queued.action.segments)))
            for one in self.entries
            if isinstance(one, SendChanged) and one.message_id and (queued := self._sends.get(one.send_id))
            if queued.action.conversation == conversation
        ]
        return None if self.trouble else (*taken, *sent)

    async def search(self, query: LogQuery) -> tuple[MessageReceived, ...] | None:
        await asyncio.sleep(0)
        self.searched.append(query)
        known = [message for (where, _), message in self._known.items() if where == query.conversation]
        return None if self.trouble else tuple(known)

    async def described(self, digest: str) -> str:
        if self.trouble:
            return ""
        found = (entry for entry in self.entries if isinstance(entry, PictureDescribed) and entry.digest == digest)
        return next((entry.words for entry in found), "")

    async def spoken(self, turn_id: str) -> Spoken | None:
        await asyncio.sleep(0)
        opened = [entry for entry in self.entries if isinstance(entry, TurnOpened) and entry.turn_id == turn_id]
        if self.trouble or not opened:
            return None
        question = opened[0].question
        if (question.conversation, question.message_id) in self._erased:
            return None
        states = {entry.send_id: entry.state for entry in self.entries if isinstance(entry, SendQueued | SendChanged)}
        sends = [
            StoredSend(
                send_id=send.send_id,
                turn_id=turn_id,
                action=send.action,
                final=send.final,
                at=send.at,
                state=states[send.send_id],
            )
            for send in self._sends.values()
            if send.turn_id == turn_id
        ]
        spoken = Spoken(question, tuple(sends), is_over=False, uncalled=opened[0].uncalled)
        closed = [entry for entry in self.entries if isinstance(entry, TurnClosed) and entry.turn_id == turn_id]
        if not closed:
            return spoken
        ended = outcome = closed[0].outcome
        if ended == Undelivered.UNCONFIRMED:
            fates = {send.state for send in sends}
            if fates & {SendState.REFUSED, SendState.DROPPED}:
                outcome = str(Undelivered.NOT_DELIVERED)
            elif fates == {SendState.CONFIRMED}:
                outcome = str(Stop.ANSWERED)
        return replace(spoken, is_over=True, ended=ended, outcome=outcome)

    async def recover(self) -> Recovery | None:
        await asyncio.sleep(0)
        return None if self.trouble else self.recovery

    def of(self, kind: str) -> list[Entry]:
        """The entries with this `type`."""
        return [entry for entry in self.entries if entry.type == kind]


class RecordingSink:
    """An event sink that keeps what it is given and lets a test wait for it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Condition()

    async def handle(self, event: Event) -> None:
        async with self._news:
            self.events.append(event)
            self._news.notify_all()

    async def wait(self, number: int, *, seconds: float = 5) -> list[Event]:
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: len(self.events) >= number)
        return self.events


async def until(condition: Callable[[], object], *, seconds: float = 5) -> None:
    """Wait until the condition holds; it must depend on the loop alone, so every turn of the loop is a try."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # what is waited for are plain lists of fakes, without events
            await asyncio.sleep(0)


_message_ids = count(100_001)  # far from ids that tests name, and from those of what the bot says


def said(
    text: str | tuple[Segment, ...],
    *,
    at: bool = True,
    user: int = 777,
    name: str = "小明",
    where: Conversation = GROUP,
    message_id: str | None = None,
    role: Role = "member",
) -> MessageReceived:
    """Somebody says something; in a group to the bot, unless `at` is False."""
    segments = (Text(text),) if isinstance(text, str) else text
    if where.is_group and at:
        segments = (Mention(BOT), *segments)
    return MessageReceived(
        self_id=BOT,
        time=1_700_000_000.0,
        conversation=where,
        message_id=str(next(_message_ids)) if message_id is None else message_id,
        sender=Sender(user, name, role=role),
        segments=segments,
    )


MOMENT = re.compile(r"\n\[(?:此刻|Right now)\][^\n\"]*")


def lasting(text: str) -> str:
    """A prompt's text without what is so at the moment, which stands behind a question for its own run alone."""
    return MOMENT.sub("", text)


def tool_context(ports: Mapping[type, object] | None = None) -> ToolContext:
    """A context for a call outside any run."""
    asker = Asker("777", "小明")
    return ToolContext(
        run_id="t0", step=1, call_id="c0", conversation=str(GROUP), asker=asker, deadline=0.0, ports=ports or {}
    )
