"""OneBot v11 over websockets, as NapCat, LLBot, Lagrange and go-cqhttp speak it
(`docs/protocol/onebot.md`).

Pure, between the wire and the domain:
    fields      reads values of untrusted JSON
    segments    messages of both wire forms (array, CQ string) <-> segments
    events      event frames -> events
    protocol    frames -> events and replies; actions -> frames; what a refusal means

With sockets:
    connection        one socket, from its first frame to its last
    account_resolver  which account a connection belongs to
    health            heartbeats, and whether the account is online
    peers             the registry of open connections
    calls             calls that wait for their replies
    transport         the `Transport` port; large media are offered at a url
    reverse_ws        a server: OneBot implementations connect to us, with a token
    forward_ws        a client: we connect to one OneBot implementation
"""
