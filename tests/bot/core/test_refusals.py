from __future__ import annotations

from adapters.simulator.faults import WORDINGS, Fault
from bot.core.refusals import KINDS, MUTED, is_too_long, judge_refusal
from tests.cases import each_case


def explain_refusal(wording: str, retcode: int) -> str:
    return judge_refusal(wording, retcode).reason


def is_muted(wording: str, retcode: int) -> bool:
    refusal = judge_refusal(wording, retcode)
    return refusal.kind == MUTED and refusal.blocks_place


@each_case(
    ("wording", "kind"),
    [
        ('Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg EventRet:{"result":120}', "muted"),
        ("你已被禁言", "muted"),
        ("对方不是好友，请先加好友", "not a friend"),
        ("账号被风控", "risk control"),
        ("发言过于频繁", "risk control"),
        ("消息内容过长", "too long"),
        ("it has 12.0 MB, over 8: too large for a cluster", "too large"),
        ("你不在该群", "not in the group"),
        ("识别URL失败, uri= /app/x.png", "bad media"),
        ("http://bot:8080/media/x 下载失败, statusText: Not Found", "bad media"),
        ("connect ECONNREFUSED 172.18.0.3:8080", "bad media"),
        ("getaddrinfo ENOTFOUND bot", "bad media"),
        ("fetch failed", "bad media"),
        ("消息体无法解析, 请检查是否发送了不支持的消息类型", "nothing left"),
    ],
)
def test_a_refusal_is_known_by_its_words(wording: str, kind: str) -> None:
    assert explain_refusal(wording, 1200).startswith(f"{kind}: ")


@each_case(
    ("fault", "kind"),
    [
        (Fault.REFUSE, "not in the group"),
        (Fault.MUTED, "muted"),
        (Fault.NOT_FRIEND, "not a friend"),
        (Fault.TOO_LONG, "too long"),
        (Fault.BAD_MEDIA, "bad media"),
    ],
)
def test_the_refusals_of_the_simulator_are_known(fault: Fault, kind: str) -> None:
    assert explain_refusal(WORDINGS[fault], 1200).startswith(f"{kind}: ")


def test_all_wordings_of_the_simulator_but_the_doubtful_ones_are_refusals_that_are_known() -> None:
    kinds = tuple(f"{row.kind}: " for row in KINDS)
    unknown = {fault for fault, wording in WORDINGS.items() if not explain_refusal(wording, 1200).startswith(kinds)}
    of_some = {Fault.REFUSE_MENTION, Fault.REFUSE_QUOTE, Fault.LATE_FORWARD, Fault.NO_MESSAGE}  # tried another way
    assert unknown - of_some == {Fault.TIMEOUT, Fault.RISK}


def test_only_what_is_too_long_may_be_said_shorter() -> None:
    assert is_too_long(explain_refusal("消息内容过长", 1200))
    assert not is_too_long(explain_refusal("你已被禁言", 1200))
    assert not is_too_long(explain_refusal("it has 12.0 MB, over 8: too large for a cluster", 413))
    assert not is_too_long(explain_refusal("", 100))


@each_case(
    ("wording", "retcode", "muted"),
    [
        (WORDINGS[Fault.MUTED], 1200, True),
        ('EventRet:{\n  "result": 120,\n  "errMsg": ""}', 1200, True),
        ('{"result": 120, "errMsg": ""}', 1200, True),
        ("", 120, True),
        ("消息内容过长", 120, False),
        ("", 1200, False),
        ('EventRet:{"result":1201}', 1200, False),
        ("消息包含敏感词：禁言", 1200, False),
        ("result 110, group is not muted", 1200, False),
        ("unmuted", 1200, False),
    ],
)
def test_a_mute_is_known_by_the_result_of_the_kernel_and_by_no_words(wording: str, retcode: int, muted: bool) -> None:
    assert is_muted(wording, retcode) is muted


def test_a_model_is_told_of_a_mute_for_the_number_alone_too() -> None:
    assert explain_refusal("", 120).startswith("muted: ")
    assert explain_refusal("消息内容过长", 120).startswith("too long: ")


def test_unknown_words_are_passed_on_and_none_at_all_are_a_number() -> None:
    assert explain_refusal("something new", 1200) == "something new"
    assert explain_refusal("Error: " + "长" * 500, 1200) == "长" * 160
    assert explain_refusal("", 100) == "refused with code 100"


def test_every_kind_says_what_to_do_and_the_same_of_one_kind() -> None:
    assert all(row.advice for row in KINDS)
    assert len({(row.kind, row.advice) for row in KINDS}) == len({row.kind for row in KINDS})


def test_words_that_were_said_in_a_message_make_no_place_rest() -> None:
    said = (
        "发送失败，你已被移出该群，请重新加群。",
        "当前处于被禁言状态",
        "请先添加对方为好友",
        "no such temp session",
        '"result": 110',
        '{"result": 120}',
        '{"errMsg": "群不存在"}',
        "Group 1 not found",
    )
    around = ("消息包含敏感词：{}", "blocked: {}", "invoke timeout, getMsgService().sendMsg, ['{}']")
    told = [line.format(words) for line in around for words in said]
    assert [line for line in told if judge_refusal(line, 1200).blocks_place] == []


def test_a_late_forward_is_unknown_and_the_same_words_about_a_message_are_not() -> None:
    words = "消息体无法解析, 请检查是否发送了不支持的消息类型"
    assert judge_refusal(words, 1200, "send_group_forward_msg").may_be_done
    assert not judge_refusal(words, 1200, "send_group_msg").may_be_done
