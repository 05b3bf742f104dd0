from __future__ import annotations

import base64

import pytest

from bot.core.errors import AlreadySaid
from bot.core.segments import SendSegment
from frostagent.engine.tool_execution import run_body
from frostagent.types.errors import InvalidArguments, ToolDenied, ToolError, ToolFailed
from frostagent.types.ports import Speaker, Subagents
from frostagent.types.results import ToolResult
from frostagent.types.speech import Attachment, Confirmed, Receipt, Refused, Unknown
from frostagent.types.tools import ToolContext
from tests.cases import each_case
from tests.fakes import tool_context
from tools.use_subagent import MAX_FILES, MUCH, WHOLE, CodeBlock, blocks_of, files_in, name_of, use_subagent

LONG = "print('蛇')\n" * 200
SNAKE = f"写好了：\n\n```python snake.py\n{LONG}```\n\n运行即可。"


class Staff:
    """Helpers that say what they were asked; Sleeper never answers, and Writer gives what it was made with."""

    names = ("Coder", "Sleeper", "Writer")

    def __init__(self, answer: str = "") -> None:
        self.answer = answer

    async def ask(self, context: ToolContext, name: str, content: str) -> ToolResult:
        if name == "Sleeper":
            raise ToolFailed("Sleeper did not answer within 120 s. Say so.")
        return ToolResult(self.answer if name == "Writer" else f"{name}: {content}", tainted=True)


class Mouth:
    """A speaker that answers with these receipts, or fails."""

    def __init__(self, *receipts: Receipt, failure: ToolError | None = None) -> None:
        self.receipts = receipts
        self.failure = failure
        self.sent: list[SendSegment] = []

    async def say(self, segments: tuple[SendSegment, ...], *, session: str = "") -> tuple[Receipt, ...]:
        if self.failure is not None:
            raise self.failure
        self.sent += segments
        return self.receipts


async def use(**arguments: object) -> str:
    return words_of(await run_body(use_subagent, tool_context({Subagents: Staff()}), use_subagent.check(arguments)))


def words_of(answer: object) -> str:
    """Its words; what it read is told with them."""
    assert isinstance(answer, ToolResult)
    assert answer.tainted
    return answer.content


async def write(answer: str, mouth: Mouth) -> str:
    context = tool_context({Subagents: Staff(answer), Speaker: mouth})
    return words_of(await run_body(use_subagent, context, {"subagent_name": "Writer", "content": "task"}))


async def test_the_whole_task_goes_to_the_named_helper_and_its_words_come_back() -> None:
    assert await use(subagent_name="Coder", content=" print\none ") == "Coder:  print\none "


