"""The model used when none is configured: a real HTTP `/chat/completions` server with a few rules
behind it.

Reading order: `question` (the question and the tools' results since), `intents` (its subject),
`brain` (words or tool calls), `phrases` (the answers' texts and sample programs), `server` (HTTP).
All but `server` is pure, and nothing is random: the same request gets the same answer. It never
claims to be more than a demo.
"""
