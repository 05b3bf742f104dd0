from __future__ import annotations

from tests.adapters.console.visiting import SAME, visiting


async def test_what_somebody_did_is_written_down_with_the_login_and_the_address() -> None:
    async with visiting() as place:
        await place.log_in()
        login = place.console.logins.open[0].name
        await place.ask("POST", "/logout", data={"form": await place.form()}, headers=SAME)
        assert place.journal.lines is not None
        last = place.journal.lines[-1]
        assert (last.action, last.login, last.address, last.at) == ("logout", login, "127.0.0.1", place.clock.now())
