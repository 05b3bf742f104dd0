"""The answers that `setup` needs, by their names in `.env`: the offered model services, known
answers and their problems; and the questions on a terminal. Each is repeated until its answer is
valid, with the known answer as default.
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
from bot.core.language import CATALOGUE, Language, Phrase, text_in
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
    """A service with an OpenAI-compatible API. `name` is what a person types, `page` is where keys
    are created (empty for a local server, which needs none). Model names change every few months,
    so there are none here.
    """

    name: str
    title: Phrase
    base_url: str
    page: str = ""

    @property
    def needs_key(self) -> bool:
        """Whether the service refuses requests without a key."""
        return bool(self.page)


VENDORS = (
    Vendor(
        "deepseek",
        Phrase("DeepSeek", "DeepSeek"),
        "https://api.deepseek.com/v1",
        "https://platform.deepseek.com/api_keys",
    ),
    Vendor(
        "dashscope",
        Phrase("通义千问 Qwen (DashScope)", "Qwen (DashScope)"),
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "https://bailian.console.aliyun.com",
    ),
    Vendor(
        "moonshot",
        Phrase("月之暗面 Kimi (Moonshot)", "Kimi (Moonshot)"),
        "https://api.moonshot.cn/v1",
        "https://platform.moonshot.cn/console/api-keys",
    ),
    Vendor(
        "zhipu",
        Phrase("智谱 GLM (Zhipu)", "GLM (Zhipu)"),
        "https://open.bigmodel.cn/api/paas/v4",
        "https://open.bigmodel.cn/usercenter/apikeys",
    ),
    Vendor(
        "siliconflow",
        Phrase("硅基流动 SiliconFlow", "SiliconFlow"),
        "https://api.siliconflow.cn/v1",
        "https://cloud.siliconflow.cn/account/ak",
    ),
    Vendor(
        "ark",
        Phrase("火山方舟 Volcengine Ark", "Volcengine Ark"),
        "https://ark.cn-beijing.volces.com/api/v3",
        "https://console.volcengine.com/ark",
    ),
    Vendor(
        "openrouter",
        Phrase("OpenRouter", "OpenRouter"),
        "https://openrouter.ai/api/v1",
        "https://openrouter.ai/keys",
    ),
    Vendor(
        "openai",
        Phrase("OpenAI", "OpenAI"),
        "https://api.openai.com/v1",
        "https://platform.openai.com/api-keys",
    ),
    Vendor("ollama", Phrase("Ollama（本机）", "Ollama (local)"), "http://127.0.0.1:11434/v1"),
    Vendor(
        "llamacpp", Phrase("llama.cpp（本机）", "llama.cpp (local)"), "http://127.0.0.1:8080/v1"
    ),
    Vendor("vllm", Phrase("vLLM（本机）", "vLLM (local)"), "http://127.0.0.1:8000/v1"),
)


def find_vendor(typed: str) -> Vendor | None:
    """The vendor with this name or number in the list (from 1), if any."""
    text = to_half_width(typed).lower()
    by_number = {str(number): vendor for number, vendor in enumerate(VENDORS, 1)}
    return by_number.get(text) or next((vendor for vendor in VENDORS if vendor.name == text), None)


def vendor_of(base_url: str) -> Vendor | None:
    """The vendor with this base URL, if any."""
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
"""Which side dials, its address, and the mode of new groups: never asked, but kept if set."""

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
WITH_A_NAME = Phrase(f"{{fix}}，或者写其中一个名字：{NAMES}", f"{{fix}}, or type one of {NAMES}")
KEY_MISSING = Phrase("没有设置，但 {vendor} 需要密钥", "is not set, but {vendor} needs one")
MAKE_A_KEY = Phrase("在这里创建：{page}", "Create one: {page}")
SEVERAL_ACCOUNTS = Phrase("有不止一个号码", "has more than one number")
ONE_ACCOUNT = Phrase(
    "一个 NapCat 只登录一个账号：docs/zh/several-accounts.md",
    "One NapCat has one account: docs/several-accounts.md",
)


def known_answers(
    typed: Mapping[str, str], environ: Mapping[str, str], lines: Iterable[sources.EnvLine]
) -> dict[str, str]:
    """The known answers: options win over the environment, which wins over `.env`; placeholders of
    examples do not count.

    Unknown answers are empty. The base URL may also be the name of a vendor.
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
    """The answers, with a new token for each missing one."""
    return {**answers, **{name: make_token() for name in TOKENS if not answers.get(name)}}


