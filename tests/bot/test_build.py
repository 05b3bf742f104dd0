"""What the whole bot is built of, as the settings have it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from adapters.storage.store import SqlStore
from bot.app import open_service
from bot.budget.spending import Spending
from bot.build import data_folder, owners_language
from bot.core.journal import Entry, MessageObserved, TurnClosed, TurnOpened, UsageReserved
from bot.core.language import Language
from bot.prompt.render import history_note
from bot.prompt.wording_zh import ZH
from config.settings import Settings
from frostagent.types.messages import AssistantMessage, Usage, UserMessage
from frostagent.types.runs import Stop
from frostagent.types.traits import Audience
from tests.adapters.storage.conftest import opened
from tests.bot.test_app import reverse, settings
from tests.cases import each_case
from tests.fakes import GROUP, said


@each_case(("url", "folder"), [("sqlite:///there/frost.db", "there"), ("postgresql://me@db/frost", "data/media")])
def test_the_disk_that_counts_is_the_journals_or_where_a_server_has_that_the_medias(url: str, folder: str) -> None:
    assert data_folder(Settings.model_validate({"store_url": url})) == Path(folder)


@each_case(("chosen", "language"), [("", Language.CHINESE), ("zh", Language.CHINESE), ("en", Language.ENGLISH)])
def test_owners_read_chinese_unless_english_is_set(chosen: Any, language: Language) -> None:
    assert owners_language(Settings(bot_language=chosen)) is language


# --- through the whole bot ------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of a service is there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_commands_are_answered_without_a_model_and_no_prompt_tells_of_them(
    folder: Path,
) -> None:
    async with reverse(bot_memory=True) as (service, simulator, model):
        for words in ("@bot /help", "@bot /usage", "@bot /context", "@bot /why", "@bot /me", "@bot /unheard-of"):
            await simulator.say(words)
        sent = await simulator.wait_sent(6)
        assert len(model.requests) == 1  # what is no command is words
        texts = "\n".join(message.text for message in sent)
        for begin in ("/help", "This chat took:", "persona and rules:", "I have answered nothing", "I have no facts"):
            assert begin in texts
        await simulator.say("@bot hello")
        await simulator.wait_sent(7)
        async with asyncio.timeout(30):
            await service.wait_idle()
        assert "/usage" not in str(model.requests[-1]["messages"])


AUDIENCES = {
    Audience.EVERYONE: "help stop usage recap context why me forget reminders",
    Audience.GROUP_ADMIN: "reset persona quiet mute unmute welcome farewell",
    Audience.OWNER: "groups model errors limit digest live shadow off",
}
"""`/forget` of others is an owner's, which it says itself."""


async def test_each_command_has_its_audience_a_name_in_both_languages_and_words_for_help(
    folder: Path,
) -> None:
    async with reverse() as (service, _, _):
        there = {command.names[0]: command for command in service.app.commands._by_name.values()}
    theirs = {audience: {n for n, one in there.items() if one.audience is audience} for audience in AUDIENCES}
    assert theirs == {audience: set(names.split()) for audience, names in AUDIENCES.items()}
    for name, command in there.items():
        assert all(command.about), name
        assert name == "stop" or any(sign >= "\u4e00" for sign in "".join(command.names)), name


async def test_files_outside_the_media_folder_are_never_sent(tmp_path: Path) -> None:
    async with reverse(media_dir=tmp_path, store_url=f"sqlite:///{tmp_path}/frost.db") as (_, simulator, model):
        await simulator.say("@bot send me a message with a picture")
        await simulator.wait_sent(1)
        result = model.requests[-1]["messages"][-1]
        assert "there is no file demo.png in the media folder" in result["content"]
        assert all(segment["type"] != "image" for message in simulator.sent for segment in message.segments)


