"""RabbitMQ between gateways, which hold the sockets, and workers, which have the journal.

Events go out to partitions, actions come back as calls; nothing of RabbitMQ is known outside.
"""
