"""How the ids of sends of no turn begin, so that forgetting finds the lines about a person or a
turn; other ids have no such beginning. Behind it stand two parts without a `-`
(`bot/speaking/sends`).
"""

from __future__ import annotations

KINDS = PERSON, TURN = "user-", "turn-"


def about_person(user: int) -> str:
    """Of what is said to a person who gave a command."""
    return f"{PERSON}{user}-"


def about_turn(turn_id: str) -> str:
    """Of what owners are asked about the calls of a turn."""
    return f"{TURN}{turn_id}-"


def about(send_id: str) -> str:
    """The beginning of an id; empty if it has none."""
    name, *rest = send_id.rsplit("-", 2)
    return f"{name}-" if len(rest) == 2 and send_id.startswith(KINDS) else ""
