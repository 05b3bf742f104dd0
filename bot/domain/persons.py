"""People and places in what a model writes to a tool: by the numbers behind names, 2 for 小明#2,
so that it needs nobody's account.
"""

from __future__ import annotations

import re

from bot.domain.errors import InvalidArguments
from bot.domain.events import read_id
from bot.domain.ports import Members
from bot.domain.tool import ToolContext

NUMBER = re.compile(r"(?P<name>.*[#＃]\s*)?(?P<number>[0-9]{1,19})", re.DOTALL)
PERSON = re.compile(r"(?:private:)?\s*[#＃]\s*(?P<number>[0-9]{1,9})", re.IGNORECASE)
GROUP = re.compile(r"group:\s*(?P<number>[0-9]{1,19})", re.IGNORECASE)
LEAST_ACCOUNT = 10_000  # QQ has given no lower ones; no conversation has so many people


def read_number(text: str) -> tuple[int, bool]:
    """The number in `2`, `#2` or `小明#2`, 0 where there is none; whether it stands behind a
    name.
    """
    found = NUMBER.fullmatch(text)
    return (read_id(found["number"]) or 0, bool(found["name"])) if found else (0, False)


def read_person(text: str, context: ToolContext, *, field: str) -> int:
    """The account of whoever has this number here; what can only be an account is one. Raises
    InvalidArguments.
    """
    number, is_ours = read_number(text)
    if Members in context.ports:
        if user_id := context.port(Members).user_id(context.conversation, number):
            return user_id
        if is_ours or number < LEAST_ACCOUNT:
            problem = f"{field}: nobody has the number {number} here; see the names"
            raise InvalidArguments(problem, fields=(problem,))
    return number


def read_place(session: str, context: ToolContext) -> str:
    """The session in full, where it is a group's or a person's of this account."""
    account = context.conversation.platform_id
    if group := GROUP.fullmatch(session.strip()):
        return f"{account}:group:{group['number']}"
    if person := PERSON.fullmatch(session.strip()):
        user_id = read_person(f"#{person['number']}", context, field="session")
        return f"{account}:private:{user_id}"
    return session
