from __future__ import annotations

import re

from msgspec import Struct


class SubjectErased(Struct, frozen=True, tag="forgotten"):
    """A person or a group whose data was erased, except messages said after `said`, and questions
    asked after `since` (seconds since 1970; None: no such limit).
    """

    user: int = 0
    group: int = 0
    said: float | None = None
    since: float | None = None

    def is_named_in(self, text: str) -> bool:
        """Whether a line contains the number of the person or group."""
        number = self.user or self.group
        return re.search(rf"(?<![0-9]){number}(?![0-9])", text) is not None
