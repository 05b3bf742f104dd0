"""The model used when none is configured: a real HTTP `/chat/completions` server with a few rules
behind it.

Reading order: `question` (what was asked, and what the tools said since), `intents` and `names`
(what it is about), `brain` (words or tool calls), `phrases` and `samples` (what it says), `wire`
and `server` (HTTP). Everything but `server` is pure, and nothing here is random: the same request
gets the same answer. It never claims to be more than a demo.
"""
