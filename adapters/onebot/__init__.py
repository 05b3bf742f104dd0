"""OneBot v11 over websockets, as NapCat, LLBot, Lagrange and go-cqhttp speak it
(`docs/protocol/onebot.md`).

Pure, from the wire to the domain and back:
    fields      JSON nobody promised us anything about
    cqcode      a message in the old string form
    segments    a message, whatever its form <-> segments
    events      an event frame -> an event
    protocol    a frame -> event or reply; an action -> a frame
    outcomes    what a refused send means: refused, or nobody knows
    identity    whose connection it is, and who is believed of that
    heartbeats  how long a silence is nothing to wonder at

With sockets:
    admission   who may come in, by which token, as whom
    peers       who is connected, as what
    rivalry     which of two connections of one account stays
    calls       the calls that wait for their answers
    claims      whose connection one is, and whether that account's place is free
    health      whether its account is online and its server alive
    connection  one socket, from its first frame to its last
    transport   the `Transport` port over all of them
    reverse_ws  the OneBot server dials us
    forward_ws  we dial the OneBot server
"""
