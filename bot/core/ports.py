"""The ports of the service, as protocols: implementations need not inherit from them.

Each method documents what it raises; anything else that escapes an implementation is a bug in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from bot.core.actions import Gesture, SendMessage
from bot.core.conversation import Conversation
from bot.core.documents import Document
from bot.core.events import Event, MessageReceived, Role
from bot.core.group_admin import GroupAct, JoinRequest
from bot.core.journal import Entry, KnownLine, LogQuery, Recovery, Remembered, Spoken
from bot.core.segments import File, Forward, Picture, Record
from frostagent.types.ports import Observer
from frostagent.types.results import ToolResult
from frostagent.types.traits import Audience


class Member(Struct, frozen=True):
    """A member of a group, as the server has them. `muted_until` is in seconds since 1970 by its
    clock. None, and an empty name: the server does not say.
    """

    role: Role = "unknown"
    muted_until: float | None = 0.0
    is_robot: bool | None = None
    name: str = ""


class JoinedGroup(Struct, frozen=True):
    """A group of an account; `is_silenced` if only admins may speak. None, 0 people and an empty
    name are unknown. Some servers say instead until when it is silenced, and until when the account
    is muted, in seconds since 1970 by their clock.
    """

    conversation: Conversation
    is_silenced: bool | None = False
    people: int = 0
    silenced_until: float | None = None
    muted_until: float | None = None
    name: str = ""


class Transport(Protocol):
    """Sends actions to the OneBot server of the conversation's account, and queries it."""

    async def send(self, action: SendMessage) -> str:
        """Send one message, and return its id. Raises NotConnected, ActionRefused,
        ActionUnanswered.
        """
        ...

    async def gesture(self, gesture: Gesture) -> None:
        """Raises NotConnected, ActionRefused (ActionUnsupported if the server cannot do it at all),
        ActionUnanswered.
        """
        ...

    async def act(self, group: Conversation, act: GroupAct) -> bool:
        """Carry out an admin's action; False if the server cannot report a refusal by QQ. Raises
        NotConnected, ActionRefused, ActionUnanswered.
        """
        ...

    async def admit(self, request: JoinRequest, *, granted: bool, reason: str = "") -> bool:
        """Accept or refuse a friend request or an invite; False if the server cannot report a
        failure at QQ. Raises NotConnected, ActionRefused, ActionUnanswered.
        """
        ...

    async def get_message(self, account: int, message_id: str) -> MessageReceived | None:
        """Look up a message by id, including the bot's own; None if the server does not know it
        (any more). Raises NotConnected, ActionUnanswered.
        """
        ...

    async def get_forward(self, account: int, forward: Forward) -> tuple[MessageReceived, ...]:
        """The messages inside a merged forward, from its content if it came with one, else from the
        server. Raises NotConnected, ActionRefused, ActionUnanswered.
        """
        ...

    async def get_history(
        self, conversation: Conversation, *, count: int = 20
    ) -> tuple[MessageReceived, ...]:
        """The latest messages there, oldest first, including the bot's own (sender = account).
        Raises NotConnected, ActionRefused (also if the server cannot do it), ActionUnanswered.
        """
        ...

    async def get_groups(self, account: int) -> tuple[JoinedGroup, ...]:
        """The groups the account is in. Raises NotConnected, ActionRefused, ActionUnanswered."""
        ...

    async def get_member(self, group: Conversation, user_id: int) -> Member:
        """A member of a group, never from a cache. Raises NotConnected, ActionRefused,
        ActionUnanswered.
        """
        ...


class Store(Protocol):
    """The journal's store. One writer: entries are written in the order in which they were given. A
    store that cannot write (disk full, database gone) reports it once through its `trouble`
    callback, keeps a bounded number of entries in memory, and catches up by itself.
    """

    def put(self, *entries: Entry) -> None:
        """Take entries; they are durable within 100 ms. Never waits, never raises."""
        ...

    async def commit(self, *entries: Entry) -> bool:
        """Take entries, and wait until they and all before them are durable, so that slow disks
        slow the caller down. False if the store is in trouble and cannot promise it.
        """
        ...

    async def remember(self, conversation: Conversation) -> Remembered | None:
        """The material of the conversation's next prompt; None if it cannot be read now."""
        ...

    async def find(self, conversation: Conversation, message_id: str) -> MessageReceived | None:
        """The latest stored message of this id there."""
        ...

    async def heard(
        self, conversation: Conversation, message_ids: Collection[str]
    ) -> Collection[str] | None:
        """Which of these messages were received there, including recalled ones, or sent from here;
        None if that cannot be read now.
        """
        ...

    async def latest(self, conversation: Conversation) -> Collection[KnownLine] | None:
        """The latest messages received there, including recalled ones, or sent from here; None if
        they cannot be read now.
        """
        ...

    async def search(self, query: LogQuery) -> tuple[MessageReceived, ...] | None:
        """The matching messages, oldest first, except recalled ones; None if they cannot be read
        now.
        """
        ...

    async def described(self, digest: str) -> str:
        """The description of a picture, from the last 30 days; empty if there is none, or it cannot
        be read now.
        """
        ...

    async def spoken(self, turn_id: str) -> Spoken | None:
        """The words of a turn so far; None if they cannot be read now, or its question was recalled
        or erased.
        """
        ...

    async def recover(self) -> Recovery | None:
        """All that was left unfinished before the first `put`; None if it cannot be read now: ask
        again.
        """
        ...


