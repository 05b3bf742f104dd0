"""Opens attachments that a prompt only names: the `Looking` port."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import assert_never

from cachetools import LRUCache
from msgspec.structs import replace

from bot.chat.context_builder import PromptContext
from bot.chat.perception import Forwards, Senses
from bot.core.conversation import Conversation
from bot.core.documents import NEEDS_LIBRARIES, PLAIN
from bot.core.events import MessageReceived
from bot.core.journal import AttachmentNamed
from bot.core.passages import format_fields, select_text
from bot.core.segments import File, Forward, Picture, Record, Segment
from bot.memory.attachments import again
from bot.policy.permissions import authority_of
from bot.prompt.compose import Forwarded
from frostagent.types.errors import InvalidArguments, Lack, MediaError, ToolDenied, ToolUnavailable
from frostagent.types.results import Image, ToolResult
from frostagent.types.speech import Text
from frostagent.types.traits import Audience

MAX_LOOKS = 6  # per run
MAX_RUNS = 1000

UNKNOWN = "nothing here is called {handle!r} (any more); a name is that in brackets, as i7"
ENOUGH = (
    f"this run has looked at {MAX_LOOKS} things, and may not at more. Answer from what you know"
)


class AttachmentOpener:
    """Opens attachments of a conversation, at most MAX_LOOKS per run. `language_of` is the language
    that was chosen for a conversation; empty: it follows the conversation.
    """

    def __init__(
        self,
        *,
        prompt_context: PromptContext,
        forwards: Forwards,
        senses: Senses,
        owners: Collection[int],
        language_of: Callable[[Conversation], str] = lambda _: "",
    ) -> None:
        self._prompt_context = prompt_context
        self._forwards = forwards
        self._senses = senses
        self._owners = owners
        self._language_of = language_of
        self._looked: LRUCache[str, int] = LRUCache(MAX_RUNS)

    async def look(
        self,
        conversation: Conversation,
        handle: str,
        *,
        run_id: str,
        about: str = "",
        part: int = 1,
    ) -> ToolResult:
        thing = self._prompt_context.find(conversation, handle)
        if thing is None or thing.segment is None:
            told = UNKNOWN.format(handle=handle[:40])
            raise InvalidArguments(told, fields=(told,))
        looked = self._looked.get(run_id, 0)
        if looked >= MAX_LOOKS:
            raise ToolDenied(ENOUGH)
        self._looked[run_id] = looked + 1
        result = await self._opened(thing, thing.segment, about=about, part=part)
        return replace(result, sources=(thing.message_id,), authority=self._authority(thing))

    def _authority(self, thing: AttachmentNamed) -> Audience:
        """Words in a forward count as anyone's: anyone can forge one."""
        if isinstance(thing.segment, Forward):
            return Audience.EVERYONE
        return authority_of(thing.sender, where=thing.conversation, owners=self._owners)

    async def _opened(
        self,
        thing: AttachmentNamed,
        segment: Picture | Record | File | Forward,
        *,
        about: str,
        part: int,
    ) -> ToolResult:
        where = thing.conversation
        message = MessageReceived(
            self_id=where.platform_id,
            time=0.0,
            conversation=where,
            message_id=thing.message_id,
            sender=thing.sender,
            segments=(),
        )
        language = self._language_of(where)
        shown: tuple[Image, ...] = ()
        forwarded = Forwarded()
        try:
            match segment:
                case Picture():
                    words, shown = await self._seen(where, segment)
                case Record():
                    words = await self._heard(where, segment)
                case File():
                    words = await self._read(where, segment, about=about, part=part)
                case Forward():
                    words, forwarded = "", await self._passed(message, segment)
                case _:
                    assert_never(segment)
        except MediaError as error:
            words = self._prompt_context.lacking(where, segment, error.lack, language=language)
            if error.lack is Lack.NOT_INSTALLED:  # so that `/why` can say what to install
                raise ToolUnavailable(f"{NEEDS_LIBRARIES} {words}") from error
        parts: tuple[Segment, ...] = (
            again(thing),
            Text(f"\n{words}" if words else ""),
        )
        said = replace(message, segments=parts)
        return ToolResult(self._prompt_context.opened(said, forwarded, language=language), shown)

    async def _seen(self, where: Conversation, image: Picture) -> tuple[str, tuple[Image, ...]]:
        if self._senses.sight is None:
            raise MediaError("nobody sees", Lack.OUT_OF_REACH)
        seen = await self._senses.sight.see(where.platform_id, image)
        return seen.words, (Image(seen.url),) if seen.url else ()

    async def _heard(self, where: Conversation, record: Record) -> str:
        if self._senses.ear is None:
            raise MediaError("nobody listens", Lack.OUT_OF_REACH)
        return await self._senses.ear.hear(where.platform_id, record)

    async def _read(self, where: Conversation, file: File, *, about: str, part: int) -> str:
        if self._senses.reader is None:
            raise MediaError("nobody reads", Lack.OUT_OF_REACH)
        document = await self._senses.reader.read(where, file)
        selection = select_text(document, about=about, part=part)
        if document.kind == PLAIN and selection.is_all:
            return selection.text
        fields = {
            "title": document.title,
            "author": document.author,
            "date": document.date,
            "shown": selection.shown,
        }
        return format_fields(fields, selection.text)

    async def _passed(self, message: MessageReceived, forward: Forward) -> Forwarded:
        """Raises MediaError if it cannot be opened."""
        opened = await self._forwards.open(message.self_id, forward)
        if not opened.lines:
            raise MediaError("it cannot be opened", Lack.EXPIRED)
        return opened
