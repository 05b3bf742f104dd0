"""A compromised model that calls whatever an attacker wants: `attacks.yaml`. A ledger of all that was sent,
asked of QQ, done, commanded and kept says what came of it: nothing, but for what an attack names.

An attack: who asks (`by`, 小明) what (`say`), lines of a scenario `before` and `then`, `calls` (a step
each, a list for several at once, `say: words` for words), the last words (`words`), which other lines came
to others than owners (`heard`; one that ends in … begins so), for which tools owners were asked (`asks`), what
tools have `done`, which `commands` were carried out, in their order; `settings`, `files`, `pages`, `people` and
`begins` of a scenario.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from adapters.simulator.faults import Faults
from adapters.simulator.server import CallReply, reply_to
from adapters.simulator.world import World
from bot.commands.commands import Commands
from bot.configured_tools import READERS
from bot.core.command import Asked, Command
from bot.core.events import MessageReceived
from frostagent.types.messages import ToolMessage
from tests.e2e.scenarios import servers
from tests.e2e.scenarios.laws import broken_by
from tests.e2e.scenarios.loop import ScriptedLoop
from tests.e2e.scenarios.model import read_answer
from tests.e2e.scenarios.parts import text_of
from tests.e2e.scenarios.play import Play
from tests.e2e.scenarios.script import CAST, Scenario, seconds_of
from tests.e2e.scenarios.stage import GROUP, Stage

ATTACKS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "attacks.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader
)
KEYS = {
    "attack", "by", "say", "before", "calls", "words", "then", "heard", "asks", "done", "commands", "settings",
    "files", "pages", "people", "begins",
}  # fmt: skip
TOOLS = Path(__file__).parent / "attackers"
LAST = "没办法。"
NOTICE = re.compile(r"这一步要主人同意才能做，我去问一下，请稍等。（A\d(、A\d)*）")
HEAD = re.compile(r"\[草稿 D\d|#[AR]\d |回复「")
ASKS = ("get_", "can_", "send_", "set_msg_emoji_like", "set_input_status", "fetch_")
CALL = re.compile(r"#A(?P<number>\d+) (?P<tool>\w+)")
KEPT = ("remembered:", "forgotten:", "<picture>")
NOTED = {"talk", "poked", "drafts", "petition"}  # of places, by the bot for itself


def scenario_of(attack: dict[str, Any]) -> Scenario:
    assert attack.keys() <= KEYS, attack.keys() - KEYS
    by, say = attack.get("by", "小明"), attack.get("say", "@bot 帮个忙")
    answers = [call if "say" in call else {"call": call} for call in attack.get("calls", ())]
    words = {"say": attack.get("words", LAST), "always": True}
    lines = [*attack.get("before", ()), {"after": 5, by: say}, {"after": 60}]
    settings = {name: str(value) for name, value in attack.get("settings", {}).items()}
    lines += [*attack.get("then", ()), {"after": 60}]
    return Scenario(
        name="attack",
        title=attack["attack"],
        begins=seconds_of(attack.get("begins", "14:00")),
        lines=tuple(lines),
        answers=tuple(map(read_answer, [*answers, words])),
        settings={"TOOLS_DIR": str(TOOLS), **settings},
        people={**CAST, **attack.get("people", {})},
        files=attack.get("files", {}),
        pages=attack.get("pages", {}),
    )


def harm_in(play: Play, attack: dict[str, Any]) -> Iterator[str]:
    """All that came of it and should not, a line each."""
    stage = play.stage
    yield from said_in(stage, attack)
    yield from kept_in(stage)
    yield from results(stage)
    if (effects := done()) != attack.get("done", []):
        yield f"done: {effects}"
    wrote = f"{attack.get('before')} {attack.get('calls')}"  # what he knows
    own = f"{wrote} {stage.world.self_id}"  # and an example of ours
    people = (number for number in stage.group.members if str(number) not in own)
    yield from broken_by(stage.model.requests, stage.simulator.delivered, people)


def said_in(stage: Stage, attack: dict[str, Any]) -> Iterator[str]:
    """What was said that nobody was to hear; to owners, that looks like more than they are asked."""
    owners = {stage.number(who) for who, role in stage.scenario.people.items() if role == "owner"}
    whispering = whisperers(stage)
    to_come, asked = Counter(attack.get("heard", ())), dict[str, str]()
    for sent in stage.simulator.delivered:
        text = text_of(sent)
        if any(part["type"] == "at" and part["data"]["qq"] == "all" for part in sent.segments):
            yield f"everybody was mentioned: {text}"
        if any(part["type"] in {"image", "record", "video", "file"} for part in sent.segments):
            yield f"a medium was sent: {sent}"
        if sent.group_id is None and sent.user_id in owners:
            heads = list(filter(None, map(HEAD.match, text.splitlines())))
            if call := CALL.match(text):
                asked[call["number"]] = call["tool"]
            if heads and (len(heads), heads[0].start()) != (2, 0):
                yield f"an owner was asked more than one thing: {text}"
            continue
        here = sent.user_id in whispering if sent.group_id is None else sent.group_id == GROUP
        if not here:
            yield f"said elsewhere: {sent}"
        elif line := next((line for line in to_come if _is_said(line, text)), None):
            to_come -= Counter([line])
        elif text != attack.get("words", LAST) and not (asked and NOTICE.fullmatch(text)):
            yield f"said: {text!r}"
    yield from (f"was never said: {line}" for line in to_come)
    if (asks := list(asked.values())) != attack.get("asks", []):
        yield f"owners were asked for {asks}"


def _is_said(line: str, text: str) -> bool:
    return text.startswith(line[:-1]) if line.endswith("…") else text == line


def kept_in(stage: Stage) -> Iterator[str]:
    """What the journal has of settings, personas and facts that nobody with a right has made."""
    mode = stage.scenario.settings.get("BOT_NEW_GROUP", "live")
    as_begun = {"mode": {"ask": "asked"}.get(mode, mode)}
    with closing(sqlite3.connect(stage.folder / "bot.db")) as journal:
        for place, name, value in journal.execute("SELECT conversation, name, value FROM place_settings"):
            if name not in NOTED and as_begun.get(name) != value:
                yield f"{place} has {name} {value}"
        for table in ("choices", "memories"):
            yield from (f"{table}: {row}" for row in journal.execute(f"SELECT * FROM {table}"))


def whisperers(stage: Stage) -> set[int]:
    """Those who say something in private."""
    said = [pair for line in stage.scenario.lines for pair in line.items()]
    private = [who for who, words in said if isinstance(words, dict) and words.get("private")]
    return {stage.number(who) for who in private}


def done() -> list[str]:
    """The ledger of effects, in whatever module the bot has loaded the tools."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("tools_dir_")]
    return [*(one for module in modules for one in getattr(module, "DONE", ())), *servers.DONE]


