"""The model client for every server that speaks OpenAI's `/chat/completions`.

`client` asks once and classifies what went wrong. Writing: `history` makes a transcript what its
reader takes (with `tool_names` and `schemas`), `wire` writes the request. Reading: `stream` takes
the bytes, in pieces or whole, and gathers an `answer` of them. `leaks` takes out what the model
wrote for its server (`markup` finds it, `written_calls` reads the calls in it), `wire` reads what
is left; `errors` sorts refusals. `dialects` holds what is particular to one vendor, as rows. Rule
numbers such as 2.9 are those of docs/protocol/vendors.md.
"""
