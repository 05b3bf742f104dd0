"""OneBot v11 over websockets, as spoken by NapCat, LLBot, Lagrange and go-cqhttp
(`docs/protocol/onebot.md`).

Without I/O:
    fields      values of untrusted JSON
    segments    messages of both wire forms (array, CQ string) <-> segments
    events      event frames -> events
    protocol    frames -> events and replies; actions -> frames; the meaning of refusals

With sockets:
    auth        access tokens, in both directions
    accounts    the accounts of the open connections, and how one is found out
    calls       calls that wait for their replies
    connection  one socket, and the health of its account
    sockets     a server that OneBot implementations connect to, or a client of one
    transport   the `Transport` port; large media are offered at a URL
"""
