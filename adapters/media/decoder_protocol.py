"""The frames between the bot and the image decoder: length and image; kind, length and answer."""

from __future__ import annotations

import struct
from typing import Final

HEAD: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">BI")
SHOWN, REFUSED = 0, 1
MAX_ANSWER: Final = 4 * 2**20  # bytes; a JPEG of 1.15 megapixels is far smaller
