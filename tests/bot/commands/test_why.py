from __future__ import annotations

import time

from msgspec.structs import replace

from bot.commands.reasons import NOTHING
from bot.commands.why import Explanations, why_command
from bot.core.command import AWAY, Asked
from bot.core.query_results import Publication, Story, StoryCall, UsageSum
from bot.policy.permissions import NOT_ALL, NOT_THERE
from bot.policy.wake import Silence
from frostagent.words import ENGLISH
from tests.bot.commands.books import PaperBooks
from tests.bot.commands.typed import MING, NOW, OWNER, lines
from tests.cases import each_case
from tests.owners import both

ANSWERED = Story(
    asker=MING,
    wakes=True,
    reason="mention",
    turn_id="t7",
    taken=NOW - 10,
    opened=NOW - 9.2,
    closed=NOW - 6,
    stop="answered",
    steps=2,
    calls=(StoryCall("get_weather", "ok", 1.13), StoryCall("web", "TOOL_TIMEOUT", 30.0)),
    models=("deepseek@x.test",),
    usage=UsageSum(2, 3000, 2000, 120, 0.0012),
    sends=1,
)
FAILED = Story(
    asker=MING, wakes=True, weak=True, reason="name", turn_id="t8", stop="failed", error="auth: no", failed=1
)


def refused(told: str) -> StoryCall:
    """A call that was not allowed, in the words that a model reads."""
    return StoryCall("kick", "TOOL_DENIED", 0.0, f"error: {told} [TOOL_DENIED]")


async def test_of_an_answer_is_told_what_woke_it_how_long_it_took_and_what_it_cost() -> None:
    why = why_command(PaperBooks(("5", ANSWERED)))
    assert await lines(why, quoted="5") == [
        "唤醒：被 @",
        "等了 0.8 秒，用了 3.2 秒，2 步，回答了",
        "工具: get_weather 1.1s, web 30.0s TOOL_TIMEOUT",
        "deepseek@x.test · 3.1k token (缓存 2.0k) · $0.0012",
        "发出 1 条 · 编号 t7",
    ]


async def test_who_published_a_draft_is_for_owners_alone() -> None:
    published = (Publication(7, "主人(999)"), Publication(8, "", changed=True))
    why = why_command(PaperBooks(("", replace(ANSWERED, drafts=(7, 8, 9), published=published))))
    told = ["影子：留作草稿 D7, D8, D9", "D7：主人(999) 发的", "D8：主人 改了再发的"]
    assert (await lines(why, user=OWNER))[-4:-1] == told
    assert (await lines(why, user=OWNER, chinese=False))[-3:-1] == [
        "D7: published by 主人(999)",
        "D8: changed and published by an owner",
    ]
    assert (await lines(why))[-2:-1] == told[:1]


async def test_of_a_silence_is_told_what_stood_against_it() -> None:
    why = why_command(PaperBooks(("", Story(asker=MING, wakes=False, reason="the bot is muted there"))))
    assert await lines(why) == ["没有回答：我在这里被禁言了", "由此决定：QQ 群管理员的禁言，没有设置决定它"]
    english = ["not answered: I am muted here", "decided by: the group's admins in QQ, no setting"]
    assert await lines(why, chinese=False) == english
    assert (await lines(why, quoted="6"))[0].startswith("这条消息我没有记录")
    assert (await lines(why_command(PaperBooks())))[0].startswith("这里我还没答过什么")
    overheard = why_command(PaperBooks(("7", Story(asker=0, taken=NOW))))
    assert (await lines(overheard, quoted="7"))[0].startswith("没有回答：没有人叫我")
    called_by = "由此决定：BOT_NAME, BOT_ALIASES, BOT_PREFIXES, BOT_AT_ALL, BOT_CHIME_IN, BOT_CHANCE, GROUPS_FILE"
    assert (await lines(overheard, quoted="7"))[1] == called_by
    gone = why_command(PaperBooks(("8", Story(asker=0, taken=NOW, is_gone=True))))
    assert (await lines(gone, quoted="8"))[0].startswith("没有交给模型：是命令")
    assert (await lines(gone, quoted="8"))[1] == "由此决定：没有设置决定它"
    assert await lines(why_command(PaperBooks(away=True))) == [AWAY.zh]


