"""One row for each vendor; no other code names vendors (vendors.md sections 5, 6 and 9).

A row is chosen by the host of the base URL and by the model's name, because many hosts serve the
same models. LLM_DIALECT names one if that fails, as behind a proxy. The first match wins: hosts
come before models, except hosts that serve all models unchanged. `docs/models.md` lists the rows,
and a test compares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

ANY_ID = r"[A-Za-z0-9_.:-]{1,64}"
PLAIN_ID = r"[A-Za-z0-9_-]{1,64}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """What one vendor's requests and answers need. A row equals only itself.

    `hosts` match a host or its parent domain; without hosts, `models` is searched in the model's
    name.

    `reasoning` is the field for sending back reasoning on turns with tool calls ("none": do not);
    `backfill` replaces missing or foreign reasoning there (None: nothing does). `extras` says what
    happens to vendor fields of calls: kept for their endpoint and model, dropped, or "sign": kept,
    and a placeholder signature is added to a step's first call without one.

    `ids` is a pattern for call ids; `new_id` makes one from `digest` (40 hexadecimal digits),
    `name` and `index`. `merges`: consecutive messages of one role are merged. `bridges`: a user
    message never follows a tool result. `images`: pictures are accepted. `json_results`: tool
    results are JSON objects. `tools_stay`: a history with calls is refused without tools.

    `schema_words` are the accepted JSON schema keywords, with enums of strings only (None: all).
    `empty_parameters`: a tool without parameters still has a schema. `unions`: a parameter of
    several types is sent as `anyOf`, else as one type that fits all. `answers` is the
    `response_format` to try first for JSON answers. `leaks`: the model's markup may reach the text,
    so it is searched. `answers_in_reasoning`: an answer without content is in its reasoning.
    """

    name: str
    hosts: tuple[str, ...] = ()
    models: str = ""
    reasoning: Literal["none", "reasoning_content", "reasoning_details"] = "none"
    backfill: str | None = None
    extras: Literal["keep", "drop", "sign"] = "keep"
    ids: str = ANY_ID
    new_id: str = "call_{digest:.24}"
    merges: bool = True
    bridges: bool = False
    images: bool = True
    json_results: bool = False
    tools_stay: bool = False
    schema_words: frozenset[str] | None = None
    empty_parameters: bool = True
    unions: bool = False
    answers: Literal["json_schema", "json_object"] = "json_schema"
    leaks: bool = True
    answers_in_reasoning: bool = False

    def fits(self, host: str, model: str) -> bool:
        """Whether this row applies to that host (in lower case) and model."""
        if self.hosts:
            return any(host == known or host.endswith("." + known) for known in self.hosts)
        return re.search(self.models, model, re.IGNORECASE) is not None

    def elsewhere(self, models: str) -> Dialect:
        """The row for its models on other hosts, whose templates may be strict: some refuse
        consecutive messages of one role, and all accept merged ones.
        """
        return replace(self, hosts=(), models=models, merges=True)


PLAIN = Dialect(name="plain")

OPENAI = Dialect(
    name="openai",
    hosts=(
        "api.openai.com",
        "openai.azure.com",
        "cognitiveservices.azure.com",
        "models.inference.ai.azure.com",
    ),
    extras="drop",
    ids=r"[A-Za-z0-9_-]{1,40}",
    merges=False,
    unions=True,
    leaks=False,
)
MISTRAL = Dialect(
    name="mistral",
    hosts=("api.mistral.ai",),
    extras="drop",
    ids=r"[A-Za-z0-9]{9}",
    new_id="{digest:.9}",
    bridges=True,
    unions=True,
)
GROQ = Dialect(name="groq", hosts=("api.groq.com",), extras="drop", ids=PLAIN_ID, unions=True)
ANTHROPIC = Dialect(
    name="anthropic",
    hosts=("api.anthropic.com",),
    extras="drop",
    ids=PLAIN_ID,
    tools_stay=True,
    unions=True,
)
GEMINI = Dialect(
    name="gemini",
    hosts=("generativelanguage.googleapis.com",),
    extras="sign",
    json_results=True,
    schema_words=frozenset({
        "type", "description", "properties", "required", "items", "enum", "minimum", "maximum",
        "minItems", "maxItems",
    }),
    empty_parameters=False,
)  # fmt: skip
OPENROUTER = Dialect(
    name="openrouter",
    hosts=("openrouter.ai", "ai-gateway.vercel.sh"),
    reasoning="reasoning_details",
    unions=True,
)
# Few of its models accept a schema, nearly all JSON mode.
DASHSCOPE = Dialect(name="dashscope", hosts=("aliyuncs.com",), merges=False, answers="json_object")
STEPFUN = Dialect(
    name="stepfun",
    hosts=("api.stepfun.com", "api.stepfun.ai"),
    answers="json_object",
    answers_in_reasoning=True,
)
# These answer 400 for a turn with tool calls without reasoning, and accept any text; Kimi's must
# not be empty.
DEEPSEEK = Dialect(
    name="deepseek",
    hosts=("api.deepseek.com",),
    reasoning="reasoning_content",
    backfill="",
    merges=False,
    images=False,
    unions=True,
    answers="json_object",
)
KIMI = Dialect(
    name="kimi",
    hosts=("api.moonshot.cn", "api.moonshot.ai", "api.kimi.com"),
    reasoning="reasoning_content",
    backfill=".",
    ids=r"(functions\.)?[A-Za-z0-9_-]{1,64}:[0-9]{1,6}",
    new_id="functions.{name}:{index}",
    unions=True,
    answers="json_object",
)
MIMO = Dialect(
    name="mimo",
    hosts=("api.xiaomimimo.com",),
    reasoning="reasoning_content",
    backfill="",
    answers="json_object",
)
GLM = Dialect(
    name="glm",
    hosts=("api.z.ai", "open.bigmodel.cn"),
    reasoning="reasoning_content",
    answers="json_object",
)

DIALECTS = (
    OPENAI, MISTRAL, GROQ, ANTHROPIC, GEMINI, OPENROUTER, STEPFUN, DEEPSEEK, KIMI, MIMO, GLM,
    # the same models on other hosts
    DEEPSEEK.elsewhere(r"deepseek-(v(3\.[2-9]|[4-9])|chat|reasoner|flash)"),
    KIMI.elsewhere(r"kimi-k(2\.[5-9]|2-thinking|[3-9])"),
    GLM.elsewhere(r"glm-(4\.[5-9]|[5-9])"),
    MIMO.elsewhere(r"\bmimo-"),
    MISTRAL.elsewhere(r"\b(mistral|mixtral|ministral|magistral|codestral|devstral|pixtral)"),
    ANTHROPIC.elsewhere(r"\bclaude-"),
    GEMINI.elsewhere(r"\bgemini-"),
    DASHSCOPE,
    PLAIN,
)  # fmt: skip

THINKS_IN_TEXT = re.compile(
    r"\br1\b|\bqwq\b|(?<!non-)(?:think|reason)|\bz1\b|minimax-m\d|nemotron|gpt-oss"
    r"|exaone-deep|\bmimo-7b|ernie-x|intern-s1",
    re.IGNORECASE,
)
"""Models whose template begins the reasoning: unless the server removes it, the text starts with
reasoning, and only its end is marked.
"""


def choose_dialect(host: str, model: str) -> Dialect:
    """The row for this host and model."""
    return next(row for row in DIALECTS if row.fits(host.lower(), model))


def named_dialect(name: str) -> Dialect:
    """The row of this name. Raises ValueError if there is none."""
    for row in DIALECTS:
        if row.name == name:
            return row
    raise ValueError(
        f"there is no dialect {name!r}, only {', '.join(sorted({row.name for row in DIALECTS}))}"
    )
