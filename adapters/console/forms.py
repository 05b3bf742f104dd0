"""The forms that a request brings: fields, and on some routes a file. Bounded, and nothing in it is
believed: neither the name nor the type that the other end gives a file is looked at.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import BodyPartReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from adapters.console.listener import LARGEST

FILE: Final = 8 * 2**20  # bytes: what is seen of a picture in QQ, too
PARTS: Final = 20  # of a form with a file
FIELDS_WITHIN: Final = 10.0  # seconds
FILE_WITHIN: Final = 60.0

Form = tuple[dict[str, str], bytes]


class NoForm(Exception):
    """That is no form, or one that is not understood here: the `status` of the answer, and why."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


async def read_form(request: web.BaseRequest, *, takes_file: bool) -> Form:
    """The fields, and what is in the file. Raises NoForm, and TimeoutError."""
    kind = request.content_type
    if takes_file and kind == "multipart/form-data":
        reading, within = _parts(request), FILE_WITHIN
    elif kind == "application/x-www-form-urlencoded":
        reading, within = _fields(request), FIELDS_WITHIN
    else:
        raise NoForm(415, "forms only")
    try:
        async with asyncio.timeout(within):
            return await reading
    except web.HTTPRequestEntityTooLarge:
        raise NoForm(413, "too large") from None
    except (ValueError, LookupError, AssertionError, HttpProcessingError) as error:
        raise NoForm(400, "this form cannot be read") from error


async def _fields(request: web.BaseRequest) -> Form:
    given = await request.post()
    return {name: value for name, value in given.items() if isinstance(value, str)}, b""


async def _parts(request: web.BaseRequest) -> Form:
    """Read part by part, so that no more is kept than may be."""
    if (request.content_length or 0) > FILE + LARGEST:
        raise NoForm(413, "too large")
    fields, file, left = dict[str, str](), b"", LARGEST
    parts = await request.multipart()
    for _ in range(PARTS):
        if (part := await parts.next()) is None:
            return fields, file
        if not isinstance(part, BodyPartReader) or part.name is None:
            raise ValueError("a part is no field")
        if part.filename is not None:
            file = await _read(part, FILE)
        else:
            data = await _read(part, left)
            left -= len(data)
            fields[part.name] = data.decode()
    raise ValueError("too many parts")


async def _read(part: BodyPartReader, most: int) -> bytes:
    if hdrs.CONTENT_ENCODING in part.headers or hdrs.CONTENT_TRANSFER_ENCODING in part.headers:
        raise ValueError("no browser packs what it sends")
    data = bytearray()
    while not part.at_eof():
        data += await part.read_chunk()
        if len(data) > most:
            raise NoForm(413, "too large")
    return bytes(data)
