"""The `Media` port: turns files of one folder and public URLs into attachments.

Nothing outside the folder is read, not even through links. A OneBot server in another container
cannot read the bot's files, so a file is sent inside the frame as base64:// unless both share the
folder at the same path (`onebot/compose.md` section 4). The bot fetches URLs itself, because a
OneBot server checks no address, and sends the content in the same way. Only the operator can have
URLs passed on (MEDIA_URLS=pass).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from email.message import Message
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from adapters.media.formats import describe, fits, name_for
from bot.core.addresses import check_foreign, check_host
from bot.core.filenames import clean_name
from bot.core.ports import Web
from frostagent.types.errors import MediaError, ToolFailed
from frostagent.types.speech import Attachment, MediaKind

MAX_URL = 2048
ADVICE = "give an http or https url of a public host"

HOST = re.compile(r"[a-z0-9._:-]*")  # other letters are in their IDNA form


def check_url(url: str) -> str:
    """Return the URL if its form allows fetching it. Raises MediaError."""
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
    """The file name in the URL, unchecked; often empty."""
    return unquote(urlsplit(url).path).rpartition("/")[2]


def name_in_header(disposition: str) -> str:
    """The file name in a Content-Disposition, unchecked; empty if there is none."""
    header = Message()
    try:
        header["Content-Disposition"] = disposition
        return header.get_filename() or ""
    except (
        LookupError,
        TypeError,
        ValueError,
    ):  # unknown charset, line break, malformed parts
        return ""


FOLDER = ".drafts"
MOST = 256 * 1024 * 1024  # bytes of all files
OWN_FOLDER, OWN_FILE = 0o700, 0o600
UNDONE = ".part"

logger = logging.getLogger(__name__)


class DraftFiles:
    """The `DraftMedia` port: files below `root`, at most `most` bytes per `suffix`. A file that
    cannot be written is logged and dropped.
    """

    def __init__(self, root: Path, suffix: str = "", *, most: int = MOST) -> None:
        self._folder = root / f"{FOLDER}{suffix}"
        self._most = most

    async def keep(self, name: str, content: bytes) -> None:
        await asyncio.to_thread(self._keep, name, content)

    async def find(self, name: str) -> bytes:
        """The content; empty if it is missing or unreadable."""
        return await asyncio.to_thread(self._find, name)

    async def keep_only(self, names: Collection[str]) -> None:
        """Delete all other files."""
        await asyncio.to_thread(self._keep_only, names)

    def _keep(self, name: str, content: bytes) -> None:
        file, part = self._folder / name, self._folder / f"{name}{UNDONE}"
        try:
            if not self._folder.is_dir():
                self._folder.mkdir(mode=OWN_FOLDER, parents=True)
            there = sum(one.stat().st_size for one in self._folder.iterdir())
            if there + len(content) > self._most:
                logger.warning("the media of draft %s are not kept: there are too many", name)
                return
            part.touch(OWN_FILE)
            part.write_bytes(content)
            part.replace(file)
        except OSError as error:
            logger.warning("the media of draft %s are not kept (%s)", name, error.strerror)

    def _find(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            logger.warning("the media of draft %s cannot be read (%s)", name, error.strerror)
            return b""

    def _keep_only(self, names: Collection[str]) -> None:
        try:
            files = list(self._folder.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            logger.warning("media of drafts cannot be deleted (%s)", error.strerror)
            return
        for file in files:
            if file.name not in names:
                _delete(file)


def delete_lost(root: Path, is_known: Callable[[str], bool]) -> None:
    """Delete the media of drafts with turns unknown to the journal, of all bots. Blocks."""
    for file in root.glob(f"{FOLDER}*/*"):
        if not is_known(file.name.removesuffix(UNDONE).partition("-")[2]):
            _delete(file)


def _delete(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s cannot be deleted (%s)", file, error.strerror)


# NapCat accepts frames of 50 MiB; base64 makes four bytes of three (onebot.md 4.4).
MAX_BASE64 = 37 * 1024 * 1024
# URLs fetched in parallel: content is in memory up to three times (bytes, base64, text).
AT_ONCE = 4

INSTEAD = "give another url of a public host, or do without it"
KINDS: dict[MediaKind, str] = {
    "image": "picture",
    "record": "voice or music",
    "video": "video",
    "file": "file",
}


class MediaFolder:
    """Attaches files below `root` and the content of URLs. `max_bytes` limits what is sent as
    base64.

    `web` must be safe for foreign URLs; without it, URLs are passed on.
    """

    def __init__(
        self,
        root: Path,
        *,
        web: Web | None,
        mode: Literal["base64", "file"] = "base64",
        max_bytes: int = MAX_BASE64,
    ) -> None:
        self._root = root.resolve()
        self._web = web
        self._mode = mode
        self._max_bytes = max_bytes
        self._fetching = asyncio.Semaphore(AT_ONCE)

    async def attach(
        self, kind: MediaKind, *, path: str = "", url: str = "", name: str = ""
    ) -> Attachment:
        """Return the file (or else the URL's content) as an attachment. Raises MediaError."""
        if path.strip():
            return await asyncio.to_thread(self._attach_file, kind, path.strip(), name)
        checked = check_url(url.strip())
        if self._web is None:
            return Attachment(kind, checked, clean_name(name or name_in_url(checked)))
        async with self._fetching:
            return await self._fetch(self._web, kind, checked, name)

    async def _fetch(self, web: Web, kind: MediaKind, url: str, name: str) -> Attachment:
        try:
            response = await web.get(url)
        except ToolFailed as error:
            raise MediaError(f"{url[:100]!r} cannot be sent ({error}); {INSTEAD}") from error
        if response.status != 200:
            raise MediaError(
                f"{url[:100]!r} cannot be sent (its server answered {response.status}); {INSTEAD}"
            )
        data = response.body
        if not data:
            raise MediaError(f"{url[:100]!r} is empty; {INSTEAD}")
        if len(data) > self._max_bytes:
            raise MediaError(
                f"{url[:100]!r} is larger than {_mib(self._max_bytes)}, too large to send; "
                f"{INSTEAD}"
            )
        if not fits(kind, data):
            raise MediaError(f"{url[:100]!r} is no {KINDS[kind]} but {describe(data)}; {INSTEAD}")
        told = (
            name
            or name_in_header(response.headers.get("content-disposition", ""))
            or name_in_url(response.url)
        )
        return Attachment(kind, await asyncio.to_thread(_inline, data), name_for(told, data))

    def _attach_file(self, kind: MediaKind, path: str, name: str) -> Attachment:
        file = self._checked_path(path)
        name = clean_name(name or file.name)
        if self._mode == "file":
            _let_be_read(file)
            return Attachment(kind, file.as_uri(), name)
        try:
            size = file.stat().st_size
            if size > self._max_bytes:
                limit = _mib(self._max_bytes)
                raise MediaError(
                    f"{path} is larger than {limit}, too large to send; send a smaller file"
                )
            if size == 0:
                raise MediaError(f"{path} is empty; send another file")
            data = file.read_bytes()
        except OSError as error:
            raise MediaError(
                f"{path} cannot be read ({error.strerror}); send another file"
            ) from error
        return Attachment(kind, _inline(data), name)

    def _checked_path(self, path: str) -> Path:
        """The file at the path, with links resolved, if it is in the media folder."""
        bare = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
        if "\0" in bare:
            raise MediaError("the path holds a zero byte; name a file of the media folder")
        try:
            file = (self._root / bare).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # circular links; half a character
            raise MediaError(
                f"{path} cannot be resolved; name a file of the media folder"
            ) from error
        if not file.is_relative_to(self._root):
            raise MediaError(
                f"{path} is outside the media folder; only files inside it can be sent, do not try "
                "again"
            )
        first, *_ = *file.relative_to(self._root).parts, ""
        try:
            found = first.casefold() != FOLDER and file.is_file()
        except OSError:  # the name is too long for the file system
            found = False
        if not found:
            raise MediaError(f"there is no file {path} in the media folder{self._known()}")
        return file

    def _known(self) -> str:
        try:
            with os.scandir(self._root) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file())
        except OSError:
            return ""
        return f"; it holds: {', '.join(names[:10])}" if names else ", which is empty"


def _inline(data: bytes) -> str:
    return "base64://" + base64.b64encode(data).decode("ascii")


def _mib(size: int) -> str:
    return f"{size // 1024 // 1024} MiB"


def _let_be_read(file: Path) -> None:
    """Make the file readable for the OneBot server, which may run as another account: files of the
    bot are otherwise private.
    """
    with suppress(OSError):  # not our file: its owner decides
        file.chmod(file.stat().st_mode | 0o044)
