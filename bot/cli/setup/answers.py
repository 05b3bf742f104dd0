"""The answers that `setup` needs, by the names in `.env`: the model services it offers, what is
known already and what is wrong with it; and the questions, one after the other on a terminal, each
until it is answered well; a known answer is offered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import typer
from pydantic import SecretStr

from bot.cli.setup.files import can_be_in_env
from bot.core.language import CATALOGUE, Phrase
from config import sources, values
from config.checks import PLACEHOLDER
from config.endpoints import Endpoint
from config.loading import load_settings
from config.persona_files import find_persona
from config.settings import Settings
from config.values import to_half_width
from frostagent.types.errors import ConfigError, Problem


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
NAMES = ", ".join(vendor.name for vendor in VENDORS)
WITH_A_NAME = Phrase(f"{{mend}}，或者写其中一个名字：{NAMES}", f"{{mend}}, or name one of {NAMES}")
CATALOGUE.register(__name__, globals())


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
    mend = problem.mend
    if problem.name == "LLM_BASE_URL":
        mend = WITH_A_NAME.fill(mend=mend)
    return Problem(f"{problem.name} ({option})", problem.what, mend) if option else problem


# --- questions ------------------------------------------------------------------------------------


class Terminal(Protocol):
    """A person who can be asked. Every method raises typer.Abort if they leave (Ctrl-C, end of
    input).
    """

    def tell(self, text: str) -> None:
        """Say something."""
        ...

    def ask(self, question: str, *, default: str = "") -> str:
        """The line they type, without blanks around it; the default for nothing."""
        ...

    def ask_secret(self, question: str) -> str:
        """The same, never shown."""
        ...

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        ...


class TyperTerminal:
    """The terminal the process runs in; everything is said on standard error."""

    def tell(self, text: str) -> None:
        """Say something."""
        typer.echo(text, err=True)

    def ask(self, question: str, *, default: str = "") -> str:
        """The line they type, without blanks around it; for none the default, which is shown."""
        answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
        return answer.strip()

    def ask_secret(self, question: str) -> str:
        """The same, without echo."""
        answer: str = typer.prompt(
            question, default="", show_default=False, hide_input=True, err=True
        )
        return answer.strip()

    def confirm(self, question: str, *, default: bool) -> bool:
        """Yes or no."""
        return typer.confirm(question, default=default, err=True)


ListModels = Callable[[Endpoint], Sequence[str]]
"""The names of the models that a service lists; none if it lists none."""

BOT_NAME = "FrostAgent"
BASE_URL = "请填写以 http:// 或 https:// 开头的地址"
KEY = "请重新复制密钥，不要带 Bearer、引号或空格"
NUMBERS = "QQ 号和群号只有数字，多个用逗号隔开"
NEEDED = "这一项不能留空"
PERSONA = "请输入一句话（不含引号、反斜杠），或一个已有的文件名"
WRITABLE = "不能含引号、反斜杠或换行"
MODEL_NAME = "请输入列表里的编号，或按服务的写法输入模型名称"
PORT_NUMBER = "端口是 1 到 65535 的数字"
SHOWN = 30  # models of a list; some services have hundreds
PARTS = {"1": "LLM_BASE_URL", "2": "LLM_API_KEY", "3": "LLM_MODEL", "0": ""}


def ask_model(
    terminal: Terminal, answers: Mapping[str, str], list_models: ListModels
) -> dict[str, str]:
    """The answers with a model in them: base url, key, name."""
    terminal.tell("模型服务 Model service:")
    for number, vendor in enumerate(VENDORS, 1):
        terminal.tell(f"  {number:>2}  {vendor.name:<12} {vendor.title}  {vendor.base_url}")
    old = answers.get("LLM_BASE_URL", "")
    found = ask_part(terminal, answers, "LLM_BASE_URL", list_models)
    if found["LLM_BASE_URL"] != old:  # what is known of another service is no answer for this one
        found |= {"LLM_API_KEY": "", "LLM_MODEL": ""}
    found = ask_part(terminal, found, "LLM_API_KEY", list_models)
    return ask_part(terminal, found, "LLM_MODEL", list_models)


def ask_part(
    terminal: Terminal, answers: Mapping[str, str], name: str, list_models: ListModels
) -> dict[str, str]:
    """The answers with one of the three of a model asked for again; what it was is offered."""
    old = answers.get(name, "")
    match name:
        case "LLM_BASE_URL":
            question = "编号、名称或地址 Number, name or base url"
            default = old or VENDORS[0].name
            found = _until_right(
                lambda: terminal.ask(question, default=default), _base_url, terminal, BASE_URL
            )
        case "LLM_API_KEY":
            found = _ask_key(terminal, answers["LLM_BASE_URL"], old)
        case _:
            key = SecretStr(answers.get("LLM_API_KEY", ""))
            models = list_models(Endpoint(answers["LLM_BASE_URL"], key, ""))
            found = _ask_model_name(terminal, old, [one for one in models if can_be_in_env(one)])
    return {**answers, name: found}


def _ask_model_name(terminal: Terminal, old: str, models: Sequence[str]) -> str:
    """One of the models by its number in the list, or any name; a part of names shows those."""
    shown = _show_models(terminal, models)
    default = old or (models[0] if len(models) == 1 else "")
    refused = ""
    while True:
        answer = _until_right(
            _asking(terminal, "编号或名称 Number or model" if shown else "模型名称 Model", default),
            partial(_model_name, shown=shown),
            terminal,
            MODEL_NAME if shown else NEEDED,
        )
        near = [name for name in models if answer.casefold() in name.casefold()]
        if not near or answer in models or answer in {old, refused}:
            return answer
        terminal.tell(
            f"  列表里没有 {answer}，相近的有下面这些；再输入一次就用它\n"
            f"  {answer} is not listed, these are like it; type it again to take it all the same"
        )
        shown, refused = _show_models(terminal, near), answer


def _asking(terminal: Terminal, question: str, default: str) -> Callable[[], str]:
    return lambda: terminal.ask(question, default=default)


def _show_models(terminal: Terminal, models: Sequence[str]) -> Sequence[str]:
    """Show the first of them, each with its number from 1; those shown."""
    shown = models[:SHOWN]
    if shown:
        terminal.tell("模型 Models:")
    for number, name in enumerate(shown, 1):
        terminal.tell(f"  {number:>2}  {name}")
    if more := len(models) - len(shown):
        terminal.tell(
            f"  另有 {more} 个，输入名称的一部分来查找  {more} more, found by a part of the name"
        )
    return shown


def _model_name(text: str, shown: Sequence[str]) -> str:
    number = values.to_half_width(text)
    if not number.isdecimal():
        return _writable(_something(text))
    if not shown:
        raise values.Wrong("is a number, not a name", "Type the name as the service spells it")
    chosen = {str(place): name for place, name in enumerate(shown, 1)}.get(number)
    if chosen is None:
        raise values.Wrong("is not in the list", f"Type a number from 1 to {len(shown)}, or a name")
    return chosen


def ask_which(terminal: Terminal, suggested: str) -> str:
    """Which of the three of a model to answer again, by its name; empty to go on with all of them
    as they are.
    """
    number = next((number for number, name in PARTS.items() if name == suggested), "0")
    question = (
        "改哪一项 Change which: 1 地址 base url, 2 密钥 key, 3 模型 model, 0 不改，继续 none, go on"
    )
    chosen = _until_right(
        lambda: terminal.ask(question, default=number), _part, terminal, "请输入 0 到 3"
    )
    return PARTS[chosen]


def ask_character(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with what the bot is called and who it is: a file, or a sentence."""
    name = _until_right(
        lambda: terminal.ask(
            "机器人的名字，喊它就会回应 What it is called",
            default=answers.get("BOT_NAME") or BOT_NAME,
        ),
        _writable,
        terminal,
        WRITABLE,
    )
    old = answers.get("BOT_PERSONA") or answers.get("SYSTEM_PROMPT", "")
    question = (
        "人设：一句话，或文件名（用 Docker 时放在 data/ 里），可留空 Persona: a sentence or a "
        "file, may be empty"
    )
    who = _until_right(lambda: terminal.ask(question, default=old), _persona, terminal, PERSONA)
    is_file = _names_a_file(who)
    persona = {"BOT_PERSONA": who if is_file else "", "SYSTEM_PROMPT": "" if is_file else who}
    return {**answers, "BOT_NAME": name, **persona}


