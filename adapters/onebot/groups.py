"""Groups and the people in them, as servers tell of them (onebot.md 5). Never raises."""

from __future__ import annotations

from typing import Any

from adapters.onebot.fields import decimal, mapping, number, sequence, text
from bot.domain.events import Conversation, Role
from bot.domain.ports import JoinedGroup, Member

ROLES: dict[str, Role] = {"owner": "owner", "admin": "admin", "member": "member"}


def read_groups(data: object, *, account: int) -> tuple[JoinedGroup, ...]:
    """The groups in an answer to get_group_list; `group_all_shut` is NapCat's, a number or a bool,
    the two timestamps are LLBot's.
    """
    read = [(number(fields.get("group_id")), fields) for fields in map(mapping, sequence(data))]
    return tuple(
        JoinedGroup(
            Conversation(account, "group", group),
            _flag(fields.get("group_all_shut")),
            max(0, number(fields.get("member_count"))),
            _time(fields.get("shut_up_all_timestamp")),
            _time(fields.get("shut_up_me_timestamp")),
            name=text(fields.get("group_name")),
        )
        for group, fields in read
        if group > 0
    )


def read_member(data: object) -> Member:
    """The person in an answer to get_group_member_info."""
    fields = mapping(data)
    return Member(
        ROLES.get(text(fields.get("role")), "unknown"),
        _time(fields.get("shut_up_timestamp")),
        _flag(fields.get("is_robot")),
    )


def _time(value: Any) -> float | None:
    """Seconds since 1970; None where it is not there."""
    return None if value is None else decimal(value)


def _flag(value: Any) -> bool | None:
    """Whether it is set; None where it is not there. -1 is all members, in QQ's own words."""
    return None if value is None else value is True or number(value) != 0
