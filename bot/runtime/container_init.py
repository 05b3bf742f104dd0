"""The first process of a container.

What nobody waits for becomes its child, and signals that it has no handler for pass it by. So the
bot is not that one: it is a child, and the first process buries what programs left behind and
passes signals on. Docker's own (`init: true`) would do the same, but show the whole environment,
keys included, to every program of the bot's account, for as long as the container lives.
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
BY_SIGNAL = 128  # what a shell adds to the number of the signal that ended a program


def run_as_init() -> None:
    """Return in a child, once; this process stays, attends to it, and ends as it does."""
    hide_process()
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
        return
    while (code := reap_children(child)) is None:
        heard = signal.sigwaitinfo(HEARD)
        # What the kernel sends, as for Ctrl-C at a terminal, the child gets as well.
        if heard.si_signo != signal.SIGCHLD and heard.si_code <= 0:
            os.kill(child, heard.si_signo)
    os._exit(code)


def reap_children(child: int) -> int | None:
    """Let go of whoever has ended; the exit code of `child` where that has, as a shell tells it."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else BY_SIGNAL - code
    return None
