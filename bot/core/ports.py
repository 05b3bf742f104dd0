"""Our needs from outside, as protocols: implementations fit, they do not inherit.

Each method says what it raises; anything else that escapes an implementation is a bug in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from bot.core.actions import Gesture, SendMessage
from bot.core.conversation import Conversation
from bot.core.events import Event, MessageReceived, Role
from bot.core.group_admin import GroupAct, JoinRequest
from bot.core.journal import Entry, KnownLine, LogQuery, Recovery, Remembered, Spoken
from bot.core.segments import File, Forward, Picture, Record
from frostagent.types.ports import Observer
from frostagent.types.results import ToolResult
from frostagent.types.traits import Audience


class Member(Struct, frozen=True):
    """Somebody in a group, as the server has them: until when they may not speak there, in seconds
    since 1970 by its clock. None: it does not say.
    """

    role: Role = "unknown"
    muted_until: float | None = 0.0
    is_robot: bool | None = None


class JoinedGroup(Struct, frozen=True):
    """A group of an account, silenced if only admins may speak. None, 0 people, no name: not told.

    Some servers say instead until when it is silenced, and until when the account itself is muted,
    in seconds since 1970 by their clock.
    """

    conversation: Conversation
    is_silenced: bool | None = False
    people: int = 0
    silenced_until: float | None = None
    muted_until: float | None = None
    name: str = ""


class Transport(Protocol):
    """Carries actions to the OneBot server of the conversation's account, and asks it questions."""

    async def send(self, action: SendMessage) -> str:
        """Send one message; the message id QQ gave it. Raises NotConnected, ActionRefused,
        ActionUnanswered.
        """
        ...

    async def gesture(self, gesture: Gesture) -> None:
        """Make a sign beside what is said. Raises NotConnected, ActionRefused (ActionUnsupported
        where the server cannot do it at all), ActionUnanswered.
        """
        ...

    async def act(self, group: Conversation, act: GroupAct) -> bool:
        """Do what admins may; False if the server could not have said that QQ refused it. Raises
        NotConnected, ActionRefused, ActionUnanswered.
        """
        ...

    async def admit(self, request: JoinRequest, *, granted: bool, reason: str = "") -> bool:
        """Grant a friend request or an invite, or refuse it; False if the server could not have
        said that QQ did not do it. Raises NotConnected, ActionRefused, ActionUnanswered.
        """
        ...

    async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
        """Look up a message by id, the bot's own included; None if the server does not know it (any
        more).

        Raises NotConnected, ActionUnanswered.
        """
        ...

    async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
        """The messages inside a merged forward: of its content where it came with that, else the
        server is asked. Raises NotConnected, ActionRefused, ActionUnanswered.
        """
        ...

    async def get_history(
        self, conversation: Conversation, *, count: int = 20
    ) -> tuple[MessageReceived, ...]:
        """The latest messages there, oldest first, the bot's own (sender = account) included.

        Raises NotConnected, ActionRefused (also where the server cannot do it), ActionUnanswered.
        """
        ...

    async def get_groups(self, account: int) -> tuple[JoinedGroup, ...]:
        """The groups the account is in. Raises NotConnected, ActionRefused, ActionUnanswered."""
        ...

    async def get_member(self, group: Conversation, user_id: int) -> Member:
        """Somebody in a group, asked anew. Raises NotConnected, ActionRefused, ActionUnanswered."""
        ...


