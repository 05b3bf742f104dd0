"""The address at which OneBot servers fetch what is too large for a frame (MEDIA_URL)."""

from __future__ import annotations

import socket
from typing import Final

from config import values

HERE: Final = "{hostname}"
PAGE: Final = "/media"  # of WEB_PORT, see `adapters/web/giving`
MEND: Final = "Write it as http://bot:8080/media: how OneBot servers reach /media of WEB_PORT"


def url(value: str) -> str:
    """The address; `{hostname}` in it is this machine's name, so that the same line is right for
    each of several. Empty where there is none.
    """
    text = values.halved(value).replace(HERE, socket.gethostname()).rstrip("/")
    try:
        values.origin(text)
    except values.Wrong as wrong:
        raise values.Wrong(wrong.what, MEND) from None
    if text and not text.endswith(PAGE):
        raise values.Wrong(f"does not end in {PAGE}", MEND)
    return text
