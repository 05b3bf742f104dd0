"""`python -m bot`."""

import sys

try:
    from bot.cli import main
except KeyboardInterrupt:  # Ctrl-C while the libraries are still loading
    sys.exit(130)

if __name__ == "__main__":
    main()
