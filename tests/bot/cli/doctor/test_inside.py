from __future__ import annotations

from pathlib import Path

from aiohttp import web

from bot.cli.doctor.run import check_running_bot
from bot.core.console_views import Finding
from config.settings import Settings
from frostagent.clock import RandomIds, SystemClock
from frostagent.types.messages import Usage
from tests.bot.cli.doctor.surroundings import answering, healthy, settings_of
from tests.ports import free_port

TOOL = """
from pathlib import Path

Path(__file__).with_name("ran").touch()
"""


async def look(settings: Settings) -> tuple[tuple[Finding, ...], list[tuple[str, Usage]]]:
    """What the doctor says, and which model took what."""
    charged: list[tuple[str, Usage]] = []
    found = await check_running_bot(
        settings,
        env_file=None,
        clock=SystemClock(),
        ids=RandomIds(),
        charge=lambda model, usage: charged.append((model, usage)),
    )
    return found, charged


async def test_all_is_looked_at_but_the_ports_and_the_files_of_tools(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tool.py").write_text(TOOL)
    async with healthy(tmp_path) as around:
        found, charged = await look(around.settings(TOOLS_DIR=str(tmp_path / "mine"), CONSOLE_PROXY="10.0.0.1"))
    assert [one.check for one in found] == [
        *("token", "console proxy", "privacy", "data folder", "data folder", "store", "clock"),
        *("model", "model tools", "coder", "weather", "search", "versions", "documents"),
        *("onebot host", "onebot", "account"),
    ]
    assert {one.verdict for one in found} == {"ok"}
    assert [one.said_zh for one in found if one.check in {"token", "clock"}] == [
        "有 16 位",
        "和模型的服务器一致",
    ]
    assert not (tmp_path / "mine" / "ran").exists()
    assert [model for model, _ in charged] == [around.model.name] * 2
    assert all(usage.prompt for _, usage in charged)


async def test_what_models_take_has_its_price_and_those_that_do_not_answer_take_nothing(tmp_path: Path) -> None:
    async with healthy(tmp_path) as around:
        (prices := tmp_path / "prices.toml").write_text(
            f'[[model]]\nname = "{around.model.name}"\ninput = 1.0\noutput = 2.0\n'
        )
        _, charged = await look(around.settings(LLM_PRICES=str(prices)))
        assert [bool(usage.cost) for _, usage in charged] == [True, True]
        prices.write_text("[[model]]")  # broken since the bot was started
        found, charged = await look(around.settings(LLM_PRICES=str(prices)))
        assert [one.check for one in found if one.verdict == "problem"][:1] == ["prices"]
        assert [usage.cost for _, usage in charged] == [0.0, 0.0]  # ours, in the table that comes with the bot
        refusal = {"error": {"message": "no"}}
        async with answering(lambda _: web.json_response(refusal, status=401)) as root:
            found, charged = await look(around.settings(LLM_BASE_URL=f"{root}/v1"))
    (problem,) = (one for one in found if one.verdict == "problem")
    assert (problem.check, "Copy the key" in problem.fix, charged) == ("model", True, [])


async def test_a_worker_looks_at_no_onebot_server(tmp_path: Path) -> None:
    async with healthy(tmp_path) as around:
        settings = settings_of(
            around.environ
            | {
                "BOT_ROLE": "worker",
                "BROKER_URL": f"amqp://frost:frost@127.0.0.1:{free_port()}/",
                "STORE_URL": "postgresql://frost:frost@127.0.0.1:9/frost",
            }
        )
        found, _ = await look(settings)
    checks = [one.check for one in found]
    assert "broker" in checks
    assert not [check for check in checks if "onebot" in check]
