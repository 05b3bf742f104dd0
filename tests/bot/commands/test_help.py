from __future__ import annotations

from bot.commands.help import help_command, stop_command
from bot.core.command import Asked, command
from tests.bot.commands.typed import OWNER, lines


@command("reset", "重来", about=("重新开始", "begin anew"), audience="group_admin")
async def reset(_asked: Asked) -> str:
    return ""


@command("groups", "群列表", about=("哪些群", "which groups"), audience="owner")
async def groups(_asked: Asked) -> str:
    return ""


async def test_only_what_the_asker_may_use_is_told_in_the_language_that_is_spoken() -> None:
    tell = help_command([reset, groups])
    note = "不带斜杠就是和我聊天。"
    assert await lines(tell) == ["/帮助 能用的命令", note]
    assert await lines(tell, role="admin") == ["/帮助 能用的命令", "/重来 重新开始", note]
    english = ["/help the commands you can use", "/reset begin anew", "/groups which groups"]
    assert (await lines(tell, user=OWNER, chinese=False))[:-1] == english


async def test_stop_is_told_by_help_and_where_nothing_goes_on_no_model_is_asked_what_it_means() -> None:
    assert "/stop 让我停下正在做的事" in await lines(help_command([stop_command()]))
    assert await lines(stop_command(), chinese=False) == ["There is nothing to stop."]
