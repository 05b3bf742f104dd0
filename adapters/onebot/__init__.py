"""OneBot v11 over websockets, as NapCat, LLBot, Lagrange and go-cqhttp speak it (`shared/onebot/facts.md`).

Pure, from the wire to the domain and back:
    fields      JSON nobody promised us anything about
    cqcode      a message in the old string form
    segments    a message, whatever its form <-> segments
    events      an event frame -> an event
    protocol    a frame -> event or reply; an action -> a frame

With sockets:
    peers       who is connected, as what; the newest connection wins
    calls       what we have asked and not been told yet
    connection  one socket, from its first frame to its last
    transport   the `Transport` port over all of them
    reverse_ws  the OneBot server dials us
    forward_ws  we dial the OneBot server
"""
