"""RabbitMQ between gateways, which hold the OneBot sockets, and workers, which hold the journal.

Gateways publish events to partitions; workers call actions on gateways. Nothing outside this
package knows RabbitMQ.
"""
