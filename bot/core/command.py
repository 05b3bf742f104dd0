"""Commands in the chat, such as `/help`, which are answered without a turn.

    @command("roll", "掷骰子", about=("掷一个骰子", "roll a die"))
    async def roll(asked: Asked) -> str:
        return str(random.randint(1, 6))

An operator's file in TOOLS_DIR may contain such functions beside tools.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from bot.core.conversation import Conversation
from bot.core.language import CATALOGUE, Language, Phrase
from bot.core.query_results import UsageSum
from bot.core.run_ids import number_of
from frostagent.types.runs import Asker
from frostagent.types.traits import Audience

LONGEST_NAME = 32
WITHIN = 10.0  # seconds
NOT_NOW = Phrase("现在做不到，稍后再试。", "Not now, try again later.")
"""The answer if the journal cannot be written."""
AWAY = Phrase("现在读不到记录。", "The journal cannot be read now.")
IN_PRIVATE = Phrase("这个请私聊问我。", "Ask me that in private.")
CATALOGUE.register(__name__, globals())


class Asked(Struct, frozen=True, kw_only=True):
    """A command as it was typed; `words` are those after its name. `quoted` is the id of the
    message that it quotes, or empty. `now` and `said` (by the server's clock) are in seconds since
    1970.
    """

    where: Conversation
    asker: Asker
    words: tuple[str, ...]
    quoted: str
    now: float
    chinese: bool
    said: float = math.inf

    @property
    def user_id(self) -> int:
        """The account of the asker."""
        return number_of(self.asker)

    @property
    def language(self) -> Language:
        return Language.CHINESE if self.chinese else Language.ENGLISH

    def either(self, zh: str, en: str) -> str:
        return zh if self.chinese else en


Answering: TypeAlias = Callable[[Asked], Awaitable[str]]


class Command(Struct, frozen=True, kw_only=True):
    """A command: its `names` without the slash, what it does (in Chinese and English, for /help),
    who may use it, and the function that answers in a few short lines `within` that many seconds.
    One that `lasts` also runs if the server delivers it late; any other is ordinary chat then.
    Raises ValueError for a name that is not one short word.
    """

    names: tuple[str, ...]
    about: tuple[str, str]
    answer: Answering
    audience: Audience = Audience.EVERYONE
    within: float = WITHIN
    lasts: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if not name or len(name) > LONGEST_NAME or name.split() != [name] or "/" in name:
                raise ValueError(
                    f"a command's name is one short word without a slash, not {name!r}"
                )


def command(
    *names: str,
    about: tuple[str, str],
    audience: Audience | str = Audience.EVERYONE,
    within: float = WITHIN,
    lasts: bool = False,
) -> Callable[[Answering], Command]:
    """Make a command of an async function. Raises ValueError for a bad name or audience."""

    def of(answer: Answering) -> Command:
        allowed = Audience(audience)
        return Command(
            names=names, about=about, answer=answer, audience=allowed, within=within, lasts=lasts
        )

    return of


def at_time(moment: float, now: float) -> str:
    """The local time of day, with the date if it is not today."""
    there, here = time.localtime(moment), time.localtime(now)
    same = there[:3] == here[:3]
    return time.strftime("%H:%M" if same else "%m-%d %H:%M", there)


def tokens(number: int) -> str:
    """`980`, `12.3k`, `1.2M`."""
    if number < 1000:
        return str(number)
    scaled, unit = (number / 1000, "k") if number < 1_000_000 else (number / 1_000_000, "M")
    return f"{scaled:.1f}{unit}"


def money(usage: UsageSum) -> str:
    """`$0.0123`, with `+?` if some requests have an unknown cost, `$?` if all have."""
    if usage.requests and usage.unpriced == usage.requests:
        return "$?"
    amount = f"${usage.cost:.4f}" if usage.cost < 1 else f"${usage.cost:.2f}"
    return f"{amount}+?" if usage.unpriced else amount
