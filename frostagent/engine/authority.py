"""A run's authority, which decides what it may do: the lowest of all whose words it has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from frostagent.types.messages import Message, ToolMessage
from frostagent.types.runs import Asker, Led
from frostagent.types.traits import Audience

RANKS = (Audience.EVERYONE, Audience.GROUP_ADMIN, Audience.OWNER)


def is_sufficient(authority: Audience, audience: Audience) -> bool:
    return RANKS.index(authority) >= RANKS.index(audience)


def lowest_authority(authorities: Iterable[Audience]) -> Audience:
    """The lowest of them; without any, nothing is restricted."""
    return min(authorities, key=RANKS.index, default=Audience.OWNER)


def lower_authority(asker: Asker, before: Iterable[Message], results: Iterable[Message]) -> Asker:
    """The asker at the lowest authority read so far, and with the tools that read outside text."""
    told = [one for one in results if isinstance(one, ToolMessage)]
    authority = lowest_authority((asker.authority, *(one.authority for one in told)))
    read = tuple(dict.fromkeys((*asker.read, *outside_tools((*before, *told)))))
    if authority is asker.authority and read == asker.read:
        return asker
    return replace(asker, authority=authority, read=read)


def outside_tools(messages: Iterable[Message]) -> Iterator[str]:
    """The tools that brought outside text into these messages."""
    return (one.name for one in messages if isinstance(one, ToolMessage) and one.tainted)


def with_read(asker: Asker, names: Iterable[str]) -> Asker:
    """The asker, influenced by outside text from these sources."""
    read = tuple(dict.fromkeys((*asker.read, *names)))
    return asker if read == asker.read else replace(asker, read=read)


def may_call(asker: Asker, audience: Audience) -> bool:
    """Whether the asker, and everyone they quote, may use a tool for this audience."""
    if not is_sufficient(asker.authority, audience):
        return False
    match audience:
        case Audience.EVERYONE:
            return True
        case Audience.GROUP_ADMIN:
            return asker.is_owner or asker.role in {"owner", "admin"}
        case Audience.OWNER:
            return asker.is_owner


def must_be_confirmed(asker: Asker, audience: Audience, *, goes_beyond: bool = False) -> bool:
    """Whether an owner must approve the call: people overheard before the question may not use the
    tool, or outside text was read and the tool is restricted or `goes_beyond` the conversation.

    The call is not refused, because askers cannot help what others say. It is refused if they quote
    others.
    """
    if asker.read and (goes_beyond or audience is not Audience.EVERYONE):
        return True
    return not is_sufficient(asker.overheard, audience)


def in_one_line(text: str, limit: int) -> str:
    """The text as one printable line; a long one is cut in the middle and gets its length."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= limit:
        return line
    half = limit // 2
    return f"{line[:half]} …({len(line)})… {line[-half:]}"


def led_by(asker: Asker) -> Led:
    """The people and tools besides the asker that influenced the run."""
    people = asker.authority is not Audience.OWNER or asker.overheard is not Audience.OWNER
    names = tuple(in_one_line(name, 40) for name in asker.voices) if people else ()
    return Led(people, names, asker.read)
