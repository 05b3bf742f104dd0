"""`python -m bot`."""

import os
import sys

from bot.runtime import garbage_collection

if sys.platform != "win32" and os.getpid() == 1:  # alone in its container
    from bot.runtime import container_init

    container_init.run_as_init()

garbage_collection.load_without_collecting()

try:
    from bot.cli.cli import main
except KeyboardInterrupt:  # Ctrl-C while the libraries are still loading
    sys.exit(130)
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] in {
        "frostagent",
        "bot",
        "adapters",
        "tools",
        "config",
    }:
        raise
    sys.exit(
        f"{missing.name} is not installed: frostagent alone is the library. "
        'The service needs more: in the folder of FrostAgent, pip install ".[bot]"'
    )

if __name__ == "__main__":
    main()
