"""The one proxy before the console that is believed (CONSOLE_PROXY)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from config.values import Wrong, bare, halved, shown

MEND: Final = "Write the one that the proxy comes from alone, as 127.0.0.1"
EVERYBODY: Final = IPv4Address("255.255.255.255")


def address(value: str) -> str:
    """The address of one machine in its shortest form, IPv4 also where IPv6 carries it; empty where
    there is none.
    """
    text = bare(halved(value))
    if not text:
        return text
    try:
        found = ip_address(text)
    except ValueError:
        raise Wrong(f"{shown(value)} is not an address", MEND) from None
    if "%" in text:  # a socket does not tell it of who connects
        raise Wrong(f"{shown(value)} names a network interface", "Leave out the % and what follows")
    named = found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
    if named.is_unspecified or named.is_multicast or named == EVERYBODY:
        raise Wrong(f"{shown(value)} is the address of no one machine", MEND)
    return str(named)
