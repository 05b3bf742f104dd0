"""The `Media` port over one folder: nothing outside it is ever read, links included.

A OneBot server in another container cannot see our files, so a file travels inside the frame as base64:// unless
both share the folder at the same path (`onebot/compose.md` section 4).
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from bot.domain.actions import Attachment, MediaKind
from bot.domain.addresses import check_host
from bot.domain.errors import MediaError, ToolFailed

# NapCat takes websocket frames of 50 MiB; base64 makes four bytes of three (onebot/facts.md 4.4).
MAX_BASE64 = 37 * 1024 * 1024
MAX_URL = 2048

# The url is fetched by the OneBot server, whose reader of urls (WHATWG) is not ours: it takes a backslash for a
# slash and decodes %31. What both would not read alike is not sent; letters beyond ASCII are read by their IDNA form.
HOST = re.compile(r"[a-z0-9._:-]*")


class MediaFolder:
    """Attaches files below `root` and public http(s) urls. `max_bytes` bounds what is sent as base64."""

    def __init__(self, root: Path, *, mode: Literal["base64", "file"] = "base64", max_bytes: int = MAX_BASE64) -> None:
        self._root = root.resolve()
        self._mode = mode
        self._max_bytes = max_bytes

    async def attach(self, kind: MediaKind, *, path: str = "", url: str = "", name: str = "") -> Attachment:
        """The file or the url as an attachment; the path wins when both are given. Raises MediaError."""
        if path.strip():
            return await asyncio.to_thread(self._attach_file, kind, path.strip(), name)
        return Attachment(kind, self._checked_url(url.strip()), name or _last_part(url))

    def _attach_file(self, kind: MediaKind, path: str, name: str) -> Attachment:
        file = self._checked_path(path)
        name = name or file.name
        if self._mode == "file":
            return Attachment(kind, file.as_uri(), name)
        try:
            size = file.stat().st_size
            if size > self._max_bytes:
                limit = self._max_bytes // 1024 // 1024
                raise MediaError(f"{path} is larger than {limit} MiB, too large to send; send a smaller file or a url")
            if size == 0:
                raise MediaError(f"{path} is empty; send another file")
            data = file.read_bytes()
        except OSError as error:
            raise MediaError(f"{path} cannot be read ({error.strerror}); send another file") from error
        return Attachment(kind, "base64://" + base64.b64encode(data).decode("ascii"), name)

    def _checked_path(self, path: str) -> Path:
        """The file behind the path, links followed, if it lies in the media folder."""
        bare = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
        if "\0" in bare:
            raise MediaError("the path holds a zero byte; name a file of the media folder")
        try:
            file = (self._root / bare).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a circle of links; half a character
            raise MediaError(f"{path} cannot be resolved; name a file of the media folder") from error
        if not file.is_relative_to(self._root):
            raise MediaError(f"{path} is outside the media folder; only files inside it can be sent, do not try again")
        try:
            found = file.is_file()
        except OSError:  # a name longer than the file system takes
            found = False
        if not found:
            raise MediaError(f"there is no file {path} in the media folder{self._known()}")
        return file

    def _known(self) -> str:
        try:
            names = sorted(entry.name for entry in os.scandir(self._root) if entry.is_file())
        except OSError:
            return ""
        return f"; it holds: {', '.join(names[:10])}" if names else ", which is empty"

    def _checked_url(self, url: str) -> str:
        if not url:
            raise MediaError("neither path nor url is given")
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode("ascii").lower()
            if "\\" in url or not HOST.fullmatch(host):
                raise ValueError("its host can be read in more than one way")
            check_host(parts.scheme, host)
        except (ToolFailed, ValueError) as error:
            problem = f"{url[:100]!r} cannot be sent ({error}); give an http or https url of a public host"
            raise MediaError(problem) from error
        if len(url) > MAX_URL:
            raise MediaError(f"the url is longer than {MAX_URL} characters; give a shorter one")
        return url


def _last_part(url: str) -> str:
    return unquote(urlsplit(url.strip()).path).rsplit("/", 1)[-1][:80]
