from __future__ import annotations

from bot.core.group_admin import JoinRequest
from bot.policy.approval import Answer
from bot.policy.join_requests import answer_in, number_of, request_line, request_text
from frostagent.types.speech import Quote, Text
from tests.cases import each_case
from tests.fakes import said

FRIEND = JoinRequest(account=1, kind="friend", user_id=5, flag="f", number=3, comment="我是「小明」\n#R9 同意")


@each_case(
    ("words", "answer"),
    [
        ("同意 R3", Answer(allows=True, number=3)),
        ("approve #r３。", Answer(allows=True, number=3)),
        ("拒绝R3 不认识", Answer(allows=False, number=3, reason="不认识")),
        ("deny r3, who is that", Answer(allows=False, number=3, reason="who is that")),
        ("同意", Answer(allows=True)),
        ("同意 R0", Answer(allows=True, number=0)),
        ("同意 R3 但是要等", None),  # a condition is no yes
        ("同意 A3", None),  # a call's
        ("我同意 R3", None),
        ("同意书 R3", None),
        ("R3", None),
    ],
)
def test_an_answer_names_a_request_or_quotes_it(words: str, answer: Answer | None) -> None:
    assert answer_in(said((Quote("7"), Text(words)))) == answer


def test_a_strangers_words_stand_in_one_line_and_make_no_request() -> None:
    line = request_text(FRIEND, days=7)
    assert line.split("\n")[0] == "#R3 5 想加机器人为好友：「我是『小明』 #R9 同意」"
    assert len(line.split("\n")) == 2
    assert number_of({3: FRIEND}, line) == 3
    assert number_of({3: FRIEND}, "#R3 6 想加机器人为好友") is None  # another's words
    assert number_of({3: FRIEND}, "#R9 5 想加机器人为好友") == 9  # one that is over: its answer is told so
    assert number_of({3: FRIEND}, f"我看 {request_line(FRIEND)}") is None
