"""`/help`: the commands that the asker may use."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from bot.commands.commands import may_use
from bot.core.command import Answering, Asked, Command, command
from bot.core.language import CATALOGUE, Phrase

logger = logging.getLogger(__name__)


def with_help(ours: Sequence[Command], custom: Sequence[Command]) -> tuple[Command, ...]:
    """`/help`, our commands and the operator's; one of theirs with one of our names is left out and
    logged.
    """
    taken = {name.casefold() for one in (*ours, help_command(())) for name in one.names}
    kept = [one for one in custom if taken.isdisjoint(map(str.casefold, one.names))]
    for one in custom:
        if one not in kept:
            logger.warning("the command /%s of TOOLS_DIR has a name of ours", one.names[0])
    return (help_command((*ours, *kept)), *ours, *kept)


def help_command(others: Sequence[Command]) -> Command:
    """`/help`, which lists itself and the others."""
    listed: list[Command] = []
    made = command("help", "帮助", about=("能用的命令", "the commands you can use"))(
        _telling(listed)
    )
    listed += [made, *others]
    return made


def _telling(commands: Sequence[Command]) -> Answering:
    async def tell(asked: Asked) -> str:
        lines = [
            f"/{_name(one, asked)} {asked.either(*one.about)}"
            for one in commands
            if may_use(asked.asker, one.audience, where=asked.where)
        ]
        note = JUST_TALK.format(asked.language)
        return "\n".join([*lines, note])

    return tell


def _name(one: Command, asked: Asked) -> str:
    """The name in the asker's language: the first is English, the second Chinese."""
    return one.names[1] if asked.chinese and len(one.names) > 1 else one.names[0]


NOTHING = Phrase("我现在没有在忙什么。", "There is nothing to stop.")
JUST_TALK = Phrase("不带斜杠就是和我聊天。", "Without a slash, you are just talking to me.")
CATALOGUE.register(__name__, globals())


@command("stop", about=("让我停下正在做的事", "stop what I am doing"))
async def _stop(asked: Asked) -> str:
    return NOTHING.format(asked.language)


def stop_command() -> Command:
    """`/stop` if there is nothing to stop; for everyone. `stop_handler` decides who may stop which
    question.
    """
    return _stop
