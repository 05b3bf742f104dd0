"""A OneBot v11 server without QQ, speaking as NapCat does: the ordinary adapter connects to it, in
the demo and in tests.

Reading order: `wire` (frames), `world` (the account, its groups, people and messages),
`shared_media` (images, files, cards), `outgoing`, `call` and `actions` (what a call of the bot does
to the world), `faults` (what goes wrong), `sockets` (the connections), `incidents` (recalls,
requests, mutes, lost logins), `server` (all of it together, and replies to calls), `console` and
`commands` (lines of text in and out). Everything up to `faults` is pure, and so is `console`.
"""
