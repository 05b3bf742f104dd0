"""Addresses that may be fetched: public names and addresses, never the machine's own surroundings.

Pure; names are resolved elsewhere (`adapters/fetching/transport.py`), and the addresses passed in.
Three rules:

1. A url is http or https, and its host is a public name, or a public address in its usual spelling.
2. A name is public only if *every* address it resolves to is.
3. An IPv6 address that contains an IPv4 address is judged by the latter.

Urls from a model or a chat member are checked further by `check_foreign`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

from frostagent.types.errors import ToolFailed

Address: TypeAlias = IPv4Address | IPv6Address

# Top labels that only local resolvers answer (RFC 6761, 6762, 8375, and common on routers and
# clouds).
LOCAL_LABELS = frozenset(
    {"localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "arpa"}
)

# Clouds' services that give a machine its own keys, if the name does not look local.
METADATA = re.compile(r"(.*\.)?metadata(\.[a-z]+)?\.(goog|tencentyun\.com)")

# A top-level domain is letters, or their IDNA form; `frostagent_default`, a network of Docker, is
# not.
TOP_LABEL = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]{1,59}")

# Services that resolve a name to the address written in it: 127.0.0.1.nip.io, 10-0-0-1.sslip.io.
WRITTEN_OUT = re.compile(r"(?<![0-9])(\d{1,3})([.-])(\d{1,3})\2(\d{1,3})\2(\d{1,3})(?![0-9])")

# The last label of a host that browsers and libc read as a number: 2130706433, 0x7f.1, 127.1
# (WHATWG URL 3.5).
NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*")

WEB_PORTS = frozenset({80, 443})

GLOBAL_UNICAST = IPv6Network("2000::/3")
SIX_TO_FOUR = IPv6Network("2002::/16")
NAT64 = IPv6Network("64:ff9b::/96")  # what names resolve to in an IPv6-only network (RFC 6052)

# Not public, although `is_global` says so: protocol assignments (including Oracle's metadata),
# relays of 6to4, and the host agent inside every virtual machine of Azure.
LOOKS_PUBLIC = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")))

# A transparent proxy (Clash, mihomo, sing-box) resolves every name into this benchmarking range and
# connects by name itself, like a proxy from the environment. Many hosts of the bot have one, so a
# *name* may resolve into it; a url that contains such an address is refused like any other that is
# not public.
STAND_INS = IPv4Network("198.18.0.0/15")


def check_host(scheme: str, host: str) -> None:
    """Check a url before its name is resolved. Raises ToolFailed with the broken rule."""
    if scheme not in ("http", "https"):
        raise ToolFailed(
            f"only http and https urls can be fetched, not {scheme or 'one without a scheme'}"
        )
    name = host.rstrip(".").lower()
    address = read_address(name)
    if address is not None:
        if not is_public(address):
            raise ToolFailed(f"{host} is not a public address and is not fetched")
        return
    *parents, last = name.split(".")
    if not parents or last in LOCAL_LABELS or METADATA.fullmatch(name):
        raise ToolFailed(f"{host or 'an empty host'} is a local name and is not fetched")
    if NUMERIC_LABEL.fullmatch(last):
        raise ToolFailed(f"{host} is an address in disguise and is not fetched")
    if not TOP_LABEL.fullmatch(last):
        raise ToolFailed(f"{host} is a local name and is not fetched")


def check_resolved(host: str, addresses: Iterable[str]) -> None:
    """Check all addresses of a name. Raises ToolFailed if one is not public."""
    for text in addresses:
        address = read_address(text)
        stands_in = isinstance(address, IPv4Address) and address in STAND_INS
        if address is None or not (stands_in or is_public(address)):
            raise ToolFailed(f"{host} leads to an address that is not public and is not fetched")


def check_foreign(host: str, *, port: int | None, userinfo: str | bytes) -> None:
    """Check the rest of a url from a model or a chat member; `port` is None if it names none.
    Raises ToolFailed. Only web ports are allowed: databases and consoles listen on others. A name
    that contains a private address is refused before it is resolved, since a proxy would resolve it
    unseen.
    """
    if port is not None and port not in WEB_PORTS:
        raise ToolFailed(f"it names port {port}; only the usual ports 80 and 443 are fetched from")
    if userinfo:
        raise ToolFailed("it names a user or a password, which nobody is logged in with")
    if not all(map(is_public, _written_out(host))):
        raise ToolFailed(f"{host} is an address in disguise and is not fetched")


def read_address(text: str) -> Address | None:
    """The address if the text is one in its usual spelling, else None."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def _written_out(name: str) -> Iterator[Address]:
    """The IPv4 addresses written in a name."""
    for found in WRITTEN_OUT.finditer(name):
        address = read_address(".".join(found.group(1, 3, 4, 5)))
        if address is not None:
            yield address


def is_public(address: Address) -> bool:
    match address:
        case IPv4Address():
            special = address.is_multicast or any(address in network for network in LOOKS_PUBLIC)
            return address.is_global and not special
        case IPv6Address(ipv4_mapped=IPv4Address() as inside):
            return is_public(inside)
        case IPv6Address() if address in NAT64:
            return is_public(IPv4Address(address.packed[-4:]))
        case IPv6Address():
            return address in GLOBAL_UNICAST and address not in SIX_TO_FOUR and address.is_global
