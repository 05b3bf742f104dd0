"""Rows are found by host first, then by the model's name; they are the only place that names a vendor."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from config.settings import DIALECTS as SETTINGS
from frostagent.models.openai.dialects import DIALECTS, PLAIN, Dialect, choose_dialect, named_dialect
from tests.cases import each_case

ROOT = Path(__file__).parents[3]


@each_case(
    ("host", "model", "name"),
    [
        ("api.deepseek.com", "deepseek-chat", "deepseek"),
        ("API.DeepSeek.com", "deepseek-chat", "deepseek"),
        ("api.moonshot.cn", "kimi-k2.6", "kimi"),
        ("openrouter.ai", "deepseek/deepseek-v3.2", "openrouter"),
        ("api.groq.com", "moonshotai/kimi-k2.5", "groq"),
        ("mine.openai.azure.com", "gpt-5", "openai"),
        ("proxy.example", "deepseek-ai/DeepSeek-V4", "deepseek"),
        ("mine.cognitiveservices.azure.com", "gpt-5", "openai"),
        ("models.inference.ai.azure.com", "gpt-5", "openai"),
        ("proxy.example", "deepseek-chat", "deepseek"),
        ("proxy.example", "deepseek/deepseek-reasoner", "deepseek"),
        ("proxy.example", "moonshotai/Kimi-K2-Thinking", "kimi"),
        ("proxy.example", "moonshotai/Kimi-K2-Instruct", "plain"),
        ("proxy.example", "deepseek-r1", "plain"),
        ("proxy.example", "zai-org/GLM-4.6", "glm"),
        ("proxy.example", "mistralai/Devstral-Small", "mistral"),
        ("proxy.example", "google/gemini-3-pro", "gemini"),
        ("proxy.example", "claude-sonnet-4-5", "anthropic"),
        ("dashscope.aliyuncs.com", "qwen3-max", "dashscope"),
        ("dashscope-intl.aliyuncs.com", "deepseek-v3.2", "deepseek"),
        ("api.siliconflow.cn", "Pro/moonshotai/Kimi-K2.5", "kimi"),
        ("notapi.deepseek.com.evil.example", "x", "plain"),
        ("localhost", "qwen3", "plain"),
    ],
)
def test_the_first_row_that_fits_wins(host: str, model: str, name: str) -> None:
    assert choose_dialect(host, model).name == name


def test_a_dialect_is_found_by_its_name_too() -> None:
    assert named_dialect("plain") is PLAIN
    assert named_dialect("deepseek").hosts
    with pytest.raises(ValueError, match="no dialect 'deepsek', only anthropic"):
        named_dialect("deepsek")


def test_the_setting_knows_every_row_and_no_other() -> None:
    assert set(SETTINGS) == {row.name for row in DIALECTS}
    assert all(f"`{name}`" in (ROOT / "docs/models.md").read_text("utf-8") for name in SETTINGS)


# --- nothing else names a vendor ------------------------------------------------------------------

VENDORS = re.compile(
    "|".join(sorted({row.name for row in DIALECTS} - {"plain", "openai"}))
    + r"|qwen|moonshot|zhipu|bigmodel|doubao|volc|siliconflow|ollama|vllm|llama|claude|azure|minimax|perplexity",
    re.IGNORECASE,
)
DATA = {
    "frostagent/models/openai/dialects.py": "the rows",
    "frostagent/models/openai/errors.py": "words of refusals, as they are sent",
    "bot/cli/setup/answers.py": "the list that setup offers",
    "bot/cli/cli.py": "what `--help` says",
    "config/checks.py": "the example in a problem",
    "config/settings.py": "what LLM_DIALECT and SEARCH_KIND may be",
    "tools/search_web/services.py": "the rows of search services",
}
WIRE_WORDS = {"x_groq", "minimax:"}
"""What stands in answers under such a name, whoever sends it."""


def words_of(path: Path) -> list[str]:
    """Every name and every text of a module that is no docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    words: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in told:
                words.append(text)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                words.append(name)
            case _:
                pass
    return words


def test_nothing_but_the_rows_names_a_vendor() -> None:
    folders = ("frostagent", "adapters", "bot", "config", "tools")
    modules = [module for folder in folders for module in (ROOT / folder).rglob("*.py")]
    found = [
        f"{path}: {word!r}"
        for module in modules
        if (path := module.relative_to(ROOT).as_posix()) not in DATA
        for word in words_of(module)
        if VENDORS.search(re.sub("|".join(map(re.escape, WIRE_WORDS)), "", word))
    ]
    assert found == []


# --- the page for people --------------------------------------------------------------------------


def row_of(row: Dialect) -> str:
    """A row of the table in docs/models.md."""
    others = [other.models for other in DIALECTS if other.name == row.name and other.models]
    found = [
        *(f"`{host}`" for host in row.hosts),
        *(f"models like `{pattern}`".replace("|", "\\|") for pattern in others),
    ]
    reasoning = {
        "none": "not sent back",
        "reasoning_details": "its own sent back unchanged",
        "reasoning_content": "sent back with tool calls" + ("" if row.backfill is None else ", always there"),
    }
    extras = {"keep": "", "drop": "no extra fields", "sign": "signatures sent back or replaced"}
    notes = [
        extras[row.extras],
        "" if row.ids == PLAIN.ids else "call ids of its own form",
        "" if row.merges else "neighbouring messages stay apart",
        "an answer between a result and the next user" if row.bridges else "",
        "" if row.images else "pictures left out",
        "tool results as JSON objects" if row.json_results else "",
        "tools stay while the history has calls" if row.tools_stay else "",
        "schemas cut to the words it knows" if row.schema_words else "",
        "parameters of several types" if row.unions else "",
        "JSON answers without a schema" if row.answers == "json_object" else "",
        "" if row.leaks else "no search for leaked markup",
        "an empty answer is taken from the reasoning" if row.answers_in_reasoning else "",
    ]
    where = "<br>".join(found) or "everything else"
    return f"| `{row.name}` | {where} | {reasoning[row.reasoning]} | {'; '.join(filter(None, notes)) or '-'} |"


def test_the_page_shows_every_row_as_it_is() -> None:
    page = (ROOT / "docs" / "models.md").read_text("utf-8")
    first = {row.name: row for row in reversed(DIALECTS)}
    missing = [line for name in SETTINGS if (line := row_of(first[name])) not in page]
    assert not missing, "docs/models.md should have these lines:\n" + "\n".join(missing)
    table = page.split("## Service by service")[1].split("##")[0]
    assert table.count("\n| `") == len(SETTINGS)
