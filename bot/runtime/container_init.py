"""The first process of a container.

Orphans become children of process 1, and signals without a handler do not reach it. So the bot runs
as a child, and the first process reaps orphans and forwards signals. Docker's own (`init: true`)
would do the same, but would expose the whole environment, with keys, to every program of the bot's
account.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from bot.runtime.process_hardening import hide_process

assert sys.platform != "win32"  # noqa: S101  # there only Docker's own is first

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
HEARD = {*PASSED_ON, signal.SIGCHLD}
BY_SIGNAL = 128  # added by shells to the number of a terminating signal


def run_as_init() -> None:
    """Return once, in a child. This process forwards signals, reaps, and exits like the child."""
    hide_process()
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        return
    while (code := reap_children(child)) is None:
        heard = signal.sigwaitinfo(HEARD)
        # Signals by the kernel, such as Ctrl-C at a terminal, reach the child directly.
        if heard.si_signo != signal.SIGCHLD and heard.si_code <= 0:
            os.kill(child, heard.si_signo)
    os._exit(code)


def reap_children(child: int) -> int | None:
    """Reap ended processes. Returns the shell-style exit code of `child` if it has ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else BY_SIGNAL - code
    return None
