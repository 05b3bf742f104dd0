from __future__ import annotations

from adapters.console.logins import IDLE, LONGEST, MOST, Logins
from tests.fakes import ManualClock

TOKEN = "0123456789abcdef0123456789abcdef"


def test_a_login_ends_when_it_was_not_used_for_half_a_day_and_after_a_week_in_any_case() -> None:
    clock = ManualClock()
    logins = Logins(TOKEN, clock=clock)
    cookie = logins.by_token(TOKEN, "here")
    assert cookie
    assert logins.by_token(TOKEN + "0", "here") is None
    for _ in range(int(LONGEST / IDLE)):
        clock.time += IDLE
        assert logins.find(cookie) is not None
    clock.time += 1
    assert logins.find(cookie) is None
    idle = logins.by_token(TOKEN, "here")
    assert idle
    clock.time += IDLE + 1
    assert logins.open == ()
    assert logins.find(idle) is None


def test_nothing_that_lets_in_is_kept() -> None:
    logins = Logins(TOKEN, clock=ManualClock())
    cookie, code = logins.by_token(TOKEN, "here"), logins.invite()
    kept = repr(vars(logins))
    assert cookie
    assert not [secret for secret in (TOKEN, cookie, code) if secret in kept]


def test_links_that_nobody_uses_do_not_pile_up() -> None:
    logins = Logins(TOKEN, clock=ManualClock())
    first = logins.invite()
    last = [logins.invite() for _ in range(MOST)][-1]
    assert logins.by_code(first, "here") is None
    assert logins.by_code(last, "here")
