"""The chat on a terminal: typed lines become group messages, the bot's messages lines. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from adapters.simulator.call import Gesture, SentMessage
from adapters.simulator.wire import Json, mention, text

SPEAKER = re.compile(r"(?![@/])([^\s:]{1,24}): (.*)", re.DOTALL)
EVERYBODY = ("all", "全体成员")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # terminal controls; tabs and line ends stay
ALIAS = "bot"
REPLY = re.compile(r"^\[reply to \S+\] ")
"""The printed prefix of a reply; the order of lines shows it too."""


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line's segments and its speaker's name, empty for the person at the keyboard."""

    speaker: str
    segments: list[Json]


def parse_line(line: str, people: Mapping[str, int], self_id: int) -> SpokenLine:
    """Read `@bot hi`, or `name: hi` to speak as that member; no segments for an empty line.

    `people` maps names to numbers. A speaker is a name without spaces, of up to 24 characters,
    before a colon and a space; so a link or a time of day is none. Speaking as the bot is not
    possible.
    """
    match = SPEAKER.fullmatch(line.strip("\r\n"))
    if match and match[1].casefold() != ALIAS and people.get(match[1]) != self_id:
        return SpokenLine(match[1], parse_mentions(match[2].strip(), people, self_id))
    return SpokenLine("", parse_mentions(line.strip(), people, self_id))


def spoken(
    message: str | Sequence[Json], people: Mapping[str, int], self_id: int
) -> Sequence[Json]:
    """The segments of a message; a string is parsed for mentions."""
    return parse_mentions(message, people, self_id) if isinstance(message, str) else message


def parse_mentions(line: str, people: Mapping[str, int], self_id: int) -> list[Json]:
    """Turn every `@name` of a member into a mention, `@bot` into the account's; rest is text."""
    names = (
        dict.fromkeys(EVERYBODY, "all")
        | {ALIAS: str(self_id)}
        | {name: str(who) for name, who in people.items()}
    )
    longest_first = sorted(names, key=len, reverse=True)
    segments: list[Json] = []
    end = 0
    for match in _at_one_of(longest_first).finditer(line):
        segments += _text(line[end : match.start()])
        segments.append(mention(names[longest_first[(match.lastindex or 1) - 1]]))
        end = match.end()
    if segments and end == len(line):
        return [*segments, text(" ")]  # clients add a space after a mention
    return segments + _text(line[end:])


def _at_one_of(names: list[str]) -> re.Pattern[str]:
    """`@` and a name, a group each; not inside an address (a@bot.net) or a word (@bottle)."""
    ends = (
        f"({re.escape(name)})" + (r"(?![A-Za-z0-9_])" if name[-1:].isascii() else "")
        for name in names
    )
    return re.compile(f"(?<![A-Za-z0-9_])@(?:{'|'.join(ends)})", re.IGNORECASE)


def _text(words: str) -> list[Json]:
    return [text(words)] if words else []


def render(message: SentMessage, people: Mapping[int, str], *, home: int) -> str:
    """A message of the bot in print: `bot: ...`, further lines indented. See `message_text`."""
    first, *further = message_text(message, people, home=home).split("\n")
    return "\n".join([f"bot: {first}", *(f"  {line}" for line in further)])


def message_text(message: SentMessage, people: Mapping[int, str], *, home: int) -> str:
    """The words of a message, other segments in brackets.

    `people` maps numbers to names; a message outside the group `home` shows its destination.
    """
    pieces = [_render_segment(segment, people) for segment in message.segments]
    if any(segment["type"] == "node" for segment in message.segments):
        pieces.insert(0, f"[forward of {len(pieces)}]")
    if message.group_id is None:
        pieces.insert(0, f"[to {_name(message.user_id, people)}]")
    elif message.group_id != home:
        pieces.insert(0, f"[to group {message.group_id}]")
    said = ""
    for piece in pieces:
        apart = said and piece and not said[-1].isspace() and not piece[0].isspace()
        said += " " + piece if apart and (said[-1] == "]" or piece[0] == "[") else piece
    return CONTROL.sub("", said.replace("\r\n", "\n")).strip()


def render_gesture(gesture: Gesture, people: Mapping[int, str]) -> str:
    """A gesture in print: `bot: [reacts to user1 with 76]`."""
    name = _name(gesture.user_id, people)
    match gesture.kind:
        case "reaction":
            does = "takes back" if gesture.taken_back else "reacts to"
            return f"bot: [{does} {name} with {gesture.emoji_id}]"
        case "poke":
            return f"bot: [pokes {name}]"
        case "typing":
            return f"bot: [is typing to {name}]"
        case "mute":
            return f"bot: [mutes {name} for {gesture.seconds} s]"
        case "card":
            return f"bot: [sets the card of {name}]"
        case "recall" | "pin":
            return f"bot: [{gesture.kind}s a message]"
        case "friend" | "joined" | "admitted" | "refusal":
            return f"bot: [answers {name}: {gesture.kind}]"


def _render_segment(segment: Json, people: Mapping[int, str]) -> str:
    data = segment["data"]
    match segment["type"]:
        case "text":
            return str(data.get("text", ""))
        case "at":
            return f"[@{_name(data.get('qq'), people)}]"
        case "reply":
            return f"[reply to {data.get('id')}]"
        case "face":
            return f"[face {data.get('id')}]"
        case "node":
            name = data.get("nickname") or data.get("name") or _name(data.get("user_id"), people)
            words = "".join(_render_segment(segment, people) for segment in _content(data))
            return f"\n[{name}] {words}"
        case "image" | "record" | "video" | "file" as kind:
            source = str(data.get("url") or data.get("file") or data.get("path") or "")
            said = (kind, str(data.get("name") or ""), _describe_source(source))
            return f"[{' '.join(filter(None, said))}]"
        case kind:
            return f"[{kind}]"


def _content(node: Json) -> list[Json]:
    content = node.get("content")
    return content if isinstance(content, list) else [text(str(content or ""))]


def _name(who: Any, people: Mapping[int, str]) -> str:
    number = str(who)
    return people.get(int(number), number) if number.isdecimal() else number


def _describe_source(source: str) -> str:
    """The size of inline data; the address or name of anything else."""
    scheme, _, rest = source.partition(":")
    match scheme:
        case "base64":
            return _size(rest.removeprefix("//"))
        case "data":
            return _size(rest.partition(",")[2])
        case "http" | "https":
            return source
        case _:
            return PurePosixPath(source).name


def _size(encoded: str) -> str:
    try:
        size = len(base64.b64decode(encoded))
    except (binascii.Error, ValueError):
        return ""
    return f"{size / 1000:.1f} kB" if size >= 1000 else f"{size} bytes"
