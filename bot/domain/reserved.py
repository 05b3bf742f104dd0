"""Entries of the journal about requests to models that are under way."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from bot.domain.chat import Usage


class UsageReserved(Struct, frozen=True, kw_only=True, tag="usage_reserved"):
    """A model is about to be asked on behalf of a turn, and will take about so much: a `usage` of
    that turn that was reserved under this `number` takes its place.
    """

    turn_id: str
    number: int
    model: str
    usage: Usage
    at: float
    type: ClassVar[Literal["usage_reserved"]] = "usage_reserved"


class UsageReleased(Struct, frozen=True, kw_only=True, tag="usage_released"):
    """A request of a turn for which that was reserved took nothing."""

    turn_id: str
    number: int
    type: ClassVar[Literal["usage_released"]] = "usage_released"
