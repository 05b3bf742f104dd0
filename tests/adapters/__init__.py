"""The edges, tested over real sockets on the loopback address."""
