"""The run: requests to the model, its tool calls, their results, until it ends.

    engine          the loop of steps: requests, limits, deadline, last words
    run_state       what a run is asked, and how far it is; its transcript made whole
    answer_filter   which words of the model are an answer
    budget          what a question may take
    authority       whose words a run has read, and what that allows
    step_calls      what the calls of a step mean for their run: transcript, wait, end; events
    call_executor   runs the calls of a step: check, approve, run, finish; cancels them
    call_checks     the checks a call meets before its body, in order
    call_state      a call on its way, and the sums over a run's calls
    tool_execution  the code of others: threads, forced cancellation, what its errors mean
    registry        the tools, and which can be used now
    toolset         a registry whose tools can be run by name, outside a run
    external_tools  tools from JSON schemas and objects; `json_schemas` checks their arguments
    subagents       runs inside a run

A step's calls go one way: `Engine` hands the model's answer to `StepCalls`, which makes a `Batch`
and has `CallExecutor` run it. Checks and after hooks go in call order, one after the other; bodies
run side by side, unless one has effects.

State has one owner each: `RunState` is the caller's, `CallTotals` the run's, `Batch` and
`CallState` the step's, quotas are the checks'. Only the task of the run is cancelled, by its
deadline or from outside: the executor then gives every call its result, `StepCalls` gives the
transcript its step, and both pass the cancellation on.
"""
