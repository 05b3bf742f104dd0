"""Requests to be the bot's friend, and invites of it into a group: data, and the port that answers
them.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from bot.domain.events import Conversation

Accept: TypeAlias = Literal["ask", "friends", "none"]
"""What becomes of them: owners are asked, friends are accepted at once, or nobody is answered."""


class Petition(Struct, frozen=True, kw_only=True):
    """Somebody waits for an owner's word since then (by our clock, in seconds since 1970); `flag`
    is the server's name for it. Where it is `answered` nobody knows yet whether the server heard.
    """

    account: int
    kind: Literal["friend", "invite"]
    user_id: int
    group_id: int = 0
    comment: str = ""
    flag: str
    number: int = 0
    since: float = 0.0
    answered: bool = False

    @property
    def where(self) -> Conversation:
        """The place that would come of it: a private chat, or a group."""
        if self.kind == "friend":
            return Conversation(self.account, "private", self.user_id)
        return Conversation(self.account, "group", self.group_id)


class Admitting(Protocol):
    """Tells the OneBot server whether it is granted."""

    async def admit(self, petition: Petition, *, granted: bool, reason: str = "") -> bool:
        """Grant it or refuse it; False if the server could not have said that QQ did not do it.
        Raises NotConnected, ActionRefused, ActionUnanswered.
        """
        ...


class WaitingPetitions(Protocol):
    """Those that wait for an owner's word."""

    def forget(self, *, user: int = 0, group: int = 0) -> None:
        """Those of this person, or into this group, wait no more."""
        ...