def check_answers(answers: Mapping[str, str]) -> Settings:
    """The settings from these answers, with a normalised base URL. Raises ConfigError with every
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
                KEY_MISSING.fill(vendor=vendor.title),
                MAKE_A_KEY.fill(page=vendor.page),
            )
        )
    account = answers.get(ACCOUNT, "")
    try:
        if len(values.qq_numbers(account)) > 1:
            what, fix = SEVERAL_ACCOUNTS.fill(), ONE_ACCOUNT.fill()
            yield _with_option(Problem(ACCOUNT, what, fix))
    except values.Wrong as wrong:
        yield _with_option(Problem(ACCOUNT, wrong.what, wrong.fix))


def _with_option(problem: Problem) -> Problem:
    option = OPTION_OF.get(problem.name)
    fix = problem.fix
    if problem.name == "LLM_BASE_URL":
        fix = WITH_A_NAME.fill(fix=fix)
    return Problem(f"{problem.name} ({option})", problem.what, fix) if option else problem


# --- questions ------------------------------------------------------------------------------------


class Terminal(Protocol):
    """A person who can be asked, in one of the two languages. Every method raises typer.Abort if
    they leave (Ctrl-C, end of input).
    """

    def tell(self, text: str) -> None:
        """Print a text and a newline."""
        ...

    def ask(self, question: str, *, default: str = "") -> str:
        """The typed line without surrounding blanks; the default if it is empty."""
        ...

    def ask_secret(self, question: str) -> str:
        """The same, never shown."""
        ...

    def confirm(self, question: str) -> bool:
        """Yes or no; no if they type nothing."""
        ...


@dataclass(frozen=True, slots=True)
class TyperTerminal:
    """The terminal of this process. Everything goes to standard error."""

    language: Language

    def tell(self, text: str) -> None:
        """Print a text and a newline."""
        typer.echo(text_in(self.language, text), err=True)

    def ask(self, question: str, *, default: str = "") -> str:
        """The typed line without surrounding blanks; the default, which is shown, if it is
        empty.
        """
        answer: str = typer.prompt(
            text_in(self.language, question), default=default, show_default=bool(default), err=True
        )
        return answer.strip()

    def ask_secret(self, question: str) -> str:
        """The same, without echo."""
        answer: str = typer.prompt(
            text_in(self.language, question),
            default="",
            show_default=False,
            hide_input=True,
            err=True,
        )
        return answer.strip()

    def confirm(self, question: str) -> bool:
        """Yes or no; no if they type nothing."""
        return self.ask(YES_OR_NO.fill(question=question)).casefold() in YES


ListModels = Callable[[Endpoint], Sequence[str]]
"""The models that a service lists; may be empty."""

BOT_NAME = "FrostAgent"
SHOWN = 30  # models of a list; some services have hundreds
PARTS = {"1": "LLM_BASE_URL", "2": "LLM_API_KEY", "3": "LLM_MODEL", "0": ""}
YES = {"y", "yes", "是", "好"}

YES_OR_NO = Phrase("{question} [y/N]", "{question} [y/N]")
AGAIN = Phrase("  {what}。{fix}。", "  {what}. {fix}.")
SERVICES = Phrase("模型服务：", "Model service:")
VENDOR_LINE = Phrase("  {row}  {title}  {url}", "  {row}  {title}  {url}")
WHICH_SERVICE = Phrase("编号、名称或接口地址", "Number, name or base URL")
WHERE_KEYS_ARE = Phrase("在这里创建密钥：{page}", "Create a key: {page}")
KEY_KEPT = Phrase("密钥（回车保留原值）", "API key (Enter keeps the present one)")
KEY_HIDDEN = Phrase("密钥（输入时不显示）", "API key (not shown)")
KEY_OPTIONAL = Phrase("密钥（没有就按回车）", "API key (Enter for none)")
WHICH_MODEL = Phrase("编号或模型名称", "Number or model name")
MODEL_NAME = Phrase("模型名称", "Model name")
MODELS = Phrase("模型：", "Models:")
MORE_MODELS = Phrase(
    "  另有 {count} 个，输入名称的一部分来查找",
    "  {count} more: type a part of the name to find them",
)
NOT_LISTED = Phrase(
    "  列表里没有 {model}，相近的有下面这些；再输入一次就用它",
    "  {model} is not listed, but these are similar; type it again to use it anyway",
)
WHICH_PART = Phrase(
    "改哪一项：1 接口地址，2 密钥，3 模型，0 不改，继续",
    "What to change: 1 base URL, 2 key, 3 model, 0 nothing",
)
CALLED = Phrase("机器人的名字，喊它就会回应", "The bot's name; it answers when called by it")
CHARACTER = Phrase(
    "人设：一句话，或文件名（用 Docker 时放在 data/ 里），可留空",
    "Persona: a sentence, or a file (with Docker in data/); may be empty",
)
OWNERS = Phrase("主人的 QQ 号（就是你自己的）", "Your own QQ number (owner)")
GROUPS = Phrase("允许的群号，留空为全部", "Groups it may answer in; empty for all")
BOT_ACCOUNT = Phrase("机器人的 QQ 号，可留空", "The bot's QQ number; may be empty")
HOW_TO_RUN = Phrase("怎么运行：1 用 Docker，2 不用", "How to run it: 1 with Docker, 2 without")
CONSOLE_AT = Phrase(
    "网页控制台的端口，如 8090，留空为不开", "Port of the web console, e.g. 8090; empty for none"
)

A_NUMBER = Phrase("是数字，不是名称", "is a number, not a name")
AS_SPELLED = Phrase("按服务商的写法输入模型名称", "Type the name as the service spells it")
NOT_IN_LIST = Phrase("列表里没有这个编号", "is not in the list")
NUMBER_OR_NAME = Phrase(
    "输入 1 到 {last} 的编号，或模型名称", "Type a number from 1 to {last}, or a name"
)
NONE_OF_THEM = Phrase("没有这个选择", "is not one of the choices")
ZERO_TO_THREE = Phrase("请输入 0 到 3", "Type a number from 0 to 3")
ONE_OR_TWO = Phrase("请输入 1 或 2", "Type 1 or 2")
NO_FILE = Phrase("没有这个文件", "does not exist")
FILE_OR_SENTENCE = Phrase("输入已有的文件名，或一句话", "Name an existing file, or type a sentence")
HAS_QUOTES = Phrase("有引号、反斜杠或换行", "has a quote, a backslash or a line break")
WITHOUT = Phrase("去掉它再输入", "Type it without")
NEEDED = Phrase("这一项不能留空", "cannot be empty")
OR_LEAVE = Phrase("请输入，或按 Ctrl-C 离开", "Type it, or leave with Ctrl-C")
CATALOGUE.register(__name__, globals())


def ask_model(
    terminal: Terminal, answers: Mapping[str, str], list_models: ListModels
) -> dict[str, str]:
    """The answers with the model's base URL, key and name."""
    terminal.tell(SERVICES.fill())
    for number, vendor in enumerate(VENDORS, 1):
        row = f"{number:>2}  {vendor.name:<12}"
        terminal.tell(VENDOR_LINE.fill(row=row, title=vendor.title, url=vendor.base_url))
    old = answers.get("LLM_BASE_URL", "")
    found = ask_part(terminal, answers, "LLM_BASE_URL", list_models)
    if found["LLM_BASE_URL"] != old:  # another service's key and model do not apply
        found |= {"LLM_API_KEY": "", "LLM_MODEL": ""}
    found = ask_part(terminal, found, "LLM_API_KEY", list_models)
    return ask_part(terminal, found, "LLM_MODEL", list_models)


