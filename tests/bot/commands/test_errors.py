from __future__ import annotations

from bot.commands.errors import KEPT, NONE, Failures, errors_command
from frostagent.text.masking import Mask
from frostagent.types.messages import Usage
from frostagent.types.runs import Outcome, RunFinished, Stop
from tests.bot.commands.typed import lines
from tests.fakes import PRIVATE, ManualClock


def ended(run: str, stop: Stop, error: str = "", parent: str = "") -> RunFinished:
    outcome = Outcome(stop, "", (), Usage(), 1, error=error)
    return RunFinished(run_id=run, parent=parent, outcome=outcome, seconds=1.0)


async def test_the_last_failures_are_told_in_private_without_secrets() -> None:
    failures = Failures(clock=ManualClock(), mask=Mask(["hunter2hunter2"]))
    command = errors_command(failures)
    assert await lines(command, where=PRIVATE) == [NONE.zh]
    failures.notice(ended("t1", Stop.FAILED, "auth: key hunter2hunter2 is wrong"))
    failures.notice(ended("t2", Stop.ANSWERED))
    failures.notice(ended("t3/1/c0", Stop.FAILED, "inner", parent="t3"))
    (line,) = await lines(command, where=PRIVATE)
    assert line.endswith("t1 auth: key *** is wrong")
    assert await lines(command) == ["这个请私聊问我。"]
    for number in range(KEPT + 2):
        failures.notice(ended(f"f{number}", Stop.FAILED, "x"))
    assert [line.split()[2] for line in await lines(command, where=PRIVATE)] == [
        f"f{number}" for number in reversed(range(2, KEPT + 2))
    ]
