"""Urls that the model names, read before anything is asked for: what is no plain address of a
public host is refused.

Pure. A url may be read again by somebody else (a proxy; with MEDIA_URLS=pass the OneBot server),
whose reader is not ours: the WHATWG's takes a backslash for a slash and decodes %31. What both
would not read alike is refused.
"""

from __future__ import annotations

import re
from email.message import Message
from urllib.parse import unquote, urlsplit

from bot.domain.addresses import check_foreign, check_host
from bot.domain.errors import MediaError, ToolFailed

MAX_URL = 2048
ADVICE = "give an http or https url of a public host"

HOST = re.compile(r"[a-z0-9._:-]*")  # letters beyond ASCII are read by their IDNA form


def check_url(url: str) -> str:
    """The url, if it may be fetched as far as can be seen. Raises MediaError."""
    if not url:
        raise MediaError("neither path nor url is given")
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii").lower()
        if not HOST.fullmatch(host):
            raise ValueError("its host can be read in more than one way")
        check_host(parts.scheme, host)
        check_foreign(host, port=parts.port, userinfo=parts.netloc.rpartition("@")[1])
    except (ToolFailed, ValueError) as error:
        raise MediaError(f"{url[:100]!r} cannot be sent ({error}); {ADVICE}") from error
    if len(url) > MAX_URL:
        raise MediaError(f"the url is longer than {MAX_URL} characters; give a shorter one")
    return url


def name_in_url(url: str) -> str:
    """The file's name in the url, as it stands there; often empty."""
    return unquote(urlsplit(url).path).rpartition("/")[2]


def name_in_header(disposition: str) -> str:
    """The file's name in a Content-Disposition, as it stands there; empty where there is none."""
    header = Message()
    try:
        header["Content-Disposition"] = disposition
        return header.get_filename() or ""
    except (
        LookupError,
        TypeError,
        ValueError,
    ):  # an unknown charset; a line break; parts that do not fit
        return ""
