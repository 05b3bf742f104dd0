"""The model client for every server that speaks OpenAI's `/chat/completions`.

`client` asks once, within its deadlines, and classifies what went wrong. Writing: `history` makes a
transcript what its reader takes (with `tools`), `wire` writes the request. Reading: `stream` takes
the bytes, in pieces or whole, and `answer` gathers one of their chunks. `leaks` takes out what the
model wrote for its server (`markup` finds it, `written_calls` reads the calls in it), `wire` reads
what is left; `errors` sorts refusals. `dialects` holds what is particular to one vendor, as rows.
Rule numbers such as 2.9 are those of docs/protocol/vendors.md.
"""
