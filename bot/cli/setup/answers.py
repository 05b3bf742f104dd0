"""The answers that `setup` needs, by the names in `.env`: the model services it offers, what is
known already, and what is wrong with it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bot.domain.errors import ConfigError, Problem
from config import sources, values
from config.checks import PLACEHOLDER
from config.loading import load_settings
from config.settings import Settings
from config.values import to_half_width


@dataclass(frozen=True, slots=True)
class Vendor:
    """A service with an OpenAI-compatible API.

    `name` is what a person types, `page` where its keys are made (empty for a server of one's own,
    which needs none). Model names change every few months, so none is kept here.
    """

    name: str
    title: str
    base_url: str
    page: str = ""

    @property
    def needs_key(self) -> bool:
        """Whether it answers nobody without a key."""
        return bool(self.page)


VENDORS = (
    Vendor(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        "https://platform.deepseek.com/api_keys",
    ),
    Vendor(
        "dashscope",
        "通义千问 Qwen (DashScope)",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "https://bailian.console.aliyun.com",
    ),
    Vendor(
        "moonshot",
        "月之暗面 Kimi (Moonshot)",
        "https://api.moonshot.cn/v1",
        "https://platform.moonshot.cn/console/api-keys",
    ),
    Vendor(
        "zhipu",
        "智谱 GLM (Zhipu)",
        "https://open.bigmodel.cn/api/paas/v4",
        "https://open.bigmodel.cn/usercenter/apikeys",
    ),
    Vendor(
        "siliconflow",
        "硅基流动 SiliconFlow",
        "https://api.siliconflow.cn/v1",
        "https://cloud.siliconflow.cn/account/ak",
    ),
    Vendor(
        "ark",
        "火山方舟 Volcengine Ark",
        "https://ark.cn-beijing.volces.com/api/v3",
        "https://console.volcengine.com/ark",
    ),
    Vendor(
        "openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "https://openrouter.ai/keys"
    ),
    Vendor("openai", "OpenAI", "https://api.openai.com/v1", "https://platform.openai.com/api-keys"),
    Vendor("ollama", "Ollama (本机 local)", "http://127.0.0.1:11434/v1"),
    Vendor("llamacpp", "llama.cpp (本机 local)", "http://127.0.0.1:8080/v1"),
    Vendor("vllm", "vLLM (本机 local)", "http://127.0.0.1:8000/v1"),
)


def find_vendor(typed: str) -> Vendor | None:
    """The vendor of this name or of this number in the list (from 1), if there is one."""
    text = to_half_width(typed).lower()
    by_number = {str(number): vendor for number, vendor in enumerate(VENDORS, 1)}
    return by_number.get(text) or next((vendor for vendor in VENDORS if vendor.name == text), None)


def vendor_of(base_url: str) -> Vendor | None:
    """The vendor behind a base url, if it is one of these."""
    return next((vendor for vendor in VENDORS if vendor.base_url == base_url), None)


# --- answers --------------------------------------------------------------------------------------


ONEBOT = "ONEBOT_ACCESS_TOKEN"
WEBUI = "NAPCAT_WEBUI_TOKEN"
CONSOLE = "CONSOLE_TOKEN"
ACCOUNT = "NAPCAT_ACCOUNT"

MODEL = ("LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL")
WHO = ("BOT_NAME", "BOT_PERSONA", "SYSTEM_PROMPT")
PORT = "CONSOLE_PORT"
ASKED = (*MODEL, *WHO, "BOT_OWNERS", "BOT_GROUPS", ACCOUNT, PORT)
TOKENS = (ONEBOT, WEBUI, CONSOLE)
CONNECTION = ("ONEBOT_MODE", "ONEBOT_URL", "ONEBOT_HOST", "ONEBOT_PORT", "BOT_NEW_GROUP")
"""Which side dials, where, and what a new group is: never asked, but kept if set."""

OPTION_OF = {
    "LLM_BASE_URL": "--base-url",
    "LLM_API_KEY": "--api-key",
    "LLM_MODEL": "--model",
    "BOT_OWNERS": "--owner",
    "BOT_GROUPS": "--groups",
    ACCOUNT: "--account",
    PORT: "--console-port",
}
OR_A_NAME = f", or name one of {', '.join(vendor.name for vendor in VENDORS)}"


def known_answers(
    typed: Mapping[str, str], environ: Mapping[str, str], lines: Iterable[sources.EnvLine]
) -> dict[str, str]:
    """The answers there are: options win over the environment, it over `.env`; an example's text is
    no answer.

    What is not known and would be asked is empty. The base url may also be the name of a vendor.
    """
    given = sources.gather(environ, lines, (*ASKED, *TOKENS, *CONNECTION))
    found = {
        name: value.text for name, value in given.items() if not PLACEHOLDER.fullmatch(value.text)
    }
    found = (
        dict.fromkeys(ASKED, "")
        | found
        | {name: text for name, raw in typed.items() if (text := sources.meant(raw))}
    )
    vendor = find_vendor(found.get("LLM_BASE_URL", ""))
    return found | ({"LLM_BASE_URL": vendor.base_url} if vendor else {})


def with_tokens(answers: Mapping[str, str], make_token: Callable[[], str]) -> dict[str, str]:
    """The answers and a token for each that is missing."""
    return {**answers, **{name: make_token() for name in TOKENS if not answers.get(name)}}


def check_answers(answers: Mapping[str, str]) -> Settings:
    """The settings these answers make, base url in its short form. Raises ConfigError with every
    problem at once.
    """
    problems = list(_problems(answers))
    try:
        settings, _ = load_settings(environ=answers, env_file=None)
    except ConfigError as error:
        problems += [_with_option(problem) for problem in error.problems]
    else:
        if not problems:
            return settings
    raise ConfigError(*problems)


def _problems(answers: Mapping[str, str]) -> Iterable[Problem]:
    vendor = vendor_of(answers.get("LLM_BASE_URL", ""))
    if vendor and vendor.needs_key and not answers.get("LLM_API_KEY"):
        yield _with_option(
            Problem(
                "LLM_API_KEY",
                f"is not set, but {vendor.title} needs one",
                f"Make one: {vendor.page}",
            )
        )
    account = answers.get(ACCOUNT, "")
    try:
        if len(values.qq_numbers(account)) > 1:
            mend = "One NapCat is one account: docs/several-accounts.md"
            yield _with_option(Problem(ACCOUNT, "has more than one number", mend))
    except values.Wrong as wrong:
        yield _with_option(Problem(ACCOUNT, wrong.what, wrong.mend))


def _with_option(problem: Problem) -> Problem:
    option = OPTION_OF.get(problem.name)
    mend = problem.mend + (OR_A_NAME if problem.name == "LLM_BASE_URL" else "")
    return Problem(f"{problem.name} ({option})", problem.what, mend) if option else problem
