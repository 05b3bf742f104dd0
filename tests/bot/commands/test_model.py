from __future__ import annotations

from bot.commands.model import model_command
from frostagent.models.upstreams import Upstream
from frostagent.types.traits import Audience
from tests.bot.commands.typed import lines
from tests.fakes import ScriptedModel


async def test_an_owner_sees_each_model_once_and_for_how_long_it_rests() -> None:
    with ScriptedModel() as one, ScriptedModel() as other:
        well, ill, keyless = Upstream(one), Upstream(other), Upstream(one)
        ill.breaker.fail(100.0, at_once=True)
        (line,) = keyless.lines
        line.breaker.fail(100.0, at_once=True)
        command = model_command(lambda: (well, ill, keyless, well), lambda: 110.0)
        assert command.audience is Audience.OWNER
        assert await lines(command) == [one.name, f"{other.name}（休息 20 秒）", f"{one.name}（休息 590 秒）"]
