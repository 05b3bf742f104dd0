"""A OneBot v11 server without QQ, speaking as NapCat does: the ordinary adapter talks to it, in the
demo and in tests.

Reading order: `wire` and `cq` (what goes over the socket), `messages` and `world` (the account, its
groups and people), `shown` (a message as an event), `outgoing`, `call` and `actions` (what a call
of the bot does to the world), `faults` and `replies` (what goes wrong with it), `peer` and
`sockets` (the connections), `answers` (when an answer leaves), `incidents` (what befalls the
account), `server` (all of it together), `console` and `commands` (lines of text in and out).
Everything up to `replies` is pure, and so is `console`.
"""
