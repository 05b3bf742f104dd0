"""The model used if none is configured: a real HTTP `/chat/completions` server with a few rules
behind it.

Reading order: `question` (the question and the tool results since), `intents` (its subject),
`brain` (text or tool calls), `phrases` (texts and sample programs), `server` (HTTP). All but
`server` is pure and deterministic: the same request gets the same answer. It never claims to be
more than a demo.
"""
