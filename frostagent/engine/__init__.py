"""The run: model requests, tool calls and their results, until the run ends.

    engine          the loop of steps: requests, limits, deadline, final answer
    run_state       the input and progress of a run; repairs its transcript
    answer_filter   decides which text of the model is an answer
    budget          limits for one question
    authority       whose words a run has read, and what that allows
    step_calls      how a step's calls affect the run: transcript, wait, end; events
    call_executor   runs a step's calls: check, approve, run, finish, cancel
    call_checks     the checks before a call's body, in order
    call_state      the state of one call, and totals over a run's calls
    tool_execution  runs users' code: threads, forced cancellation, its errors
    registry        the tools, and which can be used now
    toolset         a registry whose tools can be run by name, outside of runs
    external_tools  tools from JSON schemas and objects; `json_schemas` checks arguments
    subagents       runs inside a run

`Engine` passes the model's answer to `StepCalls`, which makes a `Batch` and has `CallExecutor` run
it. Checks and after hooks run one after another in call order; bodies run concurrently, unless one
has effects.

Each state has one owner: `RunState` the caller, `CallTotals` the run, `Batch` and `CallState` the
step, quotas the checks. Only the task of the run is cancelled, by its deadline or from outside: the
executor then gives every call its result, `StepCalls` completes the step in the transcript, and
both pass the cancellation on.
"""
