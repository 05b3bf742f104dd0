"""`/persona`: the persona here, and the ones to choose from."""

from __future__ import annotations

from bot.core.command import NOT_NOW, Asked, Command, command
from bot.core.language import CATALOGUE, Phrase
from bot.memory.personas import Personas
from frostagent.types.traits import Audience

SHOW = frozenset({"show", "看"})
USUAL = frozenset({"usual", "默认"})
SHOWN = 400  # characters of a prompt
LISTED = 20  # personas: an answer fits a phone

HOW = Phrase(
    "换人设：/人设 名称；看内容：/人设 看 名称；恢复设置里的：/人设 默认",
    "/persona NAME switches, /persona show NAME shows one, /persona usual goes back to the default",
)
NOBODY = Phrase("没有这个人设。", "There is no such persona.")
DONE = Phrase("好，从下一句起我是 {name}。", "OK, from the next message on I am {name}.")
NOW = Phrase("现在", "now")
USUAL_NAME = Phrase("默认", "usual")
MORE = Phrase("还有 {more} 个", "{more} more")
CATALOGUE.register(__name__, globals())


def persona_command(personas: Personas) -> Command:
    """For a group's admins. A persona that names groups is offered only there, except to owners."""

    def offered(asked: Asked) -> dict[str, str]:
        claimed = personas.cast.claimed
        theirs = {key for group, key in claimed.items() if group == asked.where.session_id}
        theirs |= {personas.key(asked.where)}
        return {
            key.casefold(): key
            for key in sorted(personas.cast.others)
            if asked.asker.is_owner or key in theirs or key not in claimed.values()
        }

    async def choose(asked: Asked, key: str) -> str:
        if not await personas.choose(asked.where, key):
            return NOT_NOW.format(asked.language)
        return DONE.format(asked.language, name=personas.of(asked.where).name)

    def told(asked: Asked) -> str:
        now = personas.key(asked.where)
        lines = [f"{NOW.format(asked.language)}: {now or USUAL_NAME.format(asked.language)}"]
        keys = list(offered(asked).values())
        lines += [f"{key} {personas.cast.others[key].name}" for key in keys[:LISTED]]
        if (more := len(keys) - LISTED) > 0:
            lines.append(MORE.format(asked.language, more=more))
        return "\n".join([*lines, HOW.format(asked.language)])

    @command(
        "persona",
        "人设",
        about=("看有哪些人设，换一个", "list the personas, or switch"),
        audience=Audience.GROUP_ADMIN,
    )
    async def persona(asked: Asked) -> str:
        match [word.casefold() for word in asked.words]:
            case []:
                return told(asked)
            case [word] if word in USUAL:
                return await choose(asked, "")
            case [word] if key := offered(asked).get(word):
                return await choose(asked, key)
            case [word, name] if word in SHOW and (key := offered(asked).get(name)):
                prompt = personas.text(key)
                return prompt if len(prompt) <= SHOWN else f"{prompt[:SHOWN]}…"
            case [_] | [_, _]:
                return NOBODY.format(asked.language)
            case _:
                return HOW.format(asked.language)

    return persona
