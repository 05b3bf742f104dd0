"""Where a model is, as settings say it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is: base url without a slash at its end, key (may be empty) and model name.

    `api_key` may be several, separated by commas. `dialect` is how it wants to be spoken to; empty
    where the base url and the model's name tell. `context` is its window in tokens, 0 where the
    table of models is to tell.
    """

    base_url: str
    api_key: SecretStr
    model: str
    dialect: str = ""
    context: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Each key; one empty text where there is none."""
        return tuple(self.api_key.get_secret_value().split(","))


def in_order(*endpoints: Endpoint) -> tuple[Endpoint, ...]:
    """Each of them once, where it stands first."""
    return tuple(dict.fromkeys(endpoints))
