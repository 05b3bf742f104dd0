"""The particulars of each vendor, as rows; nothing else in the code names one (vendors.md sections
5, 6 and 9).

A row is found by the host of the base URL and by the model's name, because the same models are
served by many hosts; LLM_DIALECT names one where that cannot tell, as behind a proxy. The first row
that fits wins: hosts come before models, but for a host that serves everybody's models as they are.
`docs/models.md` shows the rows to people, and a test holds it to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

ANY_ID = r"[A-Za-z0-9_.:-]{1,64}"
PLAIN_ID = r"[A-Za-z0-9_-]{1,64}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """How one family wants its requests, and what its answers need. A row equals nothing but
    itself.

    `hosts` match the host or a parent domain of it, `models` is searched in the model's name where
    there are no hosts.

    `reasoning` is the field that reasoning goes back under on turns with tool calls, "none" where
    it is unwanted; `backfill` stands there for a turn whose reasoning is missing or foreign (None:
    nothing does). `extras` says what becomes of a vendor's own fields beside a call: kept for the
    endpoint and model they came from, dropped, or "sign": kept, and the first call of a step that
    has none gets the signature that is never checked.

    `ids` is the alphabet of call ids, as a pattern; `new_id` the form of one in it, of `digest` (40
    hexadecimal digits), `name` and `index` of the call. `merges`: neighbours of one role become one
    message; `bridges`: a user never follows a tool; `images`: pictures are taken; `json_results`:
    results of tools are JSON objects; `tools_stay`: a history with calls is refused without tools.
    `schema_words` are the words of a JSON schema that are taken, with choices between texts only
    (None: all that are ever sent); `empty_parameters`: a tool without parameters has a schema all
    the same; `unions`: a parameter of several types is sent as `anyOf`, else as one type that
    takes them all.

    `answers` is the `response_format` that is tried first where an answer is to be JSON
    (`frostagent/models/openai/answer_formats.py`).

    `leaks`: its servers let the model's own markup through, so it is looked for;
    `answers_in_reasoning`: an answer without content is to be found there.
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
        """Whether this row speaks for that host (in lower case) and that model."""
        if self.hosts:
            return any(host == known or host.endswith("." + known) for known in self.hosts)
        return re.search(self.models, model, re.IGNORECASE) is not None

    def elsewhere(self, models: str) -> Dialect:
        """The same for its models wherever else they are served, where templates may be strict:
        two neighbours of one role are refused by some, and one is taken by all.
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
# Few of its models take a schema, nearly all take JSON mode.
DASHSCOPE = Dialect(name="dashscope", hosts=("aliyuncs.com",), merges=False, answers="json_object")
STEPFUN = Dialect(
    name="stepfun",
    hosts=("api.stepfun.com", "api.stepfun.ai"),
    answers="json_object",
    answers_in_reasoning=True,
)
# These answer 400 when a turn with tool calls lacks its reasoning, and take any text there; Kimi
# wants some text.
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
    # the same models elsewhere
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
"""Models whose template begins the thoughts: where no server takes them out, the text begins with
thoughts and only their end is marked.
"""


def choose_dialect(host: str, model: str) -> Dialect:
    """The row for this host and model."""
    return next(row for row in DIALECTS if row.fits(host.lower(), model))


def named_dialect(name: str) -> Dialect:
    """The row of this name. Raises ValueError where there is none."""
    for row in DIALECTS:
        if row.name == name:
            return row
    raise ValueError(
        f"there is no dialect {name!r}, only {', '.join(sorted({row.name for row in DIALECTS}))}"
    )
