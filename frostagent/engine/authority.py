"""The authority of a run: the lowest of all whose words it has read. What that authority allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from frostagent.types.messages import Message, ToolMessage
from frostagent.types.runs import Asker, Led
from frostagent.types.traits import Audience

RANKS = (Audience.EVERYONE, Audience.GROUP_ADMIN, Audience.OWNER)


def is_sufficient(authority: Audience, audience: Audience) -> bool:
    """Whether this authority is enough for what is for that audience."""
    return RANKS.index(authority) >= RANKS.index(audience)


def lowest_authority(authorities: Iterable[Audience]) -> Audience:
    """The lowest of them; where there are none, nothing is in the way."""
    return min(authorities, key=RANKS.index, default=Audience.OWNER)


def lower_authority(asker: Asker, before: Iterable[Message], results: Iterable[Message]) -> Asker:
    """The asker with no more authority than the results of their run have; it is known which tools
    brought words from outside, in rounds before it, too.
    """
    told = [one for one in results if isinstance(one, ToolMessage)]
    authority = lowest_authority((asker.authority, *(one.authority for one in told)))
    read = tuple(dict.fromkeys((*asker.read, *outside_tools((*before, *told)))))
    if authority is asker.authority and read == asker.read:
        return asker
    return replace(asker, authority=authority, read=read)


def outside_tools(messages: Iterable[Message]) -> Iterator[str]:
    """The tools that brought words from outside into these messages."""
    return (one.name for one in messages if isinstance(one, ToolMessage) and one.tainted)


def with_read(asker: Asker, names: Iterable[str]) -> Asker:
    """The asker, led by words from outside that these brought."""
    read = tuple(dict.fromkeys((*asker.read, *names)))
    return asker if read == asker.read else replace(asker, read=read)


def may_call(asker: Asker, audience: Audience) -> bool:
    """Whether the asker, and all whose words they pass on, may use what is for this audience."""
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
    """Whether others were overheard before the question that such a tool is not for, or a tool
    brought words from outside and this one is not for everybody, or `goes_beyond` the
    conversation: an owner must allow the call.

    Nobody can help what others say, so it is not refused as it is where the asker himself passes
    their words on.
    """
    if asker.read and (goes_beyond or audience is not Audience.EVERYONE):
        return True
    return not is_sufficient(asker.overheard, audience)


def in_one_line(text: str, limit: int) -> str:
    """The text as one line of visible characters; of a long one the beginning and the end, and how
    many characters it has.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= limit:
        return line
    half = limit // 2
    return f"{line[:half]} …({len(line)})… {line[-half:]}"


def led_by(asker: Asker) -> Led:
    """Whose words led there, beside their own."""
    people = asker.authority is not Audience.OWNER or asker.overheard is not Audience.OWNER
    names = tuple(in_one_line(name, 40) for name in asker.voices) if people else ()
    return Led(people, names, asker.read)
