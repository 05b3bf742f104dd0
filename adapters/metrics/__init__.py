"""The bot's counters, for Prometheus. Nothing here decides anything, and nobody waits for it.

metrics    the instruments, fed with run events (`Observer`) and journal entries (`JournalObserver`)
ports      a model, a transport and an event sink that are counted on their way
vitals     what is not counted but looked at: lanes, queues, accounts
exposition the text that Prometheus reads, and its library
"""
