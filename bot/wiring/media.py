"""The way of others' urls and pictures, opened and closed with the service.

Two clients for urls that others name: what people send is small and wanted at once, what the bot
sends may be large.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from adapters.fetching.limits import FetchLimits
from adapters.media.attachments import Ask, PictureSight
from adapters.media.decoder_process import DecoderProcess
from adapters.media.folder import MAX_BASE64, MediaFolder
from adapters.onebot.transport import MOST_INLINE
from bot.domain.language import NotifyOwners
from bot.domain.ports import Clock, Media, PictureReader, Web
from bot.wiring.fetching import LateWeb
from config.settings import Settings

CARRIED = MOST_INLINE // 4 * 3  # bytes of a file that a broker carries


@dataclass(frozen=True, slots=True)
class Foreign:
    """`media` is for what leaves; what comes in is fetched by `web` and unpacked by `decoder`. The
    owners hear by `tell` if it cannot be fetched.
    """

    media: Media
    web: Web
    decoder: DecoderProcess
    tell: NotifyOwners

    def sight(self, ask: Ask) -> PictureReader:
        """Sees the pictures people send; `ask` asks the OneBot server for one."""
        decode = self.decoder.decode
        return PictureSight(web=self.web, ask=ask, decode=decode, tell=self.tell)


@asynccontextmanager
async def open_media(
    settings: Settings, *, clock: Clock, user_agent: str, tell: NotifyOwners
) -> AsyncIterator[Foreign]:
    """All of it, at hand while the block runs; connections and the process are made when they are
    first needed.
    """
    largest = CARRIED if settings.has_broker and not settings.media_url else MAX_BASE64
    make = partial(LateWeb, settings, clock=clock, user_agent=user_agent, foreign=True)
    limits = FetchLimits(request_seconds=60.0, total_seconds=60.0, body_bytes=largest)
    pictures, attachments = make(), make(limits=limits)
    decoder = DecoderProcess()
    fetching = attachments if settings.media_urls == "fetch" else None
    folder = MediaFolder(
        settings.media_dir, web=fetching, mode=settings.media_send, max_bytes=largest
    )
    async with AsyncExitStack() as stack:
        for opened in (pictures, attachments, decoder):
            stack.push_async_callback(opened.aclose)
        yield Foreign(folder, pictures, decoder, tell)
