"""The control socket, by which commands on the same machine reach the running bot: a Unix socket
that only its owner may use.

One line of JSON each way: `{"command": "status"}` with the command's details, and the answer. The
bot keeps the connection until the other side closes it or the bot ends.
"""
