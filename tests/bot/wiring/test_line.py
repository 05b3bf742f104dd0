"""The line is sockets of our own, or those of gateways; who has no broker loads nothing of one."""

from __future__ import annotations

import subprocess
import sys

from pydantic import SecretStr

from adapters.broker.notices import Notices
from adapters.storage.lease import Lease
from bot.domain.shares import Share
from bot.wiring.broker import BrokerLine
from bot.wiring.line import Seat, build_line
from bot.wiring.onebot import Sockets
from bot.wiring.troubles import Troubles, always
from bot.wiring.web import metrics_of
from config.settings import Settings
from tests.fakes import CountingIds, ManualClock


def test_the_line_follows_the_seat() -> None:
    troubles = Troubles()
    clock, ids = ManualClock(), CountingIds()
    alone = build_line(Settings(), None, clock=clock, ids=ids, troubles=troubles)
    assert isinstance(alone, Sockets)
    settings = Settings(broker_url=SecretStr("amqp://queue/"))
    seat = Seat(Share(), Lease(), metrics_of((), clock), Notices("me"), always)
    many = build_line(settings, seat, clock=clock, ids=ids, troubles=troubles)
    assert isinstance(many, BrokerLine)
    assert (alone.peers.accounts(), many.peers.accounts()) == ((), ())
    assert (many.peers.refused, many.peers.reconnects) == ("the broker cannot be reached", 0)


def test_the_service_alone_loads_nothing_of_a_broker() -> None:
    program = "import sys, bot.app, bot.cli.process; print([m for m in sys.modules if 'pika' in m or 'aiormq' in m])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50)
    assert told.stdout.strip() == "[]"
