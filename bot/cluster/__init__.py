"""A bot as one of several in a cluster, and its connection to QQ: its own sockets, or a broker."""
