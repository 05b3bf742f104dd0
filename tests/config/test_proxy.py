"""CONSOLE_PROXY is an address that somebody can connect from."""

from __future__ import annotations

from tests.cases import each_case
from tests.config.reading import GOOD, load, problems


@each_case(
    ("typed", "address"),
    [
        ("", ""),
        ("127.0.0.1", "127.0.0.1"),
        ("172.18.0.2", "172.18.0.2"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("[fd00::7]", "fd00::7"),
        ("fe80::1", "fe80::1"),
        ("FD00:0::7", "fd00::7"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("[::ffff:a00:1]", "10.0.0.1"),
    ],
)
def test_an_address_that_somebody_can_come_from_is_taken(typed: str, address: str) -> None:
    assert load(GOOD | {"CONSOLE_PROXY": typed})[0].console_proxy == address


@each_case(
    ("typed", "said"),
    [
        *((typed, "is not an address. Write the one") for typed in ("proxy", "10.0.0.0/8", "10.0.0.1:80", "[::1]:80")),
        *((typed, "is not an address. Write the one") for typed in ("[::1", "::1]", "[[::1]]", "[]", "[", "]")),
        *((typed, "is not an address. Write the one") for typed in ("[127.0.0.1]", "127.0.0.1]", "fe80::1%")),
        *((typed, "names a network interface. Remove the %") for typed in ("fe80::1%<b>", "[fe80::1%eth0]", "::1%lo")),
        *((typed, "is not the address of one machine. Write the one") for typed in ("0.0.0.0", "::", "[::]")),
        *((typed, "is not the address of one machine") for typed in ("::ffff:0.0.0.0", "224.0.0.1", "ff02::1")),
        *((typed, "is not the address of one machine") for typed in ("255.255.255.255", "::ffff:224.0.0.1")),
    ],
)
def test_any_other_is_one_problem_that_says_how_to_write_it(typed: str, said: str) -> None:
    [problem] = problems({"CONSOLE_PROXY": typed})
    assert problem.startswith("CONSOLE_PROXY: “")
    assert said in problem


def test_it_is_told_with_all_other_problems() -> None:
    told = problems({"CONSOLE_PROXY": "::", "WEB_PORT": "many"})
    assert sorted(line.partition(":")[0] for line in told) == ["CONSOLE_PROXY", "WEB_PORT"]
