"""`/model`: the models in the order in which they are asked, and which are paused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.core.command import Asked, Command, command
from bot.core.language import CATALOGUE, Phrase
from frostagent.models.upstreams import Upstream
from frostagent.types.traits import Audience

RESTS = Phrase("（休息 {seconds:.0f} 秒）", " (paused for {seconds:.0f} s)")
CATALOGUE.register(__name__, globals())


def model_command(
    upstreams: Callable[[], Sequence[Upstream]], monotonic: Callable[[], float]
) -> Command:
    """For owners."""

    @command(
        "model",
        "模型",
        about=("有哪些模型，哪些在休息", "the models, and which are paused"),
        audience=Audience.OWNER,
    )
    async def model(asked: Asked) -> str:
        now = monotonic()
        lines = []
        for upstream in dict.fromkeys(upstreams()):
            seconds = upstream.cooldown(now)
            rest = RESTS.format(asked.language, seconds=seconds)
            lines.append(upstream.name + (rest if seconds else ""))
        return "\n".join(lines)

    return model
