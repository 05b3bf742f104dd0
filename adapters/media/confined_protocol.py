"""The frames between the bot and a program that takes strangers' bytes apart: length and bytes;
kind, length and answer.
"""

from __future__ import annotations

import struct
from typing import Final

HEAD: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">BI")
DONE, REFUSED = 0, 1
