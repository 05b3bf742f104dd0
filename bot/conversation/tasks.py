"""The work of lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from bot.domain.events import MessageReceived
from bot.domain.journal import OpenTurn
from bot.domain.suspension import Decision
from bot.policy.wake import NeedsQuoted, Wake

YOUNG = 120.0  # seconds a question waits for its answer: later nobody expects one


@dataclass(frozen=True, slots=True)
class Resume:
    """A suspended turn that is to go on; `question` is what it was asked, None where no such turn
    waits.
    """

    turn_id: str
    decisions: Mapping[str, Decision]
    question: MessageReceived | None


@dataclass(frozen=True, slots=True)
class Task:
    """A message to answer, once it is certain that it is for us.

    It was taken at `since`, by our clock: the server's may be another. `retry` is its interrupted
    turn. `told`: it is older than this process, and no journal knows of it. `lost`: nor is it known
    what was done for it already, so its asker is asked to ask again. `lines` are what he said
    before it and what belongs to it, oldest first.
    """

    message: MessageReceived
    verdict: Wake | NeedsQuoted
    since: float
    retry: OpenTurn | None = None
    told: bool = False
    lost: bool = False
    lines: tuple[MessageReceived, ...] = ()

    @property
    def wake(self) -> Wake:
        """The wake; a quote of the bot's words until somebody knows better."""
        return self.verdict if isinstance(self.verdict, Wake) else Wake("quote")

    @property
    def may_be_answered(self) -> bool:
        """Whether own words that nobody knows, and that quote nothing, count as its answer: in
        private none quotes.
        """
        return self.lost or (self.told and not self.message.conversation.is_group)


Work: TypeAlias = Task | Resume
