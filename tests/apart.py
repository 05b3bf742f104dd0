"""A host of the tests' own, joined by a link for each thing that it may reach, which can be cut: a network namespace.

What is cut is dropped, not refused, in both directions: the ends of the link are given a wrong address of each other.
Where no namespace can be made there are pipes, which pass nothing on while they are cut.
Nothing leaves the machine, and no address of it is used: both ends of every link are in namespaces made here.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.adapters.storage.proxy import Proxy

NETWORK: Final = 0x40000000  # CLONE_NEWNET
NOBODY: Final = "02:00:00:00:00:99"
PORT: Final = 1024


def why_not() -> str:
    """Why there can be none; empty where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces are root's, on Linux"
    if shutil.which("ip") is None:
        return "there is no ip (Debian: iproute2)"
    name = f"frost-{uuid4().hex[:8]}"
    try:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other")
    except subprocess.CalledProcessError as error:
        return f"no network namespace can be made: {error.stderr.decode().strip()}"
    finally:
        subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)
    return ""


@dataclass(frozen=True)
class Host:
    """The programs that begin with `words` are on it; what it may reach is at these addresses, by name."""

    near: str
    far: str
    links: Mapping[str, int]

    @property
    def words(self) -> tuple[str, ...]:
        return "ip", "netns", "exec", self.near

    def address(self, name: str) -> tuple[str, int]:
        """Where it finds this."""
        return f"10.77.{self.links[name]}.1", PORT

    def cut(self, *names: str) -> None:
        """Drop all that goes over these links."""
        for namespace, device, other in self._ends(names):
            _ip("-n", namespace, "neigh", "replace", other, "lladdr", NOBODY, "dev", device, "nud", "permanent")

    def heal(self, *names: str) -> None:
        """Let it through again."""
        for namespace, device, other in self._ends(names):
            _ip("-n", namespace, "neigh", "del", other, "dev", device)

    def _ends(self, names: tuple[str, ...]) -> list[tuple[str, str, str]]:
        numbers = [self.links[name] for name in names]
        near = [(self.near, f"near{number}", f"10.77.{number}.1") for number in numbers]
        return near + [(self.far, f"far{number}", f"10.77.{number}.2") for number in numbers]


@dataclass(frozen=True)
class Pipes:
    """The same on this host: its programs reach things by proxies, by name. What was cut comes when it is healed."""

    proxies: Mapping[str, Proxy]
    words: tuple[str, ...] = ()

    def address(self, name: str) -> tuple[str, int]:
        """Where it finds this."""
        return "127.0.0.1", self.proxies[name].port

    def cut(self, *names: str) -> None:
        """Hold up all that goes through these."""
        for name in names:
            self.proxies[name].flows.clear()

    def heal(self, *names: str) -> None:
        """Let it through again."""
        for name in names:
            self.proxies[name].flows.set()


@asynccontextmanager
async def host_or_pipes(reached: Mapping[str, int]) -> AsyncIterator[Host | Pipes]:
    """A host that reaches these ports of ours, by their names, while the block runs, or pipes to them."""
    async with host_apart(reached) if not why_not() else pipes(reached) as there:
        yield there


@asynccontextmanager
async def pipes(reached: Mapping[str, int]) -> AsyncIterator[Pipes]:
    """Pipes to these ports of ours, by their names, while the block runs."""
    async with AsyncExitStack() as stack:
        proxies = {name: Proxy("127.0.0.1", port) for name, port in reached.items()}
        for proxy in proxies.values():
            await proxy.fix()
            stack.push_async_callback(proxy.cut)
        yield Pipes(proxies)


@asynccontextmanager
async def host_apart(reached: Mapping[str, int]) -> AsyncIterator[Host]:
    """A host that reaches these ports of ours, by their names, while the block runs."""
    token = uuid4().hex[:8]
    host = Host(f"frost-{token}-near", f"frost-{token}-far", {name: place for place, name in enumerate(reached, 1)})
    async with AsyncExitStack() as stack:
        for namespace in (host.near, host.far):
            stack.enter_context(_namespace(namespace))
        thread = stack.enter_context(ThreadPoolExecutor(1))  # its sockets are at the far end, for as long as it lives
        thread.submit(_enter, host.far).result()
        for name, number in host.links.items():
            _join(host, number)
            proxy = Proxy("127.0.0.1", reached[name])
            await proxy.fix(thread.submit(socket.create_server, host.address(name)).result())
            stack.push_async_callback(proxy.cut)
        yield host


@contextmanager
def _namespace(name: str) -> Iterator[None]:
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        _ip("netns", "del", name)


def _enter(name: str) -> None:
    """The calling thread alone."""
    with Path("/run/netns", name).open("rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), NETWORK):
            raise OSError(ctypes.get_errno(), "setns")


def _join(host: Host, number: int) -> None:
    far, near = f"far{number}", f"near{number}"
    _ip("link", "add", far, "netns", host.far, "type", "veth", "peer", "name", near, "netns", host.near)
    for namespace, device, last in ((host.far, far, 1), (host.near, near, 2)):
        _ip("-n", namespace, "addr", "add", f"10.77.{number}.{last}/30", "dev", device)
        _ip("-n", namespace, "link", "set", device, "up")


def _ip(*words: str) -> None:
    subprocess.run(("ip", *words), check=True, capture_output=True)
