"""The control socket: how commands on the same machine reach the running bot. A Unix socket only
its owner may use.

One line of JSON each way, `{"command": "status"}` with the details of the command beside it, and
whatever is answered; the bot keeps the connection until the other side closes it, or the bot ends.
"""
