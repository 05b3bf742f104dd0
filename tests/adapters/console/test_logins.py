from __future__ import annotations

import json

from adapters.console.logins import LOGIN_IDLE, LOGIN_LONGEST, MAX_LOGINS, Logins
from tests.fakes import ManualClock

SECRET = "JBSWY3DPEHPK3PXP"
TOKEN = "0123456789abcdef0123456789abcdef"


def test_a_login_ends_when_it_was_not_used_for_half_a_day_and_after_a_week_in_any_case() -> None:
    clock = ManualClock()
    logins = Logins(TOKEN, clock=clock)
    cookie = logins.by_token(TOKEN, "here")
    assert cookie
    assert logins.by_token(TOKEN + "0", "here") is None
    for _ in range(int(LOGIN_LONGEST / LOGIN_IDLE)):
        clock.time += LOGIN_IDLE
        assert logins.find(cookie) is not None
    clock.time += 1
    assert logins.find(cookie) is None
    idle = logins.by_token(TOKEN, "here")
    assert idle
    clock.time += LOGIN_IDLE + 1
    assert logins.open == ()
    assert logins.find(idle) is None


def test_nothing_that_lets_in_is_kept() -> None:
    logins = Logins(TOKEN, clock=ManualClock())
    cookie, code = logins.by_token(TOKEN, "here"), logins.invite()
    kept = repr(vars(logins))
    assert cookie
    assert not [secret for secret in (TOKEN, cookie, code) if secret in kept]


def test_logins_outlive_a_restart_but_no_other_token_and_what_is_kept_lets_nobody_in() -> None:
    clock, kept = ManualClock(), [""]
    logins = Logins(TOKEN, clock=clock, keep=kept.append)
    first, second, left = (logins.by_token(TOKEN, "here") or "" for _ in range(3))
    logins.end(left)
    clock.time += LOGIN_IDLE - 1
    assert logins.find(first)  # which is written down, as hours have passed
    again = Logins(TOKEN, clock=clock, kept=kept[-1], keep=kept.append)
    clock.time += 2
    assert again.find(first)
    assert not again.find(second)
    assert not again.find(left)
    assert not [secret for secret in (TOKEN, next(iter(json.loads(kept[-1])))) if again.find(secret)]
    assert not [secret for secret in (TOKEN, first, second) if secret in "".join(kept)]
    for other in (
        Logins(TOKEN + "0", clock=clock, kept=kept[-1]),
        Logins(TOKEN, totp=SECRET, clock=clock, kept=kept[-1]),
    ):
        assert not other.find(first)
    again.end_all()
    assert not Logins(TOKEN, clock=clock, kept=kept[-1]).open
    assert not Logins(TOKEN, clock=clock, kept="what is not ours").open


def test_links_that_nobody_uses_do_not_pile_up() -> None:
    logins = Logins(TOKEN, clock=ManualClock())
    first = logins.invite()
    last = [logins.invite() for _ in range(MAX_LOGINS)][-1]
    assert logins.by_code(first, "here") is None
    assert logins.by_code(last, "here")


def test_whoever_logs_all_out_lets_no_link_in_either_and_a_login_that_is_over_is_kept_no_longer() -> None:
    clock, kept = ManualClock(), [""]
    logins = Logins(TOKEN, clock=clock, keep=kept.append)
    logins.by_token(TOKEN, "here")
    clock.time += LOGIN_IDLE + 1
    logins.by_token(TOKEN, "there")
    assert [one["address"] for one in json.loads(kept[-1]).values()] == ["there"]
    code = logins.invite()
    assert logins.end_all() == 1
    assert logins.by_code(code, "here") is None
