from __future__ import annotations

from dataclasses import dataclass

from adapters.web.readiness import Attendance, ServedAccount
from tests.cases import each_case


@dataclass(frozen=True)
class Account:
    self_id: int
    online: bool | None = True
    server: str = ""


def test_before_anybody_came_it_is_not_ready() -> None:
    assert Attendance(list)().to_json() == {
        "ready": False,
        "reason": "no OneBot server is connected",
        "accounts": [],
    }


def test_who_was_refused_is_told_as_long_as_nobody_is_there() -> None:
    there: list[Account] = []
    attend = Attendance(lambda: there, refused=lambda: "172.18.0.3 was refused: it sent a wrong access token")
    assert attend().reason == ("no OneBot server is connected; 172.18.0.3 was refused: it sent a wrong access token")
    there.append(Account(10001))
    assert attend().reason == ""
    there.clear()
    assert attend().reason == (
        "no OneBot server is connected: account 10001 is missing; 172.18.0.3 was refused: it sent a wrong access token"
    )


@each_case(("online", "state"), [(True, "online"), (None, "unknown")])
def test_an_account_that_is_online_or_never_said_makes_it_ready(online: bool | None, state: str) -> None:
    assert Attendance(lambda: [Account(10001, online, "NapCat 4")])().to_json() == {
        "ready": True,
        "reason": "",
        "accounts": [{"account": 10001, "state": state, "online": online, "server": "NapCat 4"}],
    }


def test_an_account_that_is_offline_is_named_and_makes_it_not_ready() -> None:
    readiness = Attendance(lambda: [Account(10001), Account(10002, online=False)])()
    assert not readiness.ready
    assert readiness.reason == "account 10002 is offline: log in again at the OneBot server"
    assert readiness.accounts == (ServedAccount(10001, "online"), ServedAccount(10002, "offline"))


def test_several_accounts_that_are_offline_are_all_named() -> None:
    readiness = Attendance(lambda: [Account(1, online=False), Account(2, online=False)])()
    assert readiness.reason.startswith("accounts 1, 2 are offline")


def test_an_account_that_is_gone_is_missing() -> None:
    there = [Account(10001), Account(10002)]
    attend = Attendance(lambda: there)
    attend()
    there.pop()
    one_left = attend()
    assert (one_left.ready, one_left.accounts) == (
        True,
        (ServedAccount(10001, "online"), ServedAccount(10002, "missing")),
    )
    there.clear()
    nobody_left = attend()
    assert not nobody_left.ready
    assert nobody_left.reason == "no OneBot server is connected: accounts 10001, 10002 are missing"


def test_while_stopping_it_is_not_ready_whoever_is_there() -> None:
    assert Attendance(lambda: [Account(10001)], stopping=lambda: True)().to_json() == {
        "ready": False,
        "reason": "stopping",
        "accounts": [{"account": 10001, "state": "online", "online": True, "server": ""}],
    }
