"""What is asked, one thing after the other, each until it is right; what is known already is offered again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import SecretStr

from bot.setup.answers import ACCOUNT
from bot.setup.terminal import Terminal
from bot.setup.vendors import VENDORS, find_vendor, vendor_of
from config import values


def ask_model(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with a model in them: base url, key, name."""
    terminal.tell("模型服务 Model service:")
    for number, vendor in enumerate(VENDORS, 1):
        terminal.tell(f"  {number:>2}  {vendor.name:<12} {vendor.title}  {vendor.base_url}")
    old = answers.get("LLM_BASE_URL", "")
    base_url = _until_right(
        lambda: terminal.ask("编号、名称或地址 Number, name or base url", default=old or VENDORS[0].name),
        _base_url,
        terminal,
    )
    # What is known of another service is no answer for this one.
    kept = answers if base_url == old else {}
    key = _ask_key(terminal, base_url, kept.get("LLM_API_KEY", ""))
    model = _until_right(
        lambda: terminal.ask("模型名称 Model", default=kept.get("LLM_MODEL", "")), _something, terminal
    )
    return {**answers, "LLM_BASE_URL": base_url, "LLM_API_KEY": key, "LLM_MODEL": model}


def ask_people(terminal: Terminal, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers with who the bot listens to."""
    asked = {
        "BOT_OWNERS": "主人的 QQ 号 Your own QQ number (owner)",
        "BOT_GROUPS": "允许的群号，留空为全部 Groups, empty for all",
        ACCOUNT: "机器人的 QQ 号，可留空 The bot's QQ number, may be empty",
    }
    found = {name: _ask_numbers(terminal, question, answers.get(name, "")) for name, question in asked.items()}
    return {**answers, **found}


def _ask_numbers(terminal: Terminal, question: str, old: str) -> str:
    return _until_right(lambda: terminal.ask(question, default=old), _numbers, terminal)


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
    return _until_right(lambda: terminal.ask_secret(question) or old, _key if needed else _optional_key, terminal)


def _until_right(ask: Callable[[], str], read: Callable[[str], str], terminal: Terminal) -> str:
    while True:
        try:
            return read(ask())
        except values.Wrong as wrong:
            terminal.tell(f"  {wrong.what}. {wrong.mend}.")


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