async def test_of_what_waits_is_told_for_what_and_how_long() -> None:
    why = why_command(PaperBooks(("5", Story(asker=MING, wakes=True, reason="mention", taken=NOW - 12, waits=True))))
    assert await lines(why, quoted="5") == ["唤醒：被 @", "还没轮到，已经等了 12 秒"]
    assert (await lines(why, quoted="5", chinese=False))[1] == "not its turn yet, waiting for 12 s"
    suspended = replace(ANSWERED, closed=0.0, stop="", expires=NOW + 90)
    why = why_command(PaperBooks(("5", suspended)))
    assert (await lines(why, quoted="5"))[1] == "等了 0.8 秒，用了 9.2 秒，2 步，在等主人答复，最多再等 90 秒"
    assert (await lines(why, quoted="5", chinese=False))[1].endswith("waits for an owner, 90 s at most")


async def test_of_a_question_that_was_recalled_in_time_is_told_that_it_is_gone() -> None:
    recalled = Story(asker=MING, wakes=True, reason="mention", taken=NOW - 12, is_gone=True)
    assert (await lines(why_command(PaperBooks(("5", recalled))), quoted="5"))[0].startswith("没有交给模型：")


async def test_last_words_that_were_not_sent_are_told() -> None:
    why = why_command(PaperBooks(("5", replace(ANSWERED, unsaid=True))))
    assert "最后的话没有发：前面已经说过，或者用了词表里的词" in await lines(why, quoted="5")
    assert "its last sentences were not sent: said before, or on a list" in await lines(why, quoted="5", chinese=False)


async def test_an_answer_that_did_not_arrive_is_none_and_owners_read_the_servers_words() -> None:
    lost = why_command(PaperBooks(("", replace(ANSWERED, stop="not_delivered", failed=1, loss="Get Uid Error"))))
    unsure = why_command(PaperBooks(("", replace(ANSWERED, stop="unconfirmed"))))
    told = "\n".join(await lines(lost, user=OWNER))
    assert "步，没有送到\n" in told
    assert told.endswith("\n没发出去：Get Uid Error")
    assert not any("回答了" in line or "Get Uid" in line for line in await lines(lost))
    assert any(line.endswith("steps, not delivered") for line in await lines(lost, chinese=False))
    assert any(line.endswith("步，没有得到 QQ 的确认") for line in await lines(unsure))


async def test_the_error_of_a_service_is_for_owners_alone() -> None:
    why = why_command(PaperBooks(("", FAILED)))
    assert (await lines(why))[0] == "唤醒：叫了我的名字（不确定是在叫我）"
    assert (await lines(why))[-1] == "发出 0 条，没发出去 1 条 · 编号 t8"
    assert (await lines(why, user=OWNER))[-1] == "auth: no"
    long = why_command(PaperBooks(("", replace(FAILED, error="e" * 300))))
    assert (await lines(long, user=OWNER))[-1] == "e" * 200


async def test_of_many_tools_five_are_told_and_how_many_more() -> None:
    calls = tuple(StoryCall(f"t{number}", "ok", 0.0) for number in range(7))
    why = why_command(PaperBooks(("", replace(ANSWERED, calls=calls))))
    assert (await lines(why))[2] == "工具: t0 0.0s, t1 0.0s, t2 0.0s, t3 0.0s, t4 0.0s +2"