@pytest.mark.usefixtures("folder")
async def test_a_question_may_take_what_the_settings_say_and_a_limit_of_a_day_reserves_requests() -> None:
    for tokens in (0, 1000):
        given = settings(
            "http://127.0.0.1:1/v1",
            bot_run_requests=7,
            bot_run_tokens=8,
            bot_max_sends=9,
            bot_day_tokens_all=tokens,
            llm_first_token=0.0,
            bot_memory=True,
        )
        async with open_service(given) as service:
            app = service.app
            assert app.spending.has_limits is bool(tokens)
            limits = app.context_builder._turn_budget.limits
            assert (limits.requests, limits.tokens, limits.sends) == (7, 8, 9)
            # A model that may take for ever to begin still ends within an hour, and then some.
            assert app.extraction is not None
            assert (app.extraction._patience, app.summaries._patience) == (3660.0, 3690.0)


@pytest.mark.usefixtures("folder")
@each_case(("owners", "groups", "told"), [({1}, set(), True), (set(), set(), False), ({1}, {5}, False)])
async def test_owners_who_named_no_groups_hear_of_new_ones(owners: set[int], groups: set[int], told: bool) -> None:
    given = settings("http://127.0.0.1:1/v1", bot_owners=owners, bot_groups=groups, bot_new_group="live")
    async with open_service(given) as service:
        assert service.app.modes._tells is told


@pytest.mark.usefixtures("folder")
async def test_of_the_calls_of_one_answer_as_many_are_run_as_the_operator_says() -> None:
    async with open_service(settings("http://127.0.0.1:1/v1", tools_max_calls=2)) as service:
        assert service.app.lane_way._turns._engine._calls._executor._max_calls == 2


async def test_what_an_older_version_noted_in_its_answers_is_told_otherwise(tmp_path: Path) -> None:
    url, now = f"sqlite:///{tmp_path}/frost.db", time.time()
    question, asked = structs.replace(said("hi", message_id="7"), time=now), UserMessage("hi", sources=("7",))
    opening = TurnOpened(turn_id="t1", question=question, user=asked, at=now)
    closing = TurnClosed(
        turn_id="t1",
        stop=Stop.ANSWERED,
        round=(asked, AssistantMessage("(没有回答)")),
        usage=Usage(),
        steps=1,
        at=now,
    )
    async with opened(url) as before:
        assert await before.store.commit(MessageObserved(question, overheard=False), opening, closing)
    async with open_service(settings("http://127.0.0.1:1/v1", store_url=url)) as service:
        await service.app.history.load(GROUP)
        assert service.app.history.messages(GROUP)[-1] == history_note(ZH, ZH.about.unanswered)


@pytest.mark.usefixtures("folder")
async def test_the_sums_of_the_day_may_refuse_what_was_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other bots of a cluster may have taken all there was meanwhile."""
    asked: list[int] = []

    def refuses(_: Spending, _turn_id: str, number: int) -> bool:
        asked.append(number)
        return False

    monkeypatch.setattr(Spending, "refuses", refuses)
    async with reverse(bot_day_tokens_all=100_000) as (_, simulator, model):
        await simulator.say("@bot hello")
        await simulator.wait_sent(1)
        assert len(asked) == len(model.requests) == 1


@pytest.mark.usefixtures("folder")
@each_case("tokens", [0, 100_000])
async def test_with_a_limit_of_a_day_a_turn_waits_for_no_commit_but_that_of_its_reservation(
    tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_for: list[Entry] = []
    commit = SqlStore.commit

    async def watched(store: SqlStore, *entries: Entry) -> bool:
        waited_for.extend(entries)
        return await commit(store, *entries)

    monkeypatch.setattr(SqlStore, "commit", watched)
    async with reverse(bot_day_tokens_all=tokens) as (_, simulator, _model):
        await simulator.say("@bot hello")
        await simulator.wait_sent(1)
    assert any(isinstance(entry, TurnOpened) for entry in waited_for) is not bool(tokens)
    assert any(isinstance(entry, UsageReserved) for entry in waited_for) is bool(tokens)
