"""What is particular to one vendor, as rows; nothing else in the code names one (quirks.md sections 5 and 6).

A row is found by the host of the base URL and by the model's name, because the same models are served by many hosts.
The first row that fits wins, so hosts come before models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one family wants its own words back in the history of a request.

    `reasoning` is the field that reasoning goes back under on turns with tool calls, "none" where it is unwanted;
    `backfill` stands there for a turn whose reasoning is missing or foreign (None: nothing does); `call_extras` says
    whether the fields beside a tool call go back with it. `hosts` match the host or a parent domain of it.
    """

    name: str
    hosts: tuple[str, ...] = ()
    models: str = ""
    reasoning: Literal["none", "reasoning_content", "reasoning_details"] = "none"
    backfill: str | None = None
    call_extras: bool = True

    def fits(self, host: str, model: str) -> bool:
        """Whether this row speaks for that host (in lower case) and that model."""
        if self.hosts:
            return any(host == known or host.endswith("." + known) for known in self.hosts)
        return re.search(self.models, model, re.IGNORECASE) is not None


PLAIN = Dialect(name="plain", models="")

DIALECTS = (
    # these refuse fields they do not know
    Dialect(name="openai", hosts=("api.openai.com", "openai.azure.com"), call_extras=False),
    Dialect(name="mistral", hosts=("api.mistral.ai",), call_extras=False),
    Dialect(name="groq", hosts=("api.groq.com",), call_extras=False),
    # their own reasoning has to come back unchanged
    Dialect(name="openrouter", hosts=("openrouter.ai", "ai-gateway.vercel.sh"), reasoning="reasoning_details"),
    Dialect(name="gemini", hosts=("generativelanguage.googleapis.com",)),
    # these answer 400 when a turn with tool calls lacks it, and take any text; Kimi wants some text
    Dialect(name="deepseek", hosts=("api.deepseek.com",), reasoning="reasoning_content", backfill=""),
    Dialect(
        name="kimi",
        hosts=("api.moonshot.cn", "api.moonshot.ai", "api.kimi.com"),
        reasoning="reasoning_content",
        backfill=".",
    ),
    Dialect(name="glm", hosts=("api.z.ai", "open.bigmodel.cn"), reasoning="reasoning_content"),
    # the same models elsewhere
    Dialect(name="deepseek", models=r"deepseek-v(3\.[2-9]|[4-9])", reasoning="reasoning_content", backfill=""),
    Dialect(name="kimi", models=r"kimi-k(2\.[5-9]|[3-9])", reasoning="reasoning_content", backfill="."),
    Dialect(name="glm", models=r"glm-(4\.[5-9]|[5-9])", reasoning="reasoning_content"),
    Dialect(name="mimo", models=r"\bmimo-", reasoning="reasoning_content", backfill=""),
    PLAIN,
)


def choose_dialect(host: str, model: str) -> Dialect:
    """The row for this host and model."""
    return next(row for row in DIALECTS if row.fits(host.lower(), model))
