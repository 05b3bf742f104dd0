"""Acts in the operator's console, as an entry of the journal."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct


class Audited(Struct, frozen=True, kw_only=True, tag="audited"):
    """Something was done or tried there: by which `login` (the beginning of its hash, empty where
    there was none), from which address, to what, and how it ended. `at` is in seconds since 1970.
    """

    at: float
    login: str
    address: str
    action: str
    object: str = ""
    outcome: str = "ok"
    type: ClassVar[Literal["audited"]] = "audited"
