"""A person or a group whose data is erased."""

from __future__ import annotations

import re

from msgspec import Struct


class SubjectErased(Struct, frozen=True, tag="forgotten"):
    """A person, or a group, is forgotten, as `Forgetting` does it: what was said later stays, and
    what was asked `since`. None is without end.
    """

    user: int = 0
    group: int = 0
    said: float | None = None
    since: float | None = None

    def is_named_in(self, text: str) -> bool:
        """Whether a line gives the number of the person, or of the group."""
        number = self.user or self.group
        return re.search(rf"(?<![0-9]){number}(?![0-9])", text) is not None
