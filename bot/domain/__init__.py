"""Names that tool files and programs were told to import before `frostagent` and `bot.core`.

They keep working until 1.0.
"""

import warnings


def renamed(old: str, new: str) -> None:
    """Warn once per old module, naming the line that imports it first.

    Python hides a DeprecationWarning that comes from an imported module, as a file of TOOLS_DIR is;
    a FutureWarning is shown. The service writes it to its log.
    """
    message = f"{old} is deprecated and will be removed in 1.0: import from {new} instead"
    warnings.warn(message, FutureWarning, stacklevel=3)
