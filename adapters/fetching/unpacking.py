"""Bodies that come gzipped, unpacked with a limit: 64 KiB of gzip can hold 64 MiB, gzip inside gzip
far more.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx

from bot.domain.errors import ToolFailed

ENCODINGS = "gzip"
"""What we ask for; a server that packs otherwise was not asked to."""

PLAIN = frozenset({"", "identity"})
GZIP = frozenset({"gzip", "x-gzip"})


async def read_body(response: httpx.Response, *, host: str, limit: int) -> bytes:
    """The body, at most `limit` bytes of it, unpacked. Raises ToolFailed, httpx.HTTPError.

    `host` is what its server is called in an error. Too large is told by what the server says of
    the size, else as soon as the limit is passed.
    """
    too_large = ToolFailed(f"{host} sent more than {limit:,} bytes")
    encoding = response.headers.get("content-encoding", "").strip().lower()
    told = response.headers.get("content-length", "")
    if encoding in PLAIN and told.isdecimal() and len(told) < 19 and int(told) > limit:
        raise too_large
    if encoding not in PLAIN | GZIP:
        raise ToolFailed(f"{host} sent it packed as {encoding[:20]!r}, which is not read")
    body = bytearray()
    chunks = response.aiter_raw() if encoding in PLAIN else _unpack(response.aiter_raw(), limit + 1)
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


async def _unpack(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """The content of the gzip, up to `most` bytes at once. Raises httpx.DecodingError."""
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    begun = False
    try:
        async for chunk in chunks:
            begun = True
            yield gzip.decompress(chunk, most)
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error
    if begun and not gzip.eof:
        raise httpx.DecodingError("the gzip ends in the middle")