class Members(Protocol):
    """The numbers of people in a conversation: `小明#2` in prompts and in arguments of tools."""

    def number(self, conversation: Conversation, user_id: int) -> int:
        """The person's number there, assigned at first use and never reused."""
        ...

    def user_id(self, conversation: Conversation, number: int, name: str = "") -> int | None:
        """The person with this number there; None if there is none, or the `name` is only another
        person's.
        """
        ...


class LogPage(Struct, frozen=True):
    """A part of a conversation's log, as a model reads it: the ids of its messages, and the least
    authority of their senders.
    """

    text: str
    sources: tuple[str, ...] = ()
    authority: Audience = Audience.OWNER


class ChatLog(Protocol):
    """The log of a conversation, beyond what its prompt contains."""

    async def read(
        self, conversation: Conversation, *, since: str, until: str, who: str, words: str
    ) -> LogPage:
        """The latest lines between two times, by a person's number there, with all of these words;
        an empty text sets no condition. Raises InvalidArguments (no such time or person),
        ToolFailed (it cannot be read now).
        """
        ...


class EventSink(Protocol):
    """Takes the events that an adapter reads from its connections; never raises."""

    async def handle(self, event: Event) -> None: ...


class KeptFile(Struct, frozen=True):
    """A file as the OneBot server has it: its content, if included, a path on the server's machine,
    a url.
    """

    base64: str = ""
    path: str = ""
    url: str = ""

    def __repr__(self) -> str:
        return f"KeptFile(path={self.path!r}, url={self.url!r})"  # without megabytes of content


class Seen(Struct, frozen=True):
    """A picture as a data url of moderate size, or, for a model without vision, in words."""

    url: str = ""
    words: str = ""

    def __repr__(self) -> str:
        return f"Seen(words={self.words!r})"  # without the whole picture


class PictureReader(Protocol):
    """Prepares received pictures for the model."""

    async def see(self, account: int, image: Picture) -> Seen:
        """Raises MediaError if it is unavailable or cannot be shown."""
        ...


class VoiceListener(Protocol):
    """Transcribes received voice messages."""

    async def hear(self, account: int, record: Record) -> str:
        """Its words. Raises MediaError if it is unavailable or too long, or nothing can transcribe
        it.
        """
        ...


class FileReader(Protocol):
    """Reads received files: text, PDF, Office documents, e-books, and what is in an archive."""

    async def read(self, conversation: Conversation, file: File) -> Document:
        """What it says. Raises MediaError if it is unavailable, too large, or cannot be read."""
        ...


class Looking(Protocol):
    """Opens attachments that the prompt of a run only names."""

    async def look(
        self,
        conversation: Conversation,
        handle: str,
        *,
        run_id: str,
        about: str = "",
        part: int = 1,
    ) -> ToolResult:
        """Show the attachment with this short name there, with the authority of its sender; of a
        long file the passages `about` something, or this part. Raises InvalidArguments (no such
        name or part), ToolDenied (this run has opened enough), ToolUnavailable (a library is
        missing).
        """
        ...


class WebResponse(Struct, frozen=True):
    """An HTTP response; header names are in lower case."""

    status: int
    body: bytes
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """Raises ValueError if the body is not JSON."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the body nests too deeply") from None


class Web(Protocol):
    """Fetches public web resources for tools: bounded in size and time, through proxies, no private
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
        """GET, following redirects; returns any status. Raises ToolFailed (unreachable, too slow,
        too large). `fresh` is the number of seconds for which an equal earlier answer may be
        reused; equal requests in flight are shared then. Only answers with status 200 and a body
        that `keep` accepts are stored (say: one that can be parsed), so that a vendor's error
        inside a 200 does not last.
        """
        ...

    async def post(
        self, url: str, *, json: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> WebResponse:
        """POST a JSON object; returns any status, and a redirect as it is. Raises ToolFailed."""
        ...


class Documents(Protocol):
    """Reads documents that strangers made, in a process where they can do no harm."""

    async def read(self, data: bytes, *, told: str = "") -> Document:
        """What a document says; `told` is what its server says it is, as `text/html; charset=gbk`,
        empty for a file that a person sent. Raises UnreadableDocument, which is a ToolFailed.
        """
        ...


class JournalObserver(Protocol):
    """Sees entries of the kinds in `sees` on their way into the journal, in order. Must not raise
    or block.
    """

    @property
    def sees(self) -> Collection[type[Any]]: ...

    def see(self, entry: Entry) -> None: ...


Settled: TypeAlias = Callable[[str, str], None]
"""Receives the final outcome of a turn (by id) whose answer QQ had not confirmed by its end. Must
not raise or block.
"""


class TurnFollower(Observer, JournalObserver, Protocol):
    """Follows turns from their run to the fate of the answer: in the entry that closes the turn, or
    later through `settled`.
    """

    def settled(self, turn_id: str, outcome: str) -> None: ...
