"""The frames between the bot and a program that parses untrusted files. Request: length, bytes.
Answer: kind, length, bytes.
"""

from __future__ import annotations

import struct
from typing import Final

HEAD: Final = struct.Struct(">I")
ANSWER: Final = struct.Struct(">BI")
DONE, REFUSED = 0, 1
