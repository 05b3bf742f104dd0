"""`/errors`: the last runs that failed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from bot.core.command import IN_PRIVATE, Asked, Command, command
from bot.core.language import CATALOGUE, Phrase
from frostagent.types.ports import Clock
from frostagent.types.runs import RunEvent, RunFinished, Stop
from frostagent.types.traits import Audience

KEPT = 10
LONGEST = 120  # characters of an error
NONE = Phrase("从启动到现在没有失败。", "Nothing has failed since the start.")
CATALOGUE.register(__name__, globals())


class Failures:
    """Fits `Observer`: remembers the last failed runs. `mask` removes secrets from errors."""

    notices: Final = frozenset({RunFinished})

    def __init__(self, *, clock: Clock, mask: Callable[[str], str]) -> None:
        self._clock = clock
        self._mask = mask
        self.last: deque[tuple[float, str, str]] = deque(maxlen=KEPT)

    def notice(self, event: RunEvent) -> None:
        match event:
            case RunFinished(outcome=outcome) if outcome.stop is Stop.FAILED and not event.parent:
                error = self._mask(outcome.error)[:LONGEST]
                self.last.append((self._clock.now(), event.run_id, error))
            case _:
                pass


def errors_command(failures: Failures) -> Command:
    """The failures with time and run ID, latest first; for owners, in private: errors name
    services.
    """

    @command(
        "errors",
        "错误",
        about=("最近失败的回答（私聊里看）", "the last failures (in private)"),
        audience=Audience.OWNER,
    )
    async def errors(asked: Asked) -> str:
        if asked.where.is_group:
            return IN_PRIVATE.format(asked.language)
        lines = [
            f"{time.strftime('%m-%d %H:%M', time.localtime(at))} {run_id} {error}"
            for at, run_id, error in reversed(failures.last)
        ]
        return "\n".join(lines) or NONE.format(asked.language)

    return errors
