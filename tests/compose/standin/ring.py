"""A tool of an operator's own, as it lies in `my-tools/`."""

from frostagent.types.tools import tool


@tool
def ring_bell(times: int) -> str:
    """Ring the bell.

    Args:
        times: How often.
    """
    return "叮" * times
