from __future__ import annotations

from adapters.console.http import peer_address
from tests.cases import each_case

PROXY = "172.20.0.2"


@each_case(
    ("lines", "address"),
    [
        (["198.51.100.7"], "198.51.100.7"),
        (["10.0.0.1, 198.51.100.7"], "198.51.100.7"),
        (["198.51.100.7", "10.0.0.1"], "10.0.0.1"),
        (["10.0.0.1,198.51.100.7 "], "198.51.100.7"),
        (["198.51.100.7:4711"], "198.51.100.7"),
        (["2001:DB8::1"], "2001:db8::1"),
        (["[2001:db8::1]"], "2001:db8::1"),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
        (["::ffff:198.51.100.7"], "198.51.100.7"),
        ([], PROXY),
        ([""], PROXY),
        (["198.51.100.7,"], PROXY),
        (["198.51.100.7, unknown"], PROXY),
        (["198.51.100.7:"], PROXY),
        (["198.51.100.7:port"], PROXY),
        (["[2001:db8::1]4711"], PROXY),
        (["[2001:db8::1]:port"], PROXY),
        (["[2001:db8::1"], PROXY),
        (["2001:db8::1%you have won"], PROXY),
        (["<b>198.51.100.7</b>"], PROXY),
        (["1"], PROXY),
        (["198.51.100.7, " + "1" * 5000], PROXY),
    ],
)
def test_of_the_proxy_the_last_hop_is_believed_where_it_is_an_address(lines: list[str], address: str) -> None:
    assert peer_address(PROXY, lines, proxy=PROXY) == address


@each_case(
    ("remote", "proxy"),
    [("10.0.0.9", PROXY), ("127.0.0.1", PROXY), (PROXY, ""), ("", PROXY), ("", ""), ("fe80::1%eth0", "fe80::1%eth1")],
)
def test_of_anybody_else_it_is_who_connected(remote: str, proxy: str) -> None:
    assert peer_address(remote, ["198.51.100.7"], proxy=proxy) == remote


@each_case(
    ("remote", "proxy"), [(f"::ffff:{PROXY}", PROXY), ("FD00:0::1", "fd00::1"), ("fe80::1%eth0", "fe80::1%eth0")]
)
def test_a_proxy_is_known_however_its_address_is_written(remote: str, proxy: str) -> None:
    assert peer_address(remote, ["198.51.100.7"], proxy=proxy) == "198.51.100.7"
