"""Python's cycle collector, told how a service of this kind lives."""

from __future__ import annotations

import gc

# objects made and not freed before the young ones are looked through; Python's own number is 700
NEW = 100_000
OFTEN = (50, 100)  # such looks before a middle one, and middle ones before one at everything


def relax_collector() -> None:
    """Look for cycles less often, and never among what was there at the start. Call it once, when
    all is loaded.

    A message makes a few thousand objects that die by their counts alone, while every look walks
    through what waits for its answers: without this, a third of the time under load was spent so
    (measured, 1.3 times the messages). Two hundred questions under way at once hold some 25,000: a
    look for each such wave is a twentieth of the time (43 us of a message's 810 at 20,000, 6.5 at
    100,000), and keeps all of them waiting for 9 to 23 ms. 3,400 messages left 151 objects that
    only such a look frees.
    """
    gc.collect()
    gc.freeze()
    collect_seldom()


def collect_seldom() -> None:
    """Look for cycles less often. While modules are loaded hardly any arise: a tenth of the time to
    start.
    """
    gc.set_threshold(NEW, *OFTEN)
