"""Which faults wait, and how they are typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from adapters.simulator.faults import (
    ASKING,
    REFUSED,
    SENDING,
    VALUES,
    WORDINGS,
    Armed,
    Fault,
    Faults,
    NoFault,
    parse_fault,
    parse_number,
    says_when,
)
from tests.cases import each_case


@each_case(
    ("text", "armed"),
    [
        ("timeout", Armed(Fault.TIMEOUT, 1, wording=WORDINGS[Fault.TIMEOUT])),
        ("timeout next", Armed(Fault.TIMEOUT, 1, wording=WORDINGS[Fault.TIMEOUT])),
        ("  Silence   ALWAYS ", Armed(Fault.SILENCE, None)),
        ("lost 3 times", Armed(Fault.LOST, 3)),
        ("lost 1 time", Armed(Fault.LOST, 1)),
        ("lost off", Armed(Fault.LOST, 0)),
        ("slow", Armed(Fault.SLOW, 1, 1.0)),
        ("slow 0.25", Armed(Fault.SLOW, 1, 0.25)),
        ("slow 2 3 times", Armed(Fault.SLOW, 3, 2.0)),
        ("disorder 3 always", Armed(Fault.DISORDER, None, 3.0)),
        ("repeat 5", Armed(Fault.REPEAT, 1, 5.0)),
        ("next-connection", Armed(Fault.NEXT_CONNECTION)),
        ("refuse 群聊已解散 2 times", Armed(Fault.REFUSE, 2, wording="群聊已解散")),
        ("refuse code 100", Armed(Fault.REFUSE, 1, retcode=100)),
        ("refuse CODE 1400 不存在 always", Armed(Fault.REFUSE, None, wording="不存在", retcode=1400)),
        (
            "refuse result -1 rich media transfer failed",
            Armed(Fault.REFUSE, 1, 0.0, "rich media transfer failed", result=-1),
        ),
        ("refuse result 299 2 times", Armed(Fault.REFUSE, 2, result=299)),
        ("refuse mention", Armed(Fault.REFUSE_MENTION, wording="Get Uid Error")),
        ("Refuse Quote code 200 no such message", Armed(Fault.REFUSE_QUOTE, wording="no such message", retcode=200)),
        ("refuse mentions nobody", Armed(Fault.REFUSE, wording="mentions nobody")),
        ("lateforward 消息体无法解析 next", Armed(Fault.LATE_FORWARD, wording="消息体无法解析")),
        ("refuse what comes next", Armed(Fault.REFUSE, 1, wording="what comes")),
        ("badmedia always", Armed(Fault.BAD_MEDIA, None, wording=WORDINGS[Fault.BAD_MEDIA])),
    ],
)
def test_a_line_says_what_how_much_and_how_often(text: str, armed: Armed) -> None:
    assert parse_fault(text) == armed


@each_case(
    "text",
    [
        "",
        "nonsense",
        "time out",
        "timeouts",
        "slow fast",
        "slow -1",
        "slow nan",
        "slow inf",
        "lost 3",
        "silence please",
    ],
)
def test_a_line_that_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(NoFault):
        parse_fault(text)


@each_case("fault", Fault)
@each_case("times", [None, 0, 1, 7])
def test_what_is_armed_reads_as_it_is_typed(fault: Fault, times: int | None) -> None:
    value = 2.5 if fault in VALUES else 0.0
    words = "some words" if fault is Fault.REFUSE else WORDINGS.get(fault, "")
    armed = Armed(fault, times, value, words)
    assert parse_fault(str(armed)) == armed


def test_an_answer_of_ones_own_reads_as_it_is_typed() -> None:
    for line in ("refuse code 100 next", "refuse result -1 no always", "refuse-quote code 1400 不 3 times"):
        assert str(parse_fault(line)) == line


def test_the_usual_words_are_not_read_out() -> None:
    assert str(Faults().arm(Fault.TIMEOUT)) == "timeout next"
    assert str(Faults().arm(Fault.REFUSE, wording="no", times=None)) == "refuse no always"


def test_a_number_is_not_negative_and_has_an_end() -> None:
    assert parse_number(" 1e1 ") == 10
    with pytest.raises(NoFault, match="-1 is not a number"):
        parse_number("-1")


def test_a_line_tells_whether_it_says_when() -> None:
    assert [says_when(line) for line in ("recall", "recall 2", "recall next", "drop 5 2 times")] == [
        False,
        False,
        True,
        True,
    ]


def test_a_fault_is_used_up() -> None:
    faults = Faults()
    faults.arm(Fault.LOST, times=2)
    faults.arm(Fault.SILENCE, times=None)
    hits = [faults.use(Fault.LOST) for _ in range(3)]
    assert [hit and hit.times for hit in hits] == [2, 1, None]
    assert all(faults.use(Fault.SILENCE) for _ in range(5))
    assert faults.use(Fault.TIMEOUT) is None


def test_the_one_armed_first_goes_first() -> None:
    faults = Faults()
    for fault in (Fault.LOST, Fault.SLOW, Fault.TIMEOUT, Fault.LOST):
        faults.arm(fault)
    hits = [faults.use(*SENDING) for _ in range(3)]
    assert [hit and hit.fault for hit in hits] == [Fault.TIMEOUT, Fault.LOST, None]
    assert [armed.fault for armed in faults.armed] == [Fault.SLOW]


def test_a_fault_is_called_off() -> None:
    faults = Faults()
    faults.arm(Fault.LOST, times=None)
    faults.arm(Fault.SLOW, value=3)
    faults.put(parse_fault("lost off"))
    assert list(map(str, faults.armed)) == ["slow 3 next"]
    faults.disarm()
    assert faults.armed == ()


def test_each_fault_hits_one_kind_of_thing() -> None:
    kinds = [
        set(SENDING),
        set(ASKING),
        {Fault.NO_MESSAGE},
        {Fault.SLOW, Fault.DISORDER},
        {Fault.DUPLICATE, Fault.REPEAT, Fault.DEAF},
    ]
    assert sum(map(len, kinds)) == len(Fault)
    assert set().union(*kinds) == set(Fault)


def test_a_refusal_is_worded_as_recorded(recorded: Callable[[str], dict[str, Any]]) -> None:
    def bare(words: str) -> str:
        return re.sub(r"\s", "", words)

    assert bare(WORDINGS[Fault.MUTED]) == bare(recorded("api_error__nc_send_muted")["wording"])
    beginning, _, _ = WORDINGS[Fault.BAD_MEDIA].partition("=")
    assert recorded("api_error__nc_file_not_found")["wording"].startswith(beginning)


def test_what_is_unconfirmed_begins_like_napcats_timeout() -> None:
    begins = "Timeout: NTEvent serviceAndMethod:NodeIKernelMsgService/sendMsg "
    assert {fault for fault in REFUSED | {Fault.TIMEOUT} if WORDINGS[fault].startswith(begins)} == {
        Fault.TIMEOUT,
        Fault.RISK,
        Fault.MUTED,
    }
