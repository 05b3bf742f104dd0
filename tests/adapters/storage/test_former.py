from __future__ import annotations

from adapters.storage.former import Former
from bot.domain.chat import FinishReason
from bot.domain.codec import read
from bot.domain.run import StepFinished, ToolFinished, ToolStarted

STEP = (
    '{"turn_id":"t1","step":2,"message":{"text":"晴","type":"assistant"},"finish":"stop","model":"m@x.test",'
    '"seconds":0.5,"at":1700000000.0,"usage":null,"type":"step_taken"}'
)
STARTED = '{"turn_id":"t1","step":2,"call_id":"c1","name":"get_weather","type":"call_started"}'
FINISHED = (
    '{"turn_id":"t1","step":2,"result":{"call_id":"c1","name":"get_weather","content":"晴","type":"tool"},'
    '"code":"ok","seconds":0.25,"type":"call_finished"}'
)


def test_what_older_versions_wrote_ahead_of_steps_and_calls_is_read_as_what_runs_tell_now() -> None:
    step, started, finished = (read(Former, line).fact() for line in (STEP, STARTED, FINISHED))
    assert isinstance(step, StepFinished)
    assert (step.run_id, step.step, step.seconds) == ("t1", 2, 0.5)
    completion = step.completion
    assert (completion.message.text, completion.finish, completion.model) == ("晴", FinishReason.STOP, "m@x.test")
    assert isinstance(started, ToolStarted)
    assert (started.run_id, started.step, started.call.id, started.call.name) == ("t1", 2, "c1", "get_weather")
    assert isinstance(finished, ToolFinished)
    assert (finished.run_id, finished.step, finished.result.content, finished.code) == ("t1", 2, "晴", "ok")
