"""The model client for every server that speaks OpenAI's `/chat/completions`.

`client` asks once and classifies what went wrong; `wire` writes requests and reads answers, `stream` puts an answer
together from bytes (`sse` frames them, `answer` gathers them), `errors` sorts refusals, `dialects` holds what is
particular to one vendor, as rows. Rule numbers such as 2.9 are those of shared/providers/quirks.md.
"""
