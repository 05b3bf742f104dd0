from __future__ import annotations

from bot.commands.help import help_command, stop_command
from tests.bot.commands.typed import lines


async def test_stop_is_told_by_help_and_where_nothing_goes_on_no_model_is_asked_what_it_means() -> None:
    assert "/stop 让我停下正在做的事" in await lines(help_command([stop_command()]))
    assert await lines(stop_command(), chinese=False) == ["There is nothing to stop."]
