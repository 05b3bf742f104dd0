from __future__ import annotations

import pytest

from bot.domain.errors import ConfigError
from tests.adapters.console.visiting import visiting


async def test_a_port_that_is_taken_is_a_problem_of_the_configuration() -> None:
    async with visiting() as place:
        with pytest.raises(ConfigError, match="CONSOLE_PORT"):
            async with visiting(port=place.console.port):
                pass
