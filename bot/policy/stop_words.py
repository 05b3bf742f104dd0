"""Whether somebody wants the bot to stop, in so many words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.domain.events import MessageReceived
from bot.domain.segments import Mention, Quote, Text
from bot.policy.wake import bare, folded

COMMAND = "/stop"
EVERYTHING = "/stop all"
CHINESE = ("停", "停止", "停下", "停一下", "别说了", "别说话", "闭嘴", "住口")
ENGLISH = ("stop", "stop it", "stop that", "stop now", "stop talking", "please stop", "shut up")
WORDS = frozenset({COMMAND, EVERYTHING, *CHINESE, *ENGLISH})
LONGEST = 100  # characters
SIGNS = ("停", "别", "闭", "住", "stop", "shut")  # it has one of these: nearly nothing else does


@dataclass(frozen=True, slots=True)
class StopWord:
    """A message that is nothing else; `addressed` where it says whom it means, by a mention or a
    name.

    A `command` needs to say no more; `everything` is more than what somebody asked himself.
    """

    addressed: bool
    command: bool
    everything: bool


def stop_in(message: MessageReceived, names: Iterable[str]) -> StopWord | None:
    """The stop that a message is, but for a mention of the bot, its name and a quote; None for
    anything else.
    """
    words = "".join([one.text for one in message.segments if isinstance(one, Text)])
    text = folded(words[: LONGEST + 1])
    if len(text) > LONGEST or not any(map(text.__contains__, SIGNS)):
        return None
    mentioned = False
    for segment in message.segments:
        match segment:
            case Mention(user_id=user_id) if user_id == message.self_id:
                mentioned = True
            case Text() | Quote():
                pass
            case _:
                return None
    text = " ".join(bare(text).split())
    if text not in WORDS:
        named = _without_name(text, names)
        if named not in WORDS:
            return None
        text, mentioned = named, True
    return StopWord(mentioned, text.startswith(COMMAND), text == EVERYTHING)


def _without_name(text: str, names: Iterable[str]) -> str:
    for name in map(bare, names):
        if name and text.startswith(name):
            return bare(text.removeprefix(name))
        if name and text.endswith(name):
            return bare(text.removesuffix(name))
    return text
