"""Settings of Python's cycle collector for a long-running service."""

from __future__ import annotations

import gc

# allocations before a young collection; Python's default is 700
NEW = 100_000
LOADING = 500_000  # more than all imports make
OFTEN = (50, 100)  # young collections per middle one, and middle ones per full one


def relax_collector() -> None:
    """Collect cycles less often, and never among the objects that exist now. Call it once, after
    startup.

    A message makes a few thousand objects that reference counting frees, while each collection
    walks through all pending work. With Python's defaults that took a third of the time under load
    (measured; 1.3 times the messages without it). Two hundred questions at once hold some 25,000
    objects, so a threshold of 20,000 collects on each such wave (43 us of a message's 810; 6.5 us
    at 100,000) and stalls them all for 9 to 23 ms. 3,400 messages left 151 objects that only a
    collection frees. The 124,000 objects of a start hold 35: not worth the 70 ms of looking.
    """
    gc.freeze()
    gc.set_threshold(NEW, *OFTEN)


def load_without_collecting() -> None:
    """Do not collect among the modules while they load: they make hardly any cycles to free. Saves
    a tenth of the start.
    """
    gc.set_threshold(LOADING, *OFTEN)
