"""The people on the simulated QQ, and the groups they are in."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.domain.events import Role


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on QQ; in a group with a `card` (their name there, often empty) and a `role`;
    `is_robot`: one of QQ's official robots.
    """

    user_id: int
    nickname: str
    card: str = ""
    role: Role = "member"
    is_robot: bool = False

    @property
    def name(self) -> str:
        return self.card or self.nickname or str(self.user_id)


@dataclass(slots=True)
class Group:
    """A group the account is in; members by their number, the account among them."""

    group_id: int
    name: str
    members: dict[int, Person] = field(default_factory=dict)
