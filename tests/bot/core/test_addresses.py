"""Which hosts and addresses a request may go to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis.strategies import ip_addresses

from bot.core.addresses import check_host, check_resolved, is_public
from frostagent.types.errors import ToolFailed
from tests.cases import each_case

PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
PRIVATE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254",
    "100.100.100.200", "168.63.129.16", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.192",
    "::", "::1", "::7f00:1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2002:7f00:1::",
    "2001:0:7f00:1::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
]  # fmt: skip


@each_case("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))
    check_host("https", address)
    check_resolved("name.example", [address])


@each_case("address", PRIVATE)
def test_an_address_of_the_surroundings_is_not_fetched(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(ToolFailed, match="not a public address"):
        check_host("http", address)


@given(ip_addresses(v=4))
def test_inside_ipv6_an_ipv4_address_stays_what_it_is(address: object) -> None:
    inside = ip_address(f"::ffff:{address}")
    assert is_public(inside) == is_public(ip_address(str(address)))


@each_case(
    "host",
    [
        "localhost", "LOCALHOST", "localhost.", "db.localhost", "napcat", "metadata", "", "printer.local",
        "metadata.google.internal", "router.lan", "nas.home.arpa", "1.0.0.127.in-addr.arpa",
    ],
)  # fmt: skip
def test_a_local_name_is_not_fetched(host: str) -> None:
    with pytest.raises(ToolFailed, match="local name"):
        check_host("http", host)


@each_case("host", ["127.1", "0x7f.0.0.1", "0177.0.0.01", "1.2.3.0x7f", "127.0.0.1.5", "256.1.1.1"])
def test_an_address_in_an_unusual_spelling_is_not_fetched(host: str) -> None:
    with pytest.raises(ToolFailed, match="in disguise"):
        check_host("http", host)


@each_case("host", ["2130706433", "0x7f000001", "017700000001"])
def test_an_address_as_one_number_is_not_fetched(host: str) -> None:
    with pytest.raises(ToolFailed):
        check_host("http", host)


@each_case("host", ["api.open-meteo.com", "xn--fiqs8s.example", "1.example.com", "example.com."])
def test_a_public_name_may_be_resolved(host: str) -> None:
    check_host("https", host)


@each_case("scheme", ["file", "ftp", "gopher", ""])
def test_only_http_and_https_are_fetched(scheme: str) -> None:
    with pytest.raises(ToolFailed, match="only http and https"):
        check_host(scheme, "example.com")


def test_one_private_address_among_public_ones_spoils_the_name() -> None:
    with pytest.raises(ToolFailed, match="not public"):
        check_resolved("sly.example", ["1.1.1.1", "10.0.0.1"])


def test_a_name_may_resolve_to_a_transparent_proxys_stand_in() -> None:
    check_resolved("api.open-meteo.com", ["198.18.3.7"])


def test_what_is_no_address_at_all_is_not_fetched() -> None:
    with pytest.raises(ToolFailed, match="not public"):
        check_resolved("odd.example", ["not-an-address"])
