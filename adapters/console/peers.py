"""The address of whoever asks, where a proxy asks for them.

Each proxy adds to X-Forwarded-For, and whoever asks may begin it with anything: of what comes from
the one proxy that is named the last hop is believed, which that proxy wrote itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address


def peer(remote: str, forwarded: Sequence[str], *, proxy: str) -> str:
    """The address of whoever asks. `remote` is who connected, `forwarded` are the lines of that
    header, `proxy` is the one that is believed, in its shortest form; empty is
    none. Where the hop is no address, it is the proxy's.
    """
    near = _address(remote)
    if near is None or str(near) != proxy:
        return remote
    hop = ",".join(forwarded).rpartition(",")[2]
    return str(_address(_without_port(hop.strip())) or near)


def _address(text: str) -> Address | None:
    """IPv4 is that also where IPv6 carries it, as a socket for both tells it."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def _without_port(hop: str) -> str:
    """`192.0.2.1:4711` and `[2001:db8::1]:4711` have one, `2001:db8::1` has none. Behind a `%` may
    stand any words: no hop of another machine has it.
    """
    if "%" in hop:
        return ""
    if hop.startswith("["):
        address, end, port = hop[1:].partition("]")
        is_whole = end and (not port or (port[0] == ":" and port[1:].isdecimal()))
        return address if is_whole else ""
    address, colon, port = hop.partition(":")
    return address if colon and port.isdecimal() and "." in address else hop
