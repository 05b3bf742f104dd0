"""The questions of `setup`, one after the other, each until it is answered well; what is known
already is offered again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import SecretStr

from bot.cli.setup.answers import ACCOUNT
from bot.cli.setup.env_file import holds
from bot.cli.setup.terminal import Terminal
from bot.cli.setup.vendors import VENDORS, find_vendor, vendor_of
from config import values

BOT_NAME = "FrostAgent"
BASE_URL = "请填写以 http:// 或 https:// 开头的地址"
KEY = "请重新复制密钥，不要带 Bearer、引号或空格"
NUMBERS = "QQ 号和群号只有数字，多个用逗号隔开"
NEEDED = "这一项不能留空"
PERSONA = "请输入一句话（不含引号、反斜杠），或一个已有的文件名"
WRITABLE = "不能含引号、反斜杠或换行"
PARTS = {"1": "LLM_BASE_URL", "2": "LLM_API_KEY", "3": "LLM_MODEL", "0": ""}


def ask_model(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with a model in them: base url, key, name."""
    terminal.tell("模型服务 Model service:")
    for number, vendor in enumerate(VENDORS, 1):
        terminal.tell(f"  {number:>2}  {vendor.name:<12} {vendor.title}  {vendor.base_url}")
    old = answers.get("LLM_BASE_URL", "")
    found = ask_part(terminal, answers, "LLM_BASE_URL")
    if found["LLM_BASE_URL"] != old:  # what is known of another service is no answer for this one
        found |= {"LLM_API_KEY": "", "LLM_MODEL": ""}
    return ask_part(terminal, ask_part(terminal, found, "LLM_API_KEY"), "LLM_MODEL")


def ask_part(terminal: Terminal, answers: Mapping[str, str], name: str) -> dict[str, str]:
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
            found = _until_right(
                lambda: terminal.ask("模型名称 Model", default=old), _something, terminal, NEEDED
            )
    return {**answers, name: found}


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
    if text not in PARTS:
        raise values.Wrong("is none of them", "Type a number from 0 to 3")
    return text


def _persona(text: str) -> str:
    if _names_a_file(text) and not Path(text).is_file():
        raise values.Wrong("is not there", "Name a file that is, or type a sentence")
    return _writable(text)


def _names_a_file(text: str) -> bool:
    return text.lower().endswith((".md", ".txt"))


def _writable(text: str) -> str:
    if not holds(text):
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
