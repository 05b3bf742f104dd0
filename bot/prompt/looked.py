"""Things opened for a model, as it reads them: under the same frame as what people say."""

from __future__ import annotations

from bot.domain.errors import Lack
from bot.domain.events import MessageReceived
from bot.domain.segments import Forward, Picture, Record, Segment
from bot.prompt.compose import Forwarded, passed_on
from bot.prompt.render import indented, line, plain
from bot.prompt.view import View
from bot.prompt.wording import Wording

MAX_LOOKED = 9000  # characters: more than anybody gives of one thing


def looked(message: MessageReceived, forwarded: Forwarded, view: View) -> str:
    """Something that was opened, as the line of whoever sent it; of what is inside a forward nobody
    knows who that was.
    """
    if message.sender.user_id:
        return "\n".join((line(message, view, limit=MAX_LOOKED), *passed_on(forwarded, view)))
    inner = indented(plain(message.segments, view, self_id=message.self_id), MAX_LOOKED)
    heading = view.words.heading(view.words.forwarded)
    return "\n".join((heading, "  " + inner.replace("\n", "\n  "), *passed_on(forwarded, view)))


def lacking(segment: Segment, lack: Lack, words: Wording) -> str:
    """The words for something that cannot be had: `[图片 已过期]`."""
    match segment:
        case Picture():
            kind = words.segments.picture
        case Record():
            kind = words.segments.voice
        case Forward():
            kind = words.segments.forward
        case _:
            kind = words.segments.file
    return words.heading(kind, words.lacks[lack])
