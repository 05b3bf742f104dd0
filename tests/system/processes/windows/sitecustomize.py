"""Takes from the product's modules what Python lacks on Windows, in any process with this folder in PYTHONPATH.

Modules of the product get stand-ins for some modules of the standard library, which itself stays as it is: on Linux it
needs what is missing here. So this is no Windows: files that are open can be removed, and paths have no drives.
"""

from __future__ import annotations

import asyncio
import builtins
import os
import re
import select
import signal
import socket
import sys
import time
from asyncio import unix_events
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

PRODUCT = {"bot", "adapters", "config", "frostagent", "tools"}
NO_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog", "uvloop"}

# By the stubs of mypy: what they have for Linux, and not for Windows.
OS = r"""
(CLD|EFD|EX|GRND|MFD|POSIX|PRIO|RTLD|RWF|SCHED|SPLICE|ST|XATTR)_\w+ | F_(U|T|)LOCK | F_TEST | P_(ALL|PGID|PID|PIDFD)
| O_(ACCMODE|ASYNC|CLOEXEC|DIRECT|DIRECTORY|DSYNC|FSYNC|LARGEFILE|NDELAY|NOATIME|NOCTTY|NOFOLLOW|NONBLOCK|PATH|RSYNC
| SYNC|TMPFILE) | SEEK_(DATA|HOLE) | W[A-Z]+ | chown | chroot | confstr | copy_file_range | ctermid | environb
| eventfd\w* | fchdir | fchmod | fchown | fdatasync | fork | forkpty | fpathconf | fstatvfs | fwalk | get_blocking
| get(e|res|)[gu]id | getenvb | getgrouplist | getgroups | getloadavg | getp(gid|grp) | getpriority | getrandom | getsid
| \w+xattr | initgroups | killpg | lchown | lockf | major | makedev | memfd_create | minor | mkfifo | mknod | nice
| openpty | pathconf | pidfd_open | pipe2 | posix_\w+ | preadv? | pwritev? | readv | register_at_fork | sched_\w+
| sendfile | set_blocking | set(re|res|e|)[gu]id | setgroups | setp(gid|grp|riority) | setsid | spawn[lv]pe? | splice
| statvfs | sync | sysconf | tc[gs]etpgrp | ttyname | uname | wait | wait[34] | waitid | writev
"""
SIGNAL = r"""
SIG(?!ABRT$|FPE$|ILL$|INT$|SEGV$|TERM$|BREAK$|_DFL$|_IGN$|nals$)\w+ | ITIMER_\w+ | ItimerError | alarm | [gs]etitimer
| pause | pidfd_send_signal | pthread_\w+ | siginterrupt | sigpending | sigtimedwait | sigwait(info)? | struct_siginfo
"""
SOCKET = r"""
AF_(?!INET6?$|UNSPEC$)\w+ | MSG_(CMSG_CLOEXEC|DONTWAIT|EOR|MORE|NOSIGNAL) | SCM_\w+ | SOCK_(CLOEXEC|NONBLOCK)
| SO_(REUSEPORT|PEERCRED|PASSCRED|PRIORITY|PROTOCOL|MARK|DOMAIN) | TCP_(CORK|INFO|QUICKACK|USER_TIMEOUT|DEFER_ACCEPT)
| CMSG_\w+ | recv_fds | send_fds | sethostname
"""


def kill(pid: int, number: int) -> None:
    if number not in {signal.SIGTERM, signal.SIGINT}:
        raise AssertionError(f"signal {number} means something else on Windows")
    os.kill(pid, number)


def wait_for_sockets(*lists: Any) -> Any:
    if any(isinstance(one, int) for files in lists[:3] for one in files):
        raise OSError("on Windows this waits for sockets alone")
    return select.select(*lists)


class Lacking(ModuleType):
    """A module without the names that a pattern matches, and with some others."""

    def __init__(self, real: ModuleType, pattern: str = "", **others: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _lacks=re.compile(pattern, re.VERBOSE), **others)

    def __getattr__(self, name: str) -> Any:
        if self._lacks.fullmatch(name):
            raise AttributeError(f"module {self.__name__!r} has no {name!r} on Windows")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


STAND_INS = {
    "os": Lacking(os, OS, name="nt", kill=kill),
    "sys": Lacking(sys, "abiflags | [gs]etdlopenflags", platform="win32"),
    "signal": Lacking(signal, SIGNAL, SIGBREAK=signal.SIGUSR2),  # so that a test can send it
    "socket": Lacking(socket, SOCKET),
    "select": Lacking(select, r"E?POLL\w+ | PIPE_BUF | e?poll", select=wait_for_sockets),
    "time": Lacking(time, r"CLOCK_\w+ | clock_\w+ | pthread_getcpuclockid | tzset"),
    "asyncio": Lacking(asyncio, "open_unix_connection | start_unix_server"),
}

usual_import = builtins.__import__


def import_as_on_windows(
    name: str,
    spaces: Mapping[str, object] | None = None,
    inner: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    spec = (spaces or {}).get("__spec__")
    importer = getattr(spec, "name", None) or (spaces or {}).get("__name__", "")
    module = partial(usual_import, name, spaces, inner, fromlist or (), level)
    if str(importer).partition(".")[0] not in PRODUCT or level:
        return module()
    if name in NO_MODULES:
        raise ImportError(f"there is no {name} on Windows")
    return STAND_INS.get((found := module()).__name__, found)


def refuse(*_: Any, **__: Any) -> None:
    raise NotImplementedError


vars(builtins)["__import__"] = import_as_on_windows
sys.modules["uvloop"] = None  # type: ignore[assignment]  # so that its import fails
for _name in ("add_signal_handler", "create_unix_connection", "create_unix_server"):
    setattr(unix_events.SelectorEventLoop, _name, refuse)
