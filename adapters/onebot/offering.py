"""Media that are too large for a frame go beside it: the server gets an address of ours and fetches
them there, while the call waits for its answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, Protocol, TypeAlias, TypeGuard

from msgspec.structs import replace

from adapters.onebot.protocol import INLINE
from bot.domain.actions import Attachment, SendMessage, SentSegment
from bot.domain.errors import ActionRefused, ActionUnanswered

logger = logging.getLogger(__name__)

# Letters of base64. What a broker carries has 8 MB with all that is around it (`adapters/broker`),
# and where nobody carries, a frame that is read whole before the next one holds up an account.
MOST: Final = 8 * 2**20 - 2**16


class Offered(Protocol):
    """A file at an address; has anybody come for it?"""

    @property
    def url(self) -> str: ...

    @property
    def asked(self) -> bool: ...


class Offers(Protocol):
    """Gives a file, as base64, to whoever knows its address, while a block runs."""

    def offer(self, encoded: str, /) -> AbstractContextManager[Offered]: ...


Light: TypeAlias = tuple[SendMessage, int]
"""A message as it leaves, and how many letters of it have to be fetched."""


@contextmanager
def lightened(action: SendMessage, offers: Offers) -> Iterator[Light]:
    """The message with its media at addresses, where they are too large together; as it is where
    they are not. That nobody came for one of a message that failed, the log says.
    """
    inline = [one.source for one in action.segments if _is_inline(one)]
    size = sum(map(len, inline))
    if size <= MOST:
        yield action, 0
        return
    with ExitStack() as stack:
        offered = {
            source: stack.enter_context(offers.offer(source.removeprefix(INLINE)))
            for source in dict.fromkeys(inline)
        }
        segments = tuple(
            replace(one, source=offered[one.source].url) if _is_inline(one) else one
            for one in action.segments
        )
        try:
            yield replace(action, segments=segments), size
        except (ActionRefused, ActionUnanswered):
            if not all(one.asked for one in offered.values()):
                logger.warning(
                    "account %d: its OneBot server did not come for a file of %.1f MB: see that it "
                    "reaches MEDIA_URL",
                    action.conversation.platform_id,
                    size * 3 / 4 / 2**20,
                )
            raise


def _is_inline(segment: SentSegment) -> TypeGuard[Attachment]:
    return isinstance(segment, Attachment) and segment.source.startswith(INLINE)
