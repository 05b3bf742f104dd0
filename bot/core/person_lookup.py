"""People and places in a model's arguments to tools: by the number after a name, 2 for 小明#2, so
that a model needs no account numbers.
"""

from __future__ import annotations

import re

from bot.core.conversation import Conversation
from bot.core.events import read_id
from bot.core.ports import Members
from bot.core.run_ids import place_of
from frostagent.types.errors import InvalidArguments
from frostagent.types.tools import ToolContext

NUMBER = re.compile(r"(?:(?P<name>.*)[#＃]\s*)?(?P<number>[0-9]{1,19})", re.DOTALL)
PERSON = re.compile(r"(?:private:)?\s*[#＃]\s*(?P<number>[0-9]{1,9})", re.IGNORECASE)
GROUP = re.compile(r"group:\s*(?P<number>[0-9]{1,19})", re.IGNORECASE)
LEAST_ACCOUNT = 10_000  # QQ's lowest account; no conversation has so many people


def find_person(text: str, members: Members, where: Conversation) -> int | None:
    """The account of `2`, `#2` or `小明#2` there; None if the number is unknown, or the name beside
    it belongs to another person: `Carol#1` may be the whole name of #2.
    """
    if not (found := NUMBER.fullmatch(text.strip())) or not (number := read_id(found["number"])):
        return None
    name = found["number"] if found["name"] is None else found["name"]
    return members.user_id(where, number, name)


def has_number(text: str) -> bool:
    return (found := NUMBER.fullmatch(text)) is not None and bool(read_id(found["number"]))


def read_person(text: str, context: ToolContext, *, field: str) -> int:
    """The account of the person meant here; a number too large for a conversation's is an account.
    Raises InvalidArguments.
    """
    found = NUMBER.fullmatch(text)
    number = (read_id(found["number"]) or 0) if found else 0
    if Members in context.ports:
        if user_id := find_person(text, context.port(Members), place_of(context)):
            return user_id
        name = found["name"] if found else None
        if name is not None or number < LEAST_ACCOUNT:
            named = f" and the name {name[:40]!r}" if name else ""
            problem = f"{field}: nobody has the number {number} here{named}; see the names"
            raise InvalidArguments(problem, fields=(problem,))
    return number


def read_place(session: str, context: ToolContext) -> str:
    """The session in full, if it is a group's or a person's of this account."""
    account = place_of(context).platform_id
    if group := GROUP.fullmatch(session.strip()):
        return f"{account}:group:{group['number']}"
    if person := PERSON.fullmatch(session.strip()):
        user_id = read_person(f"#{person['number']}", context, field="session")
        return f"{account}:private:{user_id}"
    return session
