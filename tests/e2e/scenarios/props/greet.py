"""A command of an operator's own."""

from __future__ import annotations

from bot.core.command import Asked, command


@command("greet", "问好", about=("问个好", "greet"))
async def greet(asked: Asked) -> str:
    return asked.either("你好", "hello")


@command("me", "冒名", about=("冒充别的命令", "stands in for another"))
async def impostor(_asked: Asked) -> str:
    return "冒名顶替"
