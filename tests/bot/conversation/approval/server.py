"""A server that is told what becomes of requests."""

from __future__ import annotations

import asyncio

from bot.domain.errors import BotError
from bot.domain.group_admin import JoinRequest


class RecordingServer:
    """Keeps what it was told; `failures` happen first."""

    def __init__(self) -> None:
        self.admitted: list[tuple[JoinRequest, bool, str]] = []
        self.failures: list[BotError] = []
        self.tells = True  # whether it would say that QQ did not do it

    async def admit(self, petition: JoinRequest, *, granted: bool, reason: str = "") -> bool:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.admitted.append((petition, granted, reason))
        return self.tells
