"""A command of an operator's own."""

from __future__ import annotations

from bot.domain.command import Asked, command


@command("greet", "问好", about=("问个好", "greet"))
async def greet(asked: Asked) -> str:
    return asked.either("你好", "hello")
