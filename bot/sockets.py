from __future__ import annotations

from adapters.onebot.sockets import Sockets
from adapters.web.file_offers import FileOffers
from config.settings import Settings
from frostagent.types.ports import Clock, Ids


def build_sockets(
    settings: Settings, offers: FileOffers | None = None, *, clock: Clock, ids: Ids
) -> Sockets:
    """Build sockets, not open yet. Media too large for a frame goes to `offers`, if given."""
    return Sockets(
        host=settings.onebot_host,
        port=settings.onebot_port,
        url=settings.onebot_url if settings.onebot_mode == "forward" else "",
        token=settings.access_tokens.common,
        account_tokens=settings.access_tokens.accounts,
        pass_urls=settings.media_urls == "pass",
        offers=offers,
        clock=clock,
        ids=ids,
    )
