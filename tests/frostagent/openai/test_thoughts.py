"""Thoughts, channels and other people's turns around the words of an answer."""

from __future__ import annotations

import pytest

from frostagent.models.openai.answer import RawAnswer
from frostagent.models.openai.leaks import split_leaks
from tests.cases import each_case

PAIRS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
]
TOKENS = [
    "</s>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>", "<eos>",
    "<|im_end|>", "<|return|>", "<|call|>", "<|begin_of_box|>", "<|end_of_box|>", "<|START_RESPONSE|>", "</tool_call>",
    "<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|im_start|>assistant", "<|start|>assistant",
    "<start_of_turn>model", "<|begin_of_solution|>", "<|EOT|>", "[/INST]", "<|some_token_of_next_year|>",
]  # fmt: skip
LEADS = [
    "<|im_start|>assistant\n", "<|im_start|>", "<s>", "<s> ",
    "<|begin_of_text|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "<start_of_turn>model\n", "<|assistant|>\n", "<｜begin▁of▁sentence｜><｜Assistant｜>",
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
]  # fmt: skip


def split(text: str, *, reasoning: str = "") -> RawAnswer:
    return split_leaks(RawAnswer(text=text, reasoning=reasoning), tools=())


@each_case(("opens", "closes"), PAIRS)
def test_thoughts_are_found_in_the_marks_of_every_family(opens: str, closes: str) -> None:
    for text, said in (
        (f"{opens}hm{closes}hi", "hi"),
        (f"\n{opens}\nhm\n{closes}\n\nhi", "hi"),
        (f"hm{closes}hi", "hi"),
        (f"hi {opens}hm{closes}", "hi"),
        (f"hi {opens}hm{closes} you", "hi you"),
        (f"{opens}hm", ""),
    ):
        answer = split(text)
        assert (answer.text, answer.reasoning, answer.reasoning_field) == (said, "hm", "content"), text


@each_case(("opens", "closes"), PAIRS)
@each_case("frame", ["`{}`", "``a ` {}``", "see\n```\n{}\n```\nso", "~~~\n{}"])
def test_marks_in_code_are_an_example(opens: str, closes: str, frame: str) -> None:
    for marks in (opens, closes, f"{opens}hm{closes}"):
        text = f"A thought is written {frame.format(marks)}"
        if "\n" in frame or frame[0] == "`":
            text = f"A thought is written\n{frame.format(marks)}"
        assert split(text) == RawAnswer(text=text)


def test_a_token_opens_a_thought_to_the_end_and_a_word_in_angles_does_not() -> None:
    for opens, _ in PAIRS[5:]:
        answer = split(f"hi {opens} and so on")
        assert (answer.text, answer.reasoning) == ("hi", "and so on")
    assert split("so <think>never ends") == RawAnswer(text="so <think>never ends")


def test_an_end_alone_ends_nothing_where_the_thoughts_came_as_such() -> None:
    answer = split("the token [/THINK] ends it", reasoning="a")
    assert (answer.text, answer.reasoning) == ("the token  ends it", "a")


@each_case("token", TOKENS)
@each_case("text", ["{}hi", "hi{}", "hi{}\n", "hi {} {}", "hi\n{}"])
def test_a_token_of_a_template_is_no_word_to_people(token: str, text: str) -> None:
    assert split(text.format(token, token)).text == "hi"


def test_the_mark_of_a_call_without_one_is_no_word_to_people_either() -> None:
    assert split("hi [TOOL_CALLS] you and me").text == "hi  you and me"
    assert split("hi [TOOL_CALLS]").text == "hi"


@each_case("token", [*TOKENS, "[TOOL_CALLS]", "<|im_start|>user", "[INST]", "<|channel|>analysis<|message|>x<|end|>"])
def test_a_token_in_code_is_an_example(token: str) -> None:
    for text in (f"The token `{token}` ends it.", f"Look:\n```\nhi{token}\n```\nso", f"``{token}``"):
        assert split(text) == RawAnswer(text=text)


@each_case("text", ["a <|b|> c", "<|x|> = 3", "x <y> z", "f <| g |> h", "if a<b|c>d", "[INS]", "a</sup>"])
def test_what_only_looks_like_a_token_stays(text: str) -> None:
    assert split(text).text == text


@each_case("lead", LEADS)
def test_the_beginning_of_its_turn_is_no_part_of_it(lead: str) -> None:
    assert split(f"{lead}hi").text == "hi"
    answer = split(f"{lead}<think>hm</think>\nhi</s>")
    assert (answer.text, answer.reasoning) == ("hi", "hm")


@each_case(
    "turn",
    [
        "<|im_start|>user", "<|im_start|> system", "<|start_header_id|>user<|end_header_id|>", "<start_of_turn>user",
        "<|user|>", "<|observation|>", "<｜User｜>", "[INST]", "<|USER_TOKEN|>",
    ],
)  # fmt: skip
def test_what_it_wrote_for_somebody_else_is_cut_off(turn: str) -> None:
    assert split(f"hi<|im_end|>\n{turn}\nhow are you?<|im_end|>\n<|im_start|>assistant\nwell").text == "hi"
    assert split(f"{turn} how are you?").text == ""


def test_a_token_that_was_cut_is_one_all_the_same() -> None:
    for end in range(5, len("<|im_end|>")):
        assert split("hi" + "<|im_end|>"[:end]).text == "hi"
    assert split("a <|").text == "a <|"


FINAL = "<|start|>assistant<|channel|>final<|message|>hi<|return|>"


@each_case(
    ("text", "said", "thought"),
    [
        (f"<|channel|>analysis<|message|>hm<|end|>{FINAL}", "hi", "hm"),
        (f"hm<|end|>{FINAL}", "hi", "hm<|end|>"),
        ("<|channel|>final<|message|>hi", "hi", ""),
        ("<|channel|>commentary<|message|>wait<|end|>", "wait", ""),
        ("hi<|channel|>analysis<|message|>hm", "hi", "hm"),
        ("hi<|channel|>", "hi", ""),
        ("hi<|channel|>analysis", "hi", ""),
        ("a <|start|>assistant<|channel|>commentary<|message|>b", "a\n\nb", ""),
    ],
)
def test_channels_are_told_apart(text: str, said: str, thought: str) -> None:
    assert (split(text).text, split(text).reasoning) == (said, thought)


@pytest.mark.parametrize(
    "piece",
    ["[THINK]", "[/THINK]", "a◁think▷", "<|im_start|>", "<s>", "<|channel|>", "</s>", "<|im_", "<|a", "[TOOL_CALLS]",
     "functools[", "`<think>", "<start_of_turn>", "[INST", "<|start|>a", "{", '{"name":', " \n", "<|python_tag|>"],
)  # fmt: skip
@pytest.mark.timeout(10)
def test_very_many_tokens_hold_nobody_up(piece: str) -> None:
    split(piece * (200_000 // len(piece)))
    split("{" + piece * (200_000 // len(piece)) + "}")


@pytest.mark.parametrize("mark", ["<|channel|>", "<|start_header_id|>"])
@pytest.mark.parametrize("rest", ["a", " ", "a ", "<|constrain|>"])
@pytest.mark.timeout(10)
def test_a_beginning_without_an_end_holds_nobody_up(mark: str, rest: str) -> None:
    text = mark + rest * (200_000 // len(rest)) + "."
    assert not split_leaks(RawAnswer(text=text), tools=()).tool_calls
