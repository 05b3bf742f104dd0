"""Who may allow a call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from bot.domain.language import Language
from bot.domain.suspension import ApprovalRequest, Deny, Pending
from bot.policy.approval import NO_OWNER
from bot.policy.permissions import WAIT

logger = logging.getLogger(__name__)

Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Deciders:
    """The owners; in the chat of a terminal, whoever reads that stands in for them. They are told
    in their `tongue`.
    """

    owners: frozenset[int] = frozenset()
    terminal: Say | None = None
    tongue: Language = Language.CHINESE

    @property
    def are_there(self) -> bool:
        """Whether anybody can be asked at all."""
        return bool(self.owners) or self.terminal is not None

    async def approve(self, request: ApprovalRequest) -> Deny | Pending:
        """Nobody can say at once: the run is to wait, unless there is nobody to ask."""
        if not self.are_there:
            logger.warning(
                "run %s: %s must be allowed, but %s", request.run_id, request.name, NO_OWNER
            )
            return Deny(NO_OWNER)
        return Pending(WAIT)
