"""`python -m bot`."""

import os
import sys

from bot.runtime import collector, first

if os.getpid() == 1:  # alone in its container
    first.attend()

collector.look_seldom()

try:
    from bot.cli.cli import main
except KeyboardInterrupt:  # Ctrl-C while the libraries are still loading
    sys.exit(130)

if __name__ == "__main__":
    main()
