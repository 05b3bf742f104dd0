"""A OneBot v11 server without QQ, speaking as NapCat does: the ordinary adapter talks to it, in the demo and in tests.

Reading order: `wire` and `cq` (what goes over the socket), `world` (the account, its groups, people and messages),
`outgoing` and `actions` (what a call of the bot does to the world), `peer` and `server` (the sockets),
`console` (lines of text in and out). Everything but `peer` and `server` is pure.
"""