def ask_part(
    terminal: Terminal, answers: Mapping[str, str], name: str, list_models: ListModels
) -> dict[str, str]:
    """The answers with one of the model's three asked for again; the present one is the default."""
    old = answers.get(name, "")
    match name:
        case "LLM_BASE_URL":
            default = old or VENDORS[0].name
            found = _until_right(
                lambda: terminal.ask(WHICH_SERVICE.fill(), default=default), _base_url, terminal
            )
        case "LLM_API_KEY":
            found = _ask_key(terminal, answers["LLM_BASE_URL"], old)
        case _:
            key = SecretStr(answers.get("LLM_API_KEY", ""))
            models = list_models(Endpoint(answers["LLM_BASE_URL"], key, ""))
            found = _ask_model_name(terminal, old, [one for one in models if can_be_in_env(one)])
    return {**answers, name: found}


def _ask_model_name(terminal: Terminal, old: str, models: Sequence[str]) -> str:
    """A model by its number in the list, or any name; a part of a name lists the matches."""
    shown = _show_models(terminal, models)
    default = old or (models[0] if len(models) == 1 else "")
    refused = ""
    while True:
        answer = _until_right(
            _asking(terminal, WHICH_MODEL if shown else MODEL_NAME, default),
            partial(_model_name, shown=shown),
            terminal,
        )
        near = [name for name in models if answer.casefold() in name.casefold()]
        if not near or answer in models or answer in {old, refused}:
            return answer
        terminal.tell(NOT_LISTED.fill(model=answer))
        shown, refused = _show_models(terminal, near), answer


def _asking(terminal: Terminal, question: Phrase, default: str) -> Callable[[], str]:
    return lambda: terminal.ask(question.fill(), default=default)


