"""The frames between the bot and a program that parses untrusted files. Request: length, bytes.
Answer: kind, length, bytes; those of a refusal are a `Lack`, a newline, and the reason.
"""

from __future__ import annotations

import struct
from typing import Final

from frostagent.types.errors import Lack, MediaError

HEAD: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">BI")
DONE, REFUSED = 0, 1
LONGEST_REASON: Final = 200  # characters


def write_refusal(error: MediaError) -> bytes:
    """The body of a refusal."""
    return f"{error.lack}\n{error}".encode()


def read_refusal(body: bytes) -> MediaError:
    """The error in the body of a refusal, whatever the program wrote."""
    lack, _, reason = body.decode("utf-8", "replace").partition("\n")
    known = Lack(lack) if lack in set(Lack) else Lack.UNREADABLE
    return MediaError(reason[:LONGEST_REASON], known)