async def test_until_when_the_bot_was_muted_is_told_with_the_day_where_it_is_another_one() -> None:
    muted = Story(asker=MING, wakes=False, reason=Silence.MUTED, until=NOW + 60)
    tomorrow = replace(muted, until=NOW + 2 * 86_400)
    why = why_command(PaperBooks(("5", muted), ("6", tomorrow)))
    there = time.localtime(NOW + 60)
    told = time.strftime("%H:%M", there)
    assert await lines(why, quoted="5") == [
        f"没有回答：我在这里被禁言了，到 {told}",
        "由此决定：QQ 群管理员的禁言，没有设置决定它",
    ]
    assert (await lines(why, quoted="5", chinese=False))[0] == f"not answered: I am muted here, until {told}"
    later = time.strftime("%m-%d %H:%M", time.localtime(NOW + 2 * 86_400))
    assert (await lines(why, quoted="6"))[0].endswith(f"，到 {later}")


async def test_until_when_it_is_quiet_is_told_like_the_end_of_a_mute() -> None:
    quiet = Story(asker=MING, wakes=False, reason=Silence.QUIET, until=NOW + 60)
    told = time.strftime("%H:%M", time.localtime(NOW + 60))
    assert (await lines(why_command(PaperBooks(("5", quiet))), quoted="5"))[0] == f"没有回答：现在要安静，到 {told}"


async def test_what_decides_a_wake_and_an_end_stands_behind_each() -> None:
    silent = replace(ANSWERED, weak=True, reason="name", stop="silent", calls=(), sends=0)
    told = await lines(why_command(PaperBooks(("5", silent))), quoted="5", chinese=False)
    assert told[0] == "woken: called by name (perhaps not meant for me)"
    assert told[1] == "decided by: BOT_NAME, BOT_ALIASES"
    assert told[2].endswith("chose to stay silent")
    assert told[3].startswith("decided by: the persona (BOT_PERSONA)")
    assert "TOOLS_DENY=stay_silent" in told[3]


async def test_of_a_turn_that_a_mute_ended_nothing_else_is_said_to_decide() -> None:
    muted = replace(ANSWERED, wakes=False, reason=Silence.MUTED, stop="stopped")
    told = await lines(why_command(PaperBooks(("5", muted))), quoted="5")
    assert [line for line in told if line.startswith("由此决定")] == ["由此决定：QQ 群管理员的禁言，没有设置决定它"]


async def test_of_a_call_that_was_denied_is_told_what_denies_calls() -> None:
    calls = (
        refused(ENGLISH.only_for.format(name="kick", who="owner")),
        refused(ENGLISH.only_for.format(name="kick", who="admin")),
    )
    why = why_command(PaperBooks(("5", replace(ANSWERED, calls=calls)), ("6", ANSWERED)))
    told = await lines(why, quoted="5", chinese=False)
    assert told[2:4] == [
        "tools: kick 0.0s TOOL_DENIED, kick 0.0s TOOL_DENIED",
        "decided by: TOOLS_AUDIENCE, GROUPS_FILE",
    ]
    assert [line for line in told if line.startswith("decided by")] == told[3:4]


@each_case(
    "told", [NOT_THERE, NOT_ALL, ENGLISH.not_alone.format(name="kick"), ENGLISH.too_often.format(name="kick", times=3)]
)
async def test_of_a_call_that_no_setting_denied_none_is_named(told: str) -> None:
    why = why_command(PaperBooks(("5", replace(ANSWERED, calls=(refused(told),)))))
    assert [line for line in await lines(why, quoted="5") if line.startswith("由此决定")] == []


async def test_the_kind_of_a_failure_is_for_owners_alone() -> None:
    why = why_command(PaperBooks(("", FAILED)))
    assert "由此决定：LLM_API_KEY" in await lines(why, user=OWNER)
    assert [line for line in await lines(why) if line.startswith("由此决定")] == ["由此决定：BOT_NAME, BOT_ALIASES"]
    spent = why_command(PaperBooks(("", replace(FAILED, reason="mention", error="day_spent: no"))))
    decided = [line for line in await lines(spent) if line.startswith("由此决定")]
    assert decided == ["由此决定：BOT_DAY_COST_…, BOT_DAY_TOKENS_…, GROUPS_FILE, /limit"]