def _show_models(terminal: Terminal, models: Sequence[str]) -> Sequence[str]:
    """Show the first models, numbered from 1; returns those shown."""
    shown = models[:SHOWN]
    if shown:
        terminal.tell(MODELS.fill())
    for number, name in enumerate(shown, 1):
        terminal.tell(f"  {number:>2}  {name}")
    if more := len(models) - len(shown):
        terminal.tell(MORE_MODELS.fill(count=more))
    return shown


def _model_name(text: str, shown: Sequence[str]) -> str:
    number = values.to_half_width(text)
    if not number.isdecimal():
        return _writable(_something(text))
    if not shown:
        raise values.Wrong(A_NUMBER.fill(), AS_SPELLED.fill())
    chosen = {str(place): name for place, name in enumerate(shown, 1)}.get(number)
    if chosen is None:
        raise values.Wrong(NOT_IN_LIST.fill(), NUMBER_OR_NAME.fill(last=len(shown)))
    return chosen


def ask_which(terminal: Terminal, suggested: str) -> str:
    """The name of the one of the model's three settings to answer again; empty to keep all."""
    number = next((number for number, name in PARTS.items() if name == suggested), "0")
    return PARTS[_until_right(_asking(terminal, WHICH_PART, number), _part, terminal)]


def ask_character(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with the bot's name and its persona: a file or a sentence."""
    name = _until_right(
        _asking(terminal, CALLED, answers.get("BOT_NAME") or BOT_NAME), _writable, terminal
    )
    old = answers.get("BOT_PERSONA") or answers.get("SYSTEM_PROMPT", "")
    who = _until_right(_asking(terminal, CHARACTER, old), _persona, terminal)
    is_file = _names_a_file(who)
    persona = {"BOT_PERSONA": who if is_file else "", "SYSTEM_PROMPT": "" if is_file else who}
    return {**answers, "BOT_NAME": name, **persona}


def ask_people(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with owners, groups and the bot's account."""
    asked = {"BOT_OWNERS": OWNERS, "BOT_GROUPS": GROUPS, ACCOUNT: BOT_ACCOUNT}
    found = {
        name: _until_right(_asking(terminal, question, answers.get(name, "")), _numbers, terminal)
        for name, question in asked.items()
    }
    return {**answers, **found}


def ask_docker(terminal: Terminal, *, likely: bool) -> bool:
    """Whether the bot and NapCat will run in Docker."""
    ask = _asking(terminal, HOW_TO_RUN, "1" if likely else "2")
    return _until_right(ask, _one_or_two, terminal) == "1"


def ask_console(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with the port of the console, empty for none."""
    ask = _asking(terminal, CONSOLE_AT, answers.get(PORT, ""))
    return {**answers, PORT: _until_right(ask, _port, terminal)}


def _ask_key(terminal: Terminal, base_url: str, old: str) -> str:
    vendor = vendor_of(base_url)
    needed = bool(vendor and vendor.needs_key)
    if vendor and vendor.page:
        terminal.tell(WHERE_KEYS_ARE.fill(page=vendor.page))
    question = KEY_KEPT if old else KEY_HIDDEN if needed else KEY_OPTIONAL
    return _until_right(
        lambda: terminal.ask_secret(question.fill()) or old,
        _key if needed else _optional_key,
        terminal,
    )


def _until_right(ask: Callable[[], str], read: Callable[[str], str], terminal: Terminal) -> str:
    """Ask until the answer is valid. Quotation marks around it are removed."""
    while True:
        try:
            return read(values.check_quotes(values.without_quotes(ask())))
        except values.Wrong as wrong:
            terminal.tell(AGAIN.fill(what=wrong.what, fix=wrong.fix))


def _part(text: str) -> str:
    number = values.to_half_width(text)
    if number not in PARTS:
        raise values.Wrong(NONE_OF_THEM.fill(), ZERO_TO_THREE.fill())
    return number


def _one_or_two(text: str) -> str:
    number = values.to_half_width(text)
    if number not in {"1", "2"}:
        raise values.Wrong(NONE_OF_THEM.fill(), ONE_OR_TWO.fill())
    return number


def _port(text: str) -> str:
    return str(values.Whole(1, 65535)(text)) if text else ""


def _persona(text: str) -> str:
    if _names_a_file(text) and not find_persona(Path(text)).is_file():
        raise values.Wrong(NO_FILE.fill(), FILE_OR_SENTENCE.fill())
    return _writable(text)


def _names_a_file(text: str) -> bool:
    return text.lower().endswith((".md", ".txt"))


def _writable(text: str) -> str:
    if not can_be_in_env(text):
        raise values.Wrong(HAS_QUOTES.fill(), WITHOUT.fill())
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
        raise values.Wrong(NEEDED.fill(), OR_LEAVE.fill())
    return text
