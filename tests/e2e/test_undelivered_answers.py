"""Answers that QQ did not take or did not confirm: what the asker reads, and what the model does in its next turn."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

from adapters.storage.database import Database
from adapters.storage.migrations import migrate
from bot.cli.past_runs import latest_runs
from bot.core.actions import SendMessage
from bot.core.errors import ActionRefused, ActionUnanswered
from bot.core.journal import TurnClosed
from bot.outbox.delivery import SaidMessage, note_on
from bot.prompt.wording_zh import ZH
from config.settings import Settings
from frostagent.types.errors import BotError, ModelBilling
from frostagent.types.messages import AssistantMessage, UserMessage
from frostagent.types.speech import Confirmed, Queued, Receipt, Refused, Text, Unknown
from tests.bot.chat.test_turn import living
from tests.cases import each_case
from tests.e2e.scenarios.play import play
from tests.fakes import GROUP, said, words

TOO_MUCH = ActionRefused("send_group_msg", retcode=1200, wording="消息内容过长")


@each_case(
    ("failure", "texts", "note"),
    [
        (
            TOO_MUCH,
            ["抱歉，回答太长，QQ 没让我发出来。请让我说得短一些，再问一次。"],
            "你上面的回答没有送达: too long: it is too long. Send a shorter text",
        ),
        (
            ActionRefused("send_group_msg", retcode=1200, wording="禁言中"),
            [],
            "你上面的回答没有送达: muted: the bot is muted here. Do not try again",
        ),
        (ActionUnanswered("no answer"), [], "你上面的回答没有得到 QQ 的确认，可能已送达，不要重复"),
    ],
)
async def test_final_words_that_did_not_arrive_are_noted_for_the_next_prompt_and_in_the_store(
    failure: BotError, texts: list[str], note: str
) -> None:
    async with living(words("the answer"), words("next")) as house:
        house.transport.failures = [failure]
        await house.turns.answer(said("hi"))
        assert house.transport.texts == texts
        (closed,) = house.store.of("turn_closed")
        assert isinstance(closed, TurnClosed)
        assert closed.round[-2:] == (AssistantMessage("the answer"), UserMessage(f"[系统记录]\n  {note}"))
        await house.turns.answer(said("and?"))
        assert house.model.requests[1].messages[1:-1] == closed.round


async def test_whether_a_line_about_a_failure_arrived_is_nothing_to_the_model_which_did_not_answer() -> None:
    async with living(ModelBilling("Insufficient Balance")) as house:
        house.transport.failures = [ActionUnanswered("no answer")]
        await house.turns.answer(said("hi"))
        kept = [message.text for message in house.history.messages(GROUP)[1:]]
        assert kept == [f"[系统记录]\n  {ZH.about.unanswered}"]


def piece(receipt: Receipt) -> SaidMessage:
    return SaidMessage(SendMessage(GROUP, (Text("x"),)), receipt)


@each_case(
    ("receipts", "note"),
    [
        ((), ""),
        ((Confirmed("1"), Confirmed("2")), ""),
        ((Queued("away"), Queued("away")), "你上面的回答当时连不上 QQ，排队等待发送，可能没有送达"),
        (
            (Confirmed("1"), Confirmed("2"), Unknown("?")),
            "你上面的回答前 2 条已送达，之后的没有得到 QQ 的确认，可能已送达，不要重复",
        ),
        ((Confirmed("1"), Refused("muted")), "你上面的回答前 1 条已送达，之后的没有送达: muted"),
    ],
)
def test_a_note_says_which_part_of_the_words_did_not_arrive(receipts: tuple[Receipt, ...], note: str) -> None:
    assert note_on(tuple(map(piece, receipts)), ZH) == note


LATE = """
title: answers that arrive, are refused at once, once QQ is back, after a restart, arrive late, are too old
settings: {BOT_LOOP: 0, LOG_RUNS: $FILES/runs.jsonl}
model: [一, 二, 三, 四, 五, 六]
script:
  - 小明: "@bot 第一个问题？"
  - after: 10
  - fault: refuse Get Uid Error
  - 小明: "@bot 第二个问题？"
  - after: 60
  - fault: drop 30
  - fault: refuse Get Uid Error
  - 小明: "@bot 第三个问题？"
  - after: 60
  - fault: drop 30
  - fault: refuse Get Uid Error
  - 小明: "@bot 第四个问题？"
  - after: 20
  - restart: 20
  - after: 60
  - fault: drop 30
  - 小明: "@bot 第五个问题？"
  - after: 60
    requests: 5
  - fault: drop 30
  - 小明: "@bot 第六个问题？"
  - after: 20
  - restart: 300
  - after: 60
    requests: 6
"""


def test_the_file_of_runs_and_the_journal_tell_the_same_of_every_answer(tmp_path: Path) -> None:
    (script := tmp_path / "late.yaml").write_text(LATE, "utf-8")
    played = play(script, tmp_path)
    assert played.wrong == []
    database = Database(f"sqlite:///{tmp_path}/bot.db", migrate=migrate)
    with closing(database):
        in_journal = latest_runs(Settings(), lambda: nullcontext(database), limit=9)
    in_file = latest_runs(Settings(log_runs=played.stage.files / "runs.jsonl"), lambda: nullcontext(database), limit=9)
    expected = ["answered", "not_delivered", "not_delivered", "not_delivered", "answered", "not_delivered"]
    assert [[run.outcome for run in reversed(runs)] for runs in (in_journal, in_file)] == [expected] * 2