@each_case("content", ["", " \n"])
async def test_an_empty_task_is_not_handed_on(content: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        await use(subagent_name="Sleeper", content=content)
    assert caught.value.fields == ("content: empty",)


async def test_what_went_wrong_there_is_told_here() -> None:
    with pytest.raises(ToolFailed, match="Sleeper did not answer"):
        await use(subagent_name="Sleeper", content="task")


async def test_both_arguments_are_needed() -> None:
    with pytest.raises(InvalidArguments) as caught:
        await use(name="Coder")
    assert caught.value.fields == (
        "subagent_name: required",
        "content: required",
        "name: no such field, leave it out",
    )


def test_the_model_is_told_that_nobody_needs_to_be_told() -> None:
    assert "do not announce it" in use_subagent.description
    assert use_subagent.needs == (Subagents,)
    assert list(use_subagent.parameters["properties"]) == ["subagent_name", "content"]


# --- files ------------------------------------------------------------------------------------------


async def test_long_code_is_sent_as_a_file_and_the_model_reads_that_and_all_of_it() -> None:
    mouth = Mouth(Confirmed("1"))
    told = await write(SNAKE, mouth)
    (sent,) = mouth.sent
    assert isinstance(sent, Attachment)
    assert (sent.kind, sent.name) == ("file", "snake.py")
    assert base64.b64decode(sent.source.removeprefix("base64://")).decode() == LONG
    assert told.startswith("(Sent to the chat as a file: snake.py (200 lines). Do not repeat it in your answer")
    assert told.endswith(f"\n\n{SNAKE}")


async def test_short_code_and_words_stay_with_the_model() -> None:
    for answer in ("只有文字", "```sh\npip install x\n```\n```python\n" + "a = 1\n" * 9 + "```"):
        mouth = Mouth()
        assert await write(answer, mouth) == answer
        assert mouth.sent == []


async def test_without_a_chat_there_is_nothing_but_the_words() -> None:
    context = tool_context({Subagents: Staff(SNAKE)})
    arguments = {"subagent_name": "Writer", "content": "task"}
    assert words_of(await run_body(use_subagent, context, arguments)) == SNAKE


@each_case(
    "mouth",
    [Mouth(Refused("no space")), Mouth(failure=ToolDenied("muted")), Mouth()],
)
async def test_what_qq_does_not_take_is_to_be_said_in_words(mouth: Mouth) -> None:
    told = await write(SNAKE, mouth)
    assert told.split("\n\n")[0].endswith("ive it in words.)")
    assert told.endswith(SNAKE)


async def test_what_the_chat_has_already_is_told_to_be_there() -> None:
    told = await write(SNAKE, Mouth(failure=AlreadySaid("said")))
    assert told.startswith("(Its code was sent to the chat as a file before. Do not send it again")
    assert told.endswith(SNAKE)


async def test_of_several_the_model_knows_which_arrived() -> None:
    two = f"```html index.html\n{LONG}```\n```css\n{LONG}```"
    told = await write(two, Mouth(Confirmed("1"), Refused("no")))
    assert "Sent to the chat as a file: index.html (200 lines) (it may arrive later)." in told
    assert "Not delivered: code.css (200 lines); give that in words." in told


async def test_what_may_have_arrived_is_not_said_again() -> None:
    assert "(it may arrive later). Do not repeat it" in await write(SNAKE, Mouth(Unknown("?")))


# --- what becomes a file ----------------------------------------------------------------------------


def names(answer: str) -> list[str]:
    return [file.name for file in files_in(answer, "Coder")]


def fenced(info: str, code: str = "x\n" * 9) -> str:
    return f"```{info}\n{code}```\n"


def test_much_code_or_several_pieces_are_files() -> None:
    assert names(fenced("python", "x" * MUCH + "\n\n\n\n\n")) == ["code.py"]
    assert names(fenced("python") + fenced("go")) == ["code.py", "code.go"]
    assert names(fenced("python") + fenced("python") + fenced("python")) == ["code.py", "code2.py", "code3.py"]


def test_too_many_pieces_and_endless_words_are_one_file_of_all() -> None:
    assert names(fenced("c") * (MAX_FILES + 1)) == ["coder.md"]
    assert names("很长" * WHOLE) == ["coder.md"]
    (file,) = files_in("很长" * WHOLE, "/../")
    assert (file.name, file.text) == ("answer.md", "很长" * WHOLE + "\n")


@each_case(
    ("block", "name"),
    [
        (CodeBlock("python snake.py", "", ""), "snake.py"),
        (CodeBlock('js title="src/app.mjs"', "", ""), "app.mjs"),
        (CodeBlock("python:game/main.py", "", ""), "main.py"),
        (CodeBlock("c++", "// hello.cc\nint x;", ""), "hello.cc"),
        (CodeBlock("html", "<!-- 首页.html -->", ""), "首页.html"),
        (CodeBlock("sh", "x", "保存为 `run.sh`："), "run.sh"),
        (CodeBlock("sh", "x", r"C:\evil\..\run.sh"), "run.sh"),
        (CodeBlock("C#", "x", ""), "code.cs"),
        (CodeBlock("Python3.12", "x", "第 3.5 版"), "code.py"),
        (CodeBlock("brainfuck", "x", ""), "code.txt"),
        (CodeBlock("", "x", ""), "code.txt"),
        (CodeBlock("python ../../etc/passwd", "x", ""), "code.py"),
    ],
)
def test_a_file_is_called_as_the_answer_calls_it_else_by_its_language(block: CodeBlock, name: str) -> None:
    assert name_of(block) == name


def test_blocks_are_read_as_markdown_has_them() -> None:
    text = "a\n\n~~~py\n```\nx\n~~~\n````md\n```\ny\n```\n````\nz\n```\ncut off"
    assert list(blocks_of(text)) == [
        CodeBlock("py", "```\nx\n", "a"),
        CodeBlock("md", "```\ny\n```\n", ""),
        CodeBlock("", "cut off\n", "z"),
    ]
