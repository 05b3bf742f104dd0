from __future__ import annotations

from bot.core.actions import (
    JobWords,
    jobs_in,
    send_name_of_jobs,
    send_prefix,
    send_prefix_of_person,
    send_prefix_of_turn,
)
from bot.core.drafts import draft_id, published_id


def test_an_id_tells_whom_or_which_turn_it_is_about_and_any_other_nothing() -> None:
    for beginning in (send_prefix_of_person(345), send_prefix_of_turn("7d9khy2u"), send_prefix_of_turn("t-own")):
        assert send_prefix(f"{beginning}8f2kd9ac-17") == beginning
    for other in ("8f2kd9ac-17", f"{draft_id(7)}8f2kd9ac-17", f"{published_id(7)}8f2kd9ac-17", "user-17", ""):
        assert send_prefix(other) == ""


def test_an_id_tells_what_is_said_of_which_jobs_and_whose_they_are() -> None:
    for words in JobWords:
        send_id = f"{send_name_of_jobs(345, words, (7, 12))}8f2kd9ac-17"
        assert send_prefix(send_id) == send_prefix_of_person(345)
        assert jobs_in(send_id) == (words, (7, 12))
    for other in ("user-345-8f2kd9ac-17", "turn-J7.-8f-17", "8f2kd9ac-17", "J7.8f2kd9ac-17", "user-345-J.8f-17", ""):
        assert jobs_in(other) is None
