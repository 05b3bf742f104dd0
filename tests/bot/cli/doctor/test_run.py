"""The whole of it: all well, then one thing broken after the other; and as a process."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.simulator.server import Simulator
from adapters.simulator.world import demo_world
from adapters.web.file_offers import FileOffers
from bot.cli.checks import Check, Outcome, ok
from bot.cli.doctor.run import Probe, diagnose, run_probes
from config.sources import read_env_file
from frostagent.clock import RandomIds, SystemClock
from tests.bot.cli.commands import PATIENCE, command, run
from tests.bot.cli.doctor.surroundings import TOKEN, Surroundings, answering, healthy, settings_of, told
from tests.bot.cli.doctor.test_media import web_server
from tests.ports import free_port

ROOT = Path(__file__).parents[4]


@pytest.fixture
async def around(tmp_path: Path) -> AsyncIterator[Surroundings]:
    async with healthy(tmp_path) as surroundings:
        yield surroundings


async def look(around: Surroundings, *, send_image: bool = False, **changed: str) -> list[Check]:
    environ = around.environ | changed
    return await diagnose(environ=environ, env_file=None, clock=SystemClock(), ids=RandomIds(), send_image=send_image)


async def test_all_is_well(around: Surroundings) -> None:
    checks = await look(around)
    assert [check for check in checks if check.outcome is not Outcome.OK] == []
    assert [check.name for check in checks] == [
        *("settings", "token", "privacy", "data folder", "data folder", "store", "clock"),
        *("model", "model tools", "coder"),
        *("weather", "search", "versions", "documents", "tools", "web port", "onebot host", "onebot", "account"),
    ]


async def test_reverse_mode_before_the_bot_has_started_is_well(around: Surroundings) -> None:
    checks = await look(around, ONEBOT_MODE="reverse", ONEBOT_URL="", ONEBOT_PORT=str(free_port()))
    assert {check.outcome for check in checks} == {Outcome.OK}
    assert checks[-1].name == "onebot port"


async def test_a_picture_is_sent_where_it_is_asked_for(around: Surroundings) -> None:
    checks = await look(around, send_image=True)
    assert {check.outcome for check in checks} == {Outcome.OK}
    assert checks[-1].name == "picture"
    assert len(around.simulator.sent) == 1


async def test_in_reverse_mode_the_picture_waits_for_the_server_to_come(around: Surroundings) -> None:
    port = free_port()
    here = {"ONEBOT_MODE": "reverse", "ONEBOT_HOST": "127.0.0.1", "ONEBOT_PORT": str(port), "ONEBOT_URL": ""}
    async with Simulator(demo_world(), reconnect=0.05) as simulator:
        simulator.dial(f"ws://127.0.0.1:{port}/", token=TOKEN)
        checks = await look(around, send_image=True, **here)
    assert {check.outcome for check in checks} == {Outcome.OK}
    assert [check.name for check in checks[-4:]] == ["onebot port", "onebot", "account", "picture"]


async def test_a_wrong_token_is_one_problem(around: Surroundings) -> None:
    line = told(await look(around, ONEBOT_ACCESS_TOKEN=TOKEN[::-1]))
    assert "ONEBOT_ACCESS_TOKEN" in line
    assert TOKEN[::-1] not in line


async def test_a_wrong_key_is_one_problem_that_does_not_show_it(around: Surroundings) -> None:
    refusal = {"error": {"message": f"no such key: {around.environ['LLM_API_KEY']}"}}
    async with answering(lambda _: web.json_response(refusal, status=401)) as root:
        checks = await look(around, LLM_BASE_URL=f"{root}/v1")
    assert "Copy the key" in told(checks)
    assert around.environ["LLM_API_KEY"] not in str(checks)


async def test_no_model_is_one_problem(around: Surroundings) -> None:
    assert "base URL" in told(await look(around, LLM_BASE_URL="http://127.0.0.1:9/v1"))


async def test_a_model_that_is_not_set_is_one_problem(around: Surroundings) -> None:
    assert told(await look(around, LLM_MODEL="")).startswith("settings: LLM_MODEL is not set")


async def test_a_port_that_is_taken_is_one_problem(around: Surroundings) -> None:
    async with answering(lambda _: web.Response()) as other:
        line = told(await look(around, ONEBOT_MODE="reverse", ONEBOT_URL="", ONEBOT_PORT=other.rpartition(":")[2]))
    assert "choose another ONEBOT_PORT" in line


async def test_a_data_folder_that_cannot_be_is_one_problem(around: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    line = told(await look(around, STORE_URL=f"sqlite:///{tmp_path}/file/frostagent.db"))
    assert line.startswith("data folder: ")
    assert "chown" in line


async def test_a_onebot_server_that_is_away_is_one_problem(around: Surroundings) -> None:
    await around.simulator.sockets.drop()
    assert "Start the OneBot server" in told(await look(around))


async def test_a_onebot_server_that_is_not_there_is_one_problem(around: Surroundings) -> None:
    assert "Start the OneBot server" in told(await look(around, ONEBOT_URL="ws://127.0.0.1:9"))


async def test_an_account_offline_is_one_problem(around: Surroundings) -> None:
    around.simulator.world.online = False
    assert "Log the account in again" in told(await look(around))


async def test_sources_out_of_reach_are_warnings(around: Surroundings) -> None:
    environ = json.dumps(dict.fromkeys(json.loads(around.environ["TOOLS_MIRRORS"]), "http://127.0.0.1:9"))
    checks = await look(around, TOOLS_MIRRORS=environ)
    assert [check.name for check in checks if check.outcome is Outcome.WARNING] == ["weather", "versions"]
    assert not any(check.outcome is Outcome.PROBLEM for check in checks)


async def test_where_large_files_are_fetched_is_looked_at_while_the_bot_runs(around: Surroundings) -> None:
    url = f"http://127.0.0.1:{around.environ['WEB_PORT']}/media"
    assert "media url" not in {check.name for check in await look(around, MEDIA_URL=url)}
    async with web_server(settings_of(around.environ).web_port, FileOffers(url)):
        checks = await look(around, MEDIA_URL=url)
    assert ok("media url", f"{url} leads to the bot") in checks


# --- what breaks or hangs ---------------------------------------------------------------------------


async def test_a_check_that_breaks_or_hangs_is_a_problem_of_its_own() -> None:
    async def fine() -> Iterable[Check]:
        return [ok("fine", "is")]

    async def breaks() -> Iterable[Check]:
        raise RuntimeError("no luck")

    async def hangs() -> Iterable[Check]:
        await asyncio.Event().wait()
        return []

    async with asyncio.timeout(30):
        checks = await run_probes([Probe("a", breaks), Probe("b", hangs), Probe("c", fine)], deadline=0.05)
    broken, hung, good = checks
    assert (broken.name, broken.outcome) == ("a", Outcome.PROBLEM)
    assert "RuntimeError: no luck" in broken.said
    assert (hung.name, hung.outcome) == ("b", Outcome.PROBLEM)
    assert good == ok("fine", "is")


# --- as a process -----------------------------------------------------------------------------------


async def typed(folder: Path, *words: str, environ: Mapping[str, str]) -> tuple[int, str, str]:
    """A command to its end, while what it asks lives in this loop: code, standard output, standard error."""
    done = await asyncio.to_thread(run, folder, *words, **environ)
    return done.returncode, done.stdout, done.stderr


async def test_a_healthy_bot_is_exit_code_0(around: Surroundings, tmp_path: Path) -> None:
    code, out, err = await typed(tmp_path, "doctor", environ=around.environ)
    assert (code, err) == (0, ""), out
    assert all(line.startswith("ok ") for line in out.splitlines())


async def test_a_problem_is_exit_code_1_and_json_can_be_read(around: Surroundings, tmp_path: Path) -> None:
    around.simulator.world.online = False
    code, out, err = await typed(tmp_path, "doctor", "--json", environ=around.environ)
    assert (code, err) == (1, ""), out
    found: list[dict[str, Any]] = json.loads(out)
    assert all(set(check) == {"check", "verdict", "said", "mend"} for check in found)
    assert [check["check"] for check in found if check["verdict"] == "problem"] == ["account"]


@pytest.mark.system
async def test_a_read_only_data_folder_is_told_with_its_mend(around: Surroundings, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    defaults = {name: text for name, text in around.environ.items() if name not in {"MEDIA_DIR", "STORE_URL"}}
    words, env, _ = command(tmp_path, "doctor", "--json", **defaults)
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("the superuser writes everywhere, and there is no setpriv to make it an ordinary account")
        words = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override", *words]
    done = await asyncio.to_thread(
        subprocess.run, words, env=env, cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (1, b""), done.stdout
    troubles = [check for check in json.loads(done.stdout) if check["verdict"] == "problem"]
    assert {check["check"] for check in troubles} == {"data folder"}
    for problem in troubles:
        assert "Permission denied" in problem["said"]
        assert "chown" in problem["mend"]


async def test_after_setup_without_a_terminal_all_is_well(around: Surroundings, tmp_path: Path) -> None:
    shutil.copy(ROOT / ".env.example", tmp_path)
    options = ("--base-url", around.model.base_url, "--model", around.model.name, "--owner", "20001")
    code, _, told = await typed(tmp_path, "setup", "--non-interactive", *options, environ={})
    assert code == 0, told
    token = next(line.value for line in read_env_file(tmp_path / ".env") if line.name == "ONEBOT_ACCESS_TOKEN")
    async with Simulator(demo_world(), token=token) as simulator:
        here = {name: around.environ[name] for name in ("WEB_PORT", "TOOLS_MIRRORS")}
        here |= {"ONEBOT_MODE": "forward", "ONEBOT_URL": await simulator.serve()}
        code, out, err = await typed(tmp_path, "doctor", "--send-image", environ=here)
        (sent,) = simulator.sent
    assert (code, err) == (0, ""), out
    assert all(line.startswith("ok ") for line in out.splitlines())
    assert sent.user_id == 20001
