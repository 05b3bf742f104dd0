"""OneBot v11 over websockets, as NapCat, LLBot, Lagrange and go-cqhttp speak it
(`docs/protocol/onebot.md`).

Without I/O:
    fields      values of untrusted JSON
    segments    messages of both wire forms (array, CQ string) <-> segments
    events      event frames -> events
    protocol    frames -> events and replies; actions -> frames; the meaning of refusals

With sockets:
    connection        one socket, and the health of its account
    account_resolver  the account of a connection
    peers             the registry of open connections
    auth              access tokens, in both directions
    calls             calls that wait for their replies
    transport         the `Transport` port; large media are offered at a url
    reverse_ws        a server: OneBot implementations connect to us
    forward_ws        a client: we connect to one OneBot implementation
"""
