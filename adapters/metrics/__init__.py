"""The bot's metrics for Prometheus. They decide nothing and delay nothing.

metrics    the instruments, fed by run events (`Observer`), journal entries (`JournalObserver`) and
           passing events; and values read on demand (`Vitals`)
work       a worker's figures in a cluster exposition Prometheus' text format, with its library
cluster    the same for workers and gateways
"""
