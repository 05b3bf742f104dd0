"""The process that dies: forked off one that has imported everything already, a new one for each life.

Run as a module it reads one life a line on standard input, as JSON, and tells on standard output, a JSON pair a line:
its pid, what was promised, where it died, how much it crossed before it took an event, whether it is settled, what it
crossed, how it ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from typing import Any

from adapters.onebot import sockets
from adapters.storage import claim, database, writer
from adapters.storage.rows import ROUND, SEGMENTS, SEND_SEGMENTS
from bot.app import Service, open_service
from bot.chat import unconfirmed
from bot.cli.process import run_until_stopped
from bot.core import codec
from bot.core.events import MessageReceived
from bot.core.journal import Entry
from bot.memory import extraction
from bot.outbox import outbox, sender
from bot.runtime import background
from config.settings import Settings
from frostagent.types.messages import AssistantMessage, ToolMessage, UserMessage
from tests.torture.crossings import Crossings, Death
from tests.torture.troubles import be_ordinary

LONGEST_LIFE = 60  # seconds; what nobody kills, when the parent itself died
GRACE = 3.0  # seconds a run has to end when it is stopped gently; nothing in the script takes longer
TURNS = 20  # of the loop, after which everything that was ready has run

SHORTER = (
    (sockets, "LONGEST_WAIT", 0.05),
    (sender, "LOOK_AFTER", 0.02),
    (unconfirmed, "LAG", 0.02),
    (background, "RETRY", 0.02),
    (writer, "LONGEST_PAUSE", 0.05),
    (claim, "PATIENCE", 0.1),
    (database, "BUSY", 0.05),
    (database, "BUSY_MIGRATING", 0.05),
    (extraction, "ROUNDS", 2),
)
"""Waits of a second and more, and what they are here; and how many rounds a fact waits for."""

PATIENCE = 0.1  # seconds, of whoever sends something

ENTRIES = list[Entry]
WRITTEN = (ENTRIES, ROUND, SEGMENTS, SEND_SEGMENTS, MessageReceived, UserMessage, AssistantMessage, ToolMessage)
"""What every life reads and writes: made ready before the first one, since it takes longer than a life."""


def main() -> None:
    """Live each life that is asked for, one after the other, in a process of its own."""
    hurry()
    for kind in WRITTEN:
        codec._reader(kind)
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        pid = os.fork()
        if not pid:
            os._exit(live(json.loads(line)))
        _, status = os.waitpid(pid, 0)
        tell("ended", os.waitstatus_to_exitcode(status))


def hurry() -> None:
    """Shorten what is only waited out; what happens, and in which order, stays."""
    for module, name, seconds in SHORTER:
        assert hasattr(module, name)
        setattr(module, name, seconds)
    for send in (outbox.Outbox.send, outbox.Outbox.send_all):
        defaults: Any = send.__kwdefaults__
        assert "patience" in defaults
        defaults["patience"] = PATIENCE


def live(life: dict[str, Any]) -> int:
    """One life; the code to exit with."""
    signal.alarm(LONGEST_LIFE)
    be_ordinary()
    tell("born", os.getpid())
    logging.basicConfig(level="INFO", stream=sys.stderr, format="%(process)d %(levelname)s %(name)s: %(message)s")
    death = Death(**life["death"]) if life["death"] else None
    crossings = Crossings(tell, death)
    crossings.watch_disk()
    try:
        cut_off = death is not None and death.number % 2 == 0  # every other stop is impatient
        run_until_stopped(lambda: serve(Settings(**life["settings"]), crossings, grace=0.0 if cut_off else GRACE))
    finally:
        tell("crossed", dict(crossings.counts))
    return 0


async def serve(settings: Settings, crossings: Crossings, *, grace: float) -> None:
    """The service, until it is asked to stop.

    SIGUSR1 asks it to tell when it has nothing more to do, SIGUSR2 how many accounts are connected.
    """
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, asked.set)
    async with open_service(settings, wrap=crossings.wrap, grace=grace) as service:
        tell("ready", crossings.counts.total())
        loop.add_signal_handler(signal.SIGUSR2, lambda: tell("accounts", len(service.app.peers.accounts())))
        while True:
            await asked.wait()
            asked.clear()
            await settle(service, crossings)
            tell("settled", True)


async def settle(service: Service, crossings: Crossings) -> None:
    """Return when no lane, no queue of the outbox and no port has anything to do, and all is written."""
    lanes, outbox = service.app.lanes, service.app.outbox
    while True:
        await service.wait_idle()
        await service.app.journal.commit()
        crossings.news.clear()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if not (lanes.waiting or outbox._sender._queues or crossings.busy):
            return
        await crossings.news.wait()


def tell(word: str, value: object) -> None:
    """One line to the parent, in the pipe when this returns: it outlives us."""
    written = codec.write(value) if word == "promised" else json.dumps(value)
    line = b'["%s", %s]\n' % (word.encode(), written.encode())
    while line:
        line = line[os.write(1, line) :]


if __name__ == "__main__":
    main()
