"""The bot's counters, for Prometheus. Nothing here decides anything, and nobody waits for it.

metrics    the instruments, fed with run events (`Observer`), journal entries (`JournalObserver`)
           and events on their way; what is not counted but looked at (`Vitals`)
work       what a worker counts of its share of a cluster
exposition the text that Prometheus reads, and its library
cluster    the same for workers and gateways
"""
