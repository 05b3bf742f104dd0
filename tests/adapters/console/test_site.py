from __future__ import annotations

from tests.adapters.console.visiting import visiting


async def test_the_first_page_is_there_behind_a_login() -> None:
    async with visiting() as place:
        await place.log_in()
        assert (await place.ask("GET", "/"))[0] in {200, 303}
