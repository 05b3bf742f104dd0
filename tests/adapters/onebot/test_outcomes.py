"""What a refused send means, in the words of each server."""

from __future__ import annotations

from adapters.onebot.outcomes import SendOutcome, judge_refusal
from tests.cases import each_case

NAPCAT = "NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg ListenerName:NodeIKernelMsgListener/on EventRet:\n"

UNKNOWN = [
    (1200, f'Timeout: {NAPCAT}{{"result":0,"errMsg":""}}\n'),
    (1200, f'Error: Timeout: {NAPCAT}{{\n    "result": 0\n}}'),
    (1200, "waitForSelfEcho timeout"),
    (1200, "Error: waitForSelfEcho timeout"),
    (500, "Internal error: waitForSelfEcho timeout"),
    (1200, "invoke timeout, wrapperSession.getMsgService().sendMsg, [ '0', { text: 'how to download it' } ]"),
    (1200, "消息发送超时"),
    (1200, "send message timed out"),
    (1, "Request time-out"),
    (9057, ""),
    (9000, ""),
    (0, ""),
    (1, ""),
    (100, "请参考 go-cqhttp 端输出"),
    (100, "请参考 Go-CQHttp 端输出"),
    (100, "SEND_MSG_API_ERROR"),
]
REFUSED = [
    (1200, f'Timeout: {NAPCAT}{{"result":120,"errMsg":"禁言中"}}\n'),
    (1200, f'Timeout: {NAPCAT}{{\n    "result": 120\n}}'),
    (1200, f'EventChecker Failed: {NAPCAT}{{"result":110}}'),
    (1400, "waitForSelfEcho timeout"),
    (1404, "不支持的Api timeout"),
    (1200, "发送伪造合并转发消息失败: SsoSendLongMsg timed out"),
    (1200, "Timeout: NTEvent serviceAndMethod:NodeIKernelRichMediaService/downloadRichMediaInVisit"),
    (1200, "文件下载超时, uri= https://a.test/"),
    (1200, "发送消息失败 (code=120): 禁言"),
    (1200, "当前处于被禁言状态"),
    (1200, "消息体无法解析, 请检查是否发送了不支持的消息类型"),
    (100, "GROUP_NOT_FOUND"),
    (0, "群聊不存在"),
    (1, "群聊不存在"),
    (120, ""),
    (-1, "unknown action"),
]


@each_case(("retcode", "words"), UNKNOWN)
def test_what_comes_after_qq_may_have_taken_it_is_unknown(retcode: int, words: str) -> None:
    assert judge_refusal(retcode, words) is SendOutcome.UNKNOWN


@each_case(("retcode", "words"), REFUSED)
def test_what_qq_did_not_take_is_refused(retcode: int, words: str) -> None:
    assert judge_refusal(retcode, words) is SendOutcome.REFUSED