def ask_people(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with who the bot listens to."""
    asked = {
        "BOT_OWNERS": "主人的 QQ 号 Your own QQ number (owner)",
        "BOT_GROUPS": "允许的群号，留空为全部 Groups, empty for all",
        ACCOUNT: "机器人的 QQ 号，可留空 The bot's QQ number, may be empty",
    }
    found = {
        name: _ask_numbers(terminal, question, answers.get(name, ""))
        for name, question in asked.items()
    }
    return {**answers, **found}


def ask_docker(terminal: Terminal, *, likely: bool) -> bool:
    """Whether the bot and NapCat shall run in Docker."""
    question = "怎么运行 How to run it: 1 用 Docker with Docker, 2 不用 Docker without"
    chosen = _until_right(
        lambda: terminal.ask(question, default="1" if likely else "2"),
        _one_or_two,
        terminal,
        "请输入 1 或 2",
    )
    return chosen == "1"


def ask_console(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with the port of the console, empty for none."""
    question = (
        "网页控制台的端口，如 8090，留空为不开 Port of the web console, as 8090; empty for none"
    )
    port = _until_right(
        lambda: terminal.ask(question, default=answers.get(PORT, "")), _port, terminal, PORT_NUMBER
    )
    return {**answers, PORT: port}


def _ask_numbers(terminal: Terminal, question: str, old: str) -> str:
    return _until_right(lambda: terminal.ask(question, default=old), _numbers, terminal, NUMBERS)


def _ask_key(terminal: Terminal, base_url: str, old: str) -> str:
    vendor = vendor_of(base_url)
    needed = bool(vendor and vendor.needs_key)
    if vendor and vendor.page:
        terminal.tell(f"密钥在 Keys are made at {vendor.page}")
    if old:
        hint = "回车保留原值 Enter keeps the old one"
    else:
        hint = "不显示 not shown" if needed else "回车表示没有 Enter for none"
    question = f"密钥 API key ({hint})"
    return _until_right(
        lambda: terminal.ask_secret(question) or old,
        _key if needed else _optional_key,
        terminal,
        KEY,
    )


def _until_right(
    ask: Callable[[], str], read: Callable[[str], str], terminal: Terminal, mend: str
) -> str:
    """Ask until the answer can be read; `mend` says in Chinese what the error says in English.

    Quotes around an answer are no part of it.
    """
    while True:
        try:
            return read(values.check_quotes(values.without_quotes(ask())))
        except values.Wrong as wrong:
            terminal.tell(f"  {mend} {wrong.what}. {wrong.mend}.")


def _part(text: str) -> str:
    number = values.to_half_width(text)
    if number not in PARTS:
        raise values.Wrong("is none of them", "Type a number from 0 to 3")
    return number


def _one_or_two(text: str) -> str:
    number = values.to_half_width(text)
    if number not in {"1", "2"}:
        raise values.Wrong("is neither of them", "Type 1 or 2")
    return number


def _port(text: str) -> str:
    return str(values.Whole(1, 65535)(text)) if text else ""


def _persona(text: str) -> str:
    if _names_a_file(text) and not find_persona(Path(text)).is_file():
        raise values.Wrong("is not there", "Name a file that is, or type a sentence")
    return _writable(text)


def _names_a_file(text: str) -> bool:
    return text.lower().endswith((".md", ".txt"))


def _writable(text: str) -> str:
    if not can_be_in_env(text):
        raise values.Wrong("has a quote, a backslash or a line break", "Type it without")
    return text


def _base_url(text: str) -> str:
    vendor = find_vendor(text)
    return vendor.base_url if vendor else values.base_url(_something(text))


def _key(text: str) -> str:
    return _optional_key(_something(text))


def _optional_key(text: str) -> str:
    return values.secret(SecretStr(text)).get_secret_value()


def _numbers(text: str) -> str:
    return ",".join(str(number) for number in sorted(values.qq_numbers(text)))


def _something(text: str) -> str:
    if not text:
        raise values.Wrong("is needed", "Type it, or leave with Ctrl-C")
    return text
