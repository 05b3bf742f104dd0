"""The model client for every server that implements OpenAI's `/chat/completions`.

`client` makes one attempt within its deadlines and classifies errors. Writing: `history` adapts a
transcript to its reader (with `tools`), `wire` writes the request. Reading: `stream` takes the
bytes, in pieces or whole, and `answer` collects their chunks. `leaks` removes text that was meant
for the server (`markup` finds it, `written_calls` parses calls in it), `wire` reads the rest;
`errors` classifies refusals. `dialects` has a row for each vendor.

Rule numbers such as 2.9 refer to docs/protocol/vendors.md.
"""
