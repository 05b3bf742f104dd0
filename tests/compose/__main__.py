"""The bot in its containers, on a real engine: `make compose-test`.

Builds the image, runs docker-compose.yml with stand-ins for NapCat and the model service, and prints a line for each
thing that is true. Where there is no engine it says so and ends with exit code 0.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.compose.checks import CHECKS, take_away
from tests.compose.stack import Stack, missing_engine


def main() -> int:
    """Run every check in one folder; the exit code."""
    if why := missing_engine():
        tell(f"compose-test: skipped, no engine runs containers here ({why})")
        return 0
    begun, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="compose-", ignore_cleanup_errors=True) as place:
        folder = Path(place, "first-bot")
        folder.mkdir()
        stack = Stack(folder)
        try:
            for check in CHECKS:
                name = check.__name__.replace("_", " ")
                try:
                    check(stack)
                except (AssertionError, LookupError, OSError, ValueError) as error:
                    failed += 1
                    tell(f"  FAILED {name}: {type(error).__name__} {error}")
                else:
                    tell(f"  ok     {name}")
        finally:
            take_away(stack)
    tell(f"compose-test: {len(CHECKS) - failed} of {len(CHECKS)} hold ({time.monotonic() - begun:.0f} s)")
    return failed > 0


def tell(line: str) -> None:
    """A line on standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