async def test_of_what_nobody_stopped_by_a_word_is_told_what_did() -> None:
    stopped = replace(ANSWERED, stop="stopped", calls=(), sends=0)
    given_up = replace(stopped, error="given_up: its question is gone")
    why = why_command(PaperBooks(("5", stopped), ("6", given_up)))
    assert "由此决定：/stop，或者它的问题没有了" in await lines(why, quoted="5")
    assert "decided by: /stop, or its question was recalled" in await lines(why, quoted="5", chinese=False)
    told = [line for line in await lines(why, quoted="6") if line.startswith("由此决定")]
    assert told == ["由此决定：没有设置决定它：问题或读到的话被撤回或忘掉了，另起一轮来答，或者重启后没有再问"]
    told = [line for line in await lines(why, quoted="6", chinese=False) if line.startswith("decided by")]
    assert told == [
        (
            "decided by: no setting: its question or a message it read was recalled or erased, "
            "another turn answers it, or it was not asked again after a restart"
        )
    ]


def test_another_place_tells_it_in_the_same_words_and_knows_what_decides() -> None:
    explain = Explanations(lambda: NOW)
    assert explain.story(ANSWERED, chinese=True)[0] == "唤醒：被 @"
    assert explain.story(FAILED, chinese=False)[-1] == "auth: no"  # an owner looks
    assert (explain.reason("mention", chinese=False), explain.ending("silent", chinese=True)) == (
        "mentioned",
        "选择不说话",
    )
    assert explain.setting("its sender asks too often", chinese=True) == "BOT_USER_RATE"
    assert (explain.setting("private", chinese=True), explain.setting("", chinese=False)) == both(NOTHING)


async def test_in_both_languages_it_is_told_why_the_bot_chimed_in_and_why_not() -> None:
    spoke = why_command(PaperBooks(("5", replace(ANSWERED, weak=True, reason="chime 8"))))
    assert (await lines(spoke, quoted="5"))[:2] == [
        "唤醒：看了大家的聊天，主动开口（8 分，满分 10）（不确定是在叫我）",
        "由此决定：BOT_CHIME_IN, GROUPS_FILE",
    ]
    assert (await lines(spoke, quoted="5", chinese=False))[:2] == [
        "woken: chimed in after reading along (8 of 10) (perhaps not meant for me)",
        "decided by: BOT_CHIME_IN, GROUPS_FILE",
    ]
    silent = why_command(PaperBooks(("7", Story(asker=0, taken=NOW))), looked=lambda _, message_id: float(message_id))
    assert (await lines(silent, quoted="7"))[-1] == "看过要不要主动开口：7 分（满分 10），没有开口（BOT_CHIME_IN）"
    told = (await lines(silent, quoted="7", chinese=False))[-1]
    assert told == "read along, 7 of 10 for chiming in: I did not (BOT_CHIME_IN)"


async def test_of_a_job_its_own_words_come_first_and_the_turn_after_them_if_there_was_one() -> None:
    async def of_job(asked: Asked) -> str:
        return f"J{asked.quoted}" if asked.quoted else ""

    of_task = why_command(PaperBooks(("5", replace(ANSWERED, reason="job"))), explain_job=of_job)
    assert (await lines(of_task, quoted="5"))[:3] == ["J5", "唤醒：到了定好的时间", "由此决定：/reminders"]
    said = why_command(PaperBooks(("7", Story(asker=0, taken=NOW))), explain_job=of_job)
    assert await lines(said, quoted="7") == ["J7"]
    away = why_command(PaperBooks(away=True), explain_job=of_job)
    assert await lines(away, quoted="7") == ["J7"]
    assert await lines(away) == [AWAY.zh]