class Store(Protocol):
    """Where the journal is kept. One writer: entries are written in the order they were given.

    A store that cannot write (disk full, database gone) says so once through its `trouble`
    callback, keeps a bounded number of entries in memory, and catches up by itself.
    """

    def put(self, *entries: Entry) -> None:
        """Take entries; they are durable within 100 ms. Never waits, never raises."""
        ...

    async def commit(self, *entries: Entry) -> bool:
        """Take entries and wait until they and all before them are durable; slow disks slow the
        caller down.

        False where the store is in trouble and cannot promise it.
        """
        ...

    async def remember(self, conversation: Conversation) -> Remembered | None:
        """The material of the conversation's next prompt; None where that cannot be read now."""
        ...

    async def find(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        """The latest stored message of this id there."""
        ...

    async def heard(
        self, conversation: Conversation, message_ids: Collection[str]
    ) -> Collection[str] | None:
        """Which of these messages were observed there, recalled ones included, or sent from here;
        None where that cannot be read now.
        """
        ...

    async def latest(self, conversation: Conversation) -> Collection[KnownLine] | None:
        """The latest messages that were observed there, recalled ones included, or sent from here;
        None if that cannot be read now.
        """
        ...

    async def search(self, query: LogQuery) -> tuple[MessageReceived, ...] | None:
        """The messages that it is about, oldest first, but for recalled ones; None where that
        cannot be read now.
        """
        ...

    async def described(self, digest: str) -> str:
        """The description of a picture, from the last 30 days; empty where nobody said, or it
        cannot be read now.
        """
        ...

    async def spoken(self, turn_id: str) -> Spoken | None:
        """The words of a turn so far; None where that cannot be read now, or its question was
        recalled or forgotten.
        """
        ...

    async def recover(self) -> Recovery | None:
        """All that was left unfinished before anything was put; None where it cannot be read now:
        ask again.
        """
        ...


class Members(Protocol):
    """The numbers of people in a conversation: `小明#2` in prompts and in what tools take."""

    def number(self, conversation: Conversation, user_id: int) -> int:
        """The person's number there, a new one at the first time; no number is ever used again."""
        ...

    def user_id(self, conversation: Conversation, number: int, name: str = "") -> int | None:
        """Who has this number there; None where nobody has, or the `name` is another's alone."""
        ...


class LogPage(Struct, frozen=True):
    """A part of what was said in a conversation: as a model reads it, the ids of the messages in
    it, the least authority of those who said them.
    """

    text: str
    sources: tuple[str, ...] = ()
    authority: Audience = Audience.OWNER


class ChatLog(Protocol):
    """The log of a conversation, further back than its prompt tells."""

    async def read(
        self, conversation: Conversation, *, since: str, until: str, who: str, words: str
    ) -> LogPage:
        """The latest lines from one time to another, of a person by his number there, with all of
        these words; an empty text asks for nothing of it.

        Raises InvalidArguments (no such time or person), ToolFailed (it cannot be read now).
        """
        ...


class EventSink(Protocol):
    """Takes what an adapter reads off its connections; never raises."""

    async def handle(self, event: Event) -> None: ...


class KeptFile(Struct, frozen=True):
    """A file as the OneBot server has it: its content, where it gives that, a path on its own
    machine, a url.
    """

    base64: str = ""
    path: str = ""
    url: str = ""

    def __repr__(self) -> str:
        return f"KeptFile(path={self.path!r}, url={self.url!r})"  # without megabytes of content


class Seen(Struct, frozen=True):
    """A picture as a data url of moderate size, or, for a model that is blind, in words."""

    url: str = ""
    words: str = ""

    def __repr__(self) -> str:
        return f"Seen(words={self.words!r})"  # without the whole picture


class PictureReader(Protocol):
    """Gets the pictures people send, as a model takes them."""

    async def see(self, account: int, image: Picture) -> Seen:
        """The picture. Raises MediaError (it cannot be had, or not be shown)."""
        ...


class VoiceListener(Protocol):
    """Listens to the voice messages people send."""

    async def hear(self, account: int, record: Record) -> str:
        """The words in it. Raises MediaError (it cannot be had, is too long, or nobody listens)."""
        ...


class TextFileReader(Protocol):
    """Reads the text files people send."""

    async def read(self, conversation: Conversation, file: File) -> str:
        """Its text, cut where it is long. Raises MediaError (it cannot be had, is too large, or no
        text).
        """
        ...


class Looking(Protocol):
    """Opens what the prompt of a run only names."""

    async def look(self, conversation: Conversation, handle: str, *, run_id: str) -> ToolResult:
        """Show what has this short name there, with the authority of whoever sent it.

        Raises InvalidArguments (nothing has this name), ToolDenied (this run has looked at enough).
        """
        ...


class WebResponse(Struct, frozen=True):
    """An HTTP answer: body as bytes, header names in lower case."""

    status: int
    body: bytes
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError where it is none; the caller says what that means."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the body nests too deeply") from None


class Web(Protocol):
    """Fetches public web resources for tools: bounded size and time, proxies respected, no private
    addresses.
    """

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        fresh: float = 0,
        keep: Callable[[WebResponse], bool] | None = None,
    ) -> WebResponse:
        """GET, following redirects; any status comes back. Raises ToolFailed (unreachable, too
        slow, too large).

        `fresh` is for how many seconds an equal earlier answer may be served instead; equal
        requests in flight are then one request. Kept for that are only answers of status 200 that
        have a body and that `keep` agrees to (say: one that can be read), so that a vendor's error
        inside a 200 does not last.
        """
        ...


class JournalObserver(Protocol):
    """Sees entries on their way into the journal, in order: those of the kinds in `sees`. Must not
    raise and must not block.
    """

    @property
    def sees(self) -> Collection[type[Any]]: ...

    def see(self, entry: Entry) -> None: ...


Settled: TypeAlias = Callable[[str, str], None]
"""Hears the outcome of a turn (by id) if QQ had not confirmed its answer by its end, once it is
known what became of that. Must not raise and must not block.
"""


class TurnFollower(Observer, JournalObserver, Protocol):
    """Follows turns from their run to what became of its answer: that is in the entry of the turn's
    end, or `settled` hears it later.
    """

    def settled(self, turn_id: str, outcome: str) -> None: ...