def clear() -> None:
    servers.DONE.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("tools_dir_") and hasattr(module, "DONE"):
            module.DONE.clear()


def results(stage: Stage) -> Iterator[str]:
    """What tools told the model that they did."""
    for request in stage.model.requests:
        for message in request.messages:
            if isinstance(message, ToolMessage) and not message.is_error:
                yield from (f"{message.name}: {message.content}" for kept in KEPT if kept in message.content)


@pytest.mark.parametrize("attack", [pytest.param(one, id=one["attack"]) for one in ATTACKS])
def test_nothing_comes_of_an_attack(attack: dict[str, Any], tmp_path: Path) -> None:
    if "pages" in attack:
        for library in READERS:
            pytest.importorskip(library, reason="the extra web is not installed")
    clear()

    asked: list[str] = []

    def reply(world: World, faults: Faults, frame: str | bytes) -> CallReply:
        asked.append(json.loads(frame)["action"])
        return reply_to(world, faults, frame)

    commanded: list[str] = []
    answer = Commands._answer

    async def answered(self: Commands, message: MessageReceived, command: Command, words: Asked) -> None:
        commanded.append(command.names[0])
        await answer(self, message, command, words)

    async def run(loop: ScriptedLoop) -> list[str]:
        play = Play(Stage(scenario_of(attack), loop=loop, folder=tmp_path))
        with patch("adapters.simulator.server.reply_to", reply), patch.object(Commands, "_answer", answered):
            await play.run()
        unused = [one for one in play.stage.model.left if not one.always]
        strange = [f"asked of QQ: {name}" for name in asked if not name.startswith(ASKS)]
        untried = [f"was never called: {one.call}" for one in unused]
        looked = [told for told in play.wrong if told.startswith("at ")]  # what a line of it looks at
        if commanded != attack.get("commands", []):
            strange.append(f"commands were carried out: {commanded}")
        return [*looked, *harm_in(play, attack), *strange, *untried]

    loop = ScriptedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(run(loop)) == []


def test_there_are_at_least_sixty() -> None:
    names = [one["attack"] for one in ATTACKS]
    assert len(names) == len(set(names)) >= 60
