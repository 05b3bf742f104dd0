"""The model client for every server that speaks OpenAI's `/chat/completions`.

`client` asks once and classifies what went wrong. Writing: `history` makes a transcript what its
reader takes (with `names` and `schemas`; `mere_words` is what needs none of that), `wire` writes
the request. Reading: `stream` takes the
bytes, a stream to `chunks` (which `sse` frames) and one JSON text to `whole`; both gather an
`answer`, its calls in `call_drafts`. `leaks` takes out what the model wrote for its server
(`markup` finds it), `wire` reads what is left; `errors` sorts refusals. `dialects` holds what is
particular to one vendor, as rows. Rule numbers such as 2.9 are those of
docs/protocol/vendors.md.
"""
