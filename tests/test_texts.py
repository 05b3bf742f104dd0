"""What an operator reads is in both languages: no sentence of the commands and of the settings stands outside a
`Phrase`, a `Bilingual` or what is made of them, but for the few below.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.test_architecture import ROOT, fail_with

PLACES = ("bot/cli", "config", "adapters/control", "adapters/simulator/commands.py", "bot/runtime/reloading.py")
PROSE = re.compile(r"[A-Za-z][a-z']+,? [a-z][a-z']+|[\u4e00-\u9fff]")
"""Two words in a row, or Chinese: a name, a key or a path has neither."""
LETTER = re.compile(r"[A-Za-z\u4e00-\u9fff]")

BILINGUAL = {"Phrase", "Bilingual", "About", "described"}
LOGGED = {"debug", "info", "warning", "error", "exception", "critical", "log"}
"""Log lines are English: operators search them."""
TOLD = {"tell": 0, "say": 0, "show": 0, "fail": 0, "echo": 0, "BadParameter": 0, "Wrong": 0, "Problem": 1}
"""What takes a text for people, and its first argument that is one. An f-string there would be English alone."""

WORDS = {
    # names of checks in the JSON of the doctor; people read those of `checks.NAMES`
    *("console proxy", "data folder", "media url", "model tools", "new groups"),
    *("onebot host", "onebot port", "web port"),
    # what a model, or QQ, is asked by the doctor; what NapCat answers
    *("Answer with one word: are you there?", "What is the weather in Beijing? Call the tool."),
    *("The weather of a city", "The city", "What colour is this picture? Answer with one word.", "红", "紅"),
    *(
        "FrostAgent doctor: 测试图片 a test picture",
        "北京市",
        "无法获取用户信息",
        "好友",
        "识别URL失败",
        "文件下载失败",
    ),
    # what people type, and what typer says
    *("是", "好", "同意", "make run", "make run ARGS=", "does not take a value", "Missing command."),
    # names of threads and tasks, errors of our own code, the end of a log line
    *("standard input", "control connection", "Windows has no Unix sockets", ": Ctrl-C ends it at once"),
    *(" is no address of a bot", " is no socket", " was not answered in "),
    # the head of a file that is written for programs
    "# Made by `init` because .env leaves them out. What .env says wins; keep this file with your backups.\n",
    # what a simulated person says, and names of commands in the simulator
    *(
        ": @bot ",
        "路人",
        "周六去爬山吗",
        "去，几点",
        "八点，山门口见",
        "muteall, liftall",
        "offline, online",
        "deaf, hearing",
    ),
    *("otherids on|off", "otherquotes on|off", "selfreport on|off", "enter, leave", "poke, typing"),
}
"""Texts that are no sentence for an operator."""
PATTERNS = {"compile", "search"}  # of regular expressions


def name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def texts_alone(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Each text for people that is in one language, with its line."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return  # a docstring
        case ast.Call(func=ast.Attribute(attr=name)) if name in LOGGED:
            return
        case ast.Call(func=function, args=arguments):
            name = name_of(function)
            if name in BILINGUAL or name in PATTERNS:
                return
            for one in arguments[TOLD[name] :] if name in TOLD else ():
                yield from ((one.lineno, text) for text in literal(one) if LETTER.search(text) and text not in WORDS)
        case ast.Constant(value=str(text)) if PROSE.search(text) and text not in WORDS:
            yield node.lineno, text
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from texts_alone(child)


def literal(node: ast.expr) -> Iterator[str]:
    """The words in an argument that is no phrase: of a text, of an f-string, of either of two."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from literal(part)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            yield from literal(one)
            yield from literal(other)
        case _:
            pass


def test_every_sentence_for_an_operator_is_in_both_languages() -> None:
    files = [file for place in PLACES for file in (ROOT / place).rglob("*.py")]
    files += [ROOT / place for place in PLACES if place.endswith(".py")]
    assert len(files) > 40
    fail_with(
        f"{file.relative_to(ROOT)}:{line}: {text!r} is in one language; make it a Phrase"
        for file in files
        for line, text in texts_alone(ast.parse(file.read_text("utf-8")))
    )


@pytest.mark.parametrize(
    "code",
    [
        'HELP = "lists what can go wrong"',
        'raise Wrong("empty", fix)',
        'tell(f"{name}: written")',
        'fail("no" if x else y)',
        'Problem(name, "is" + end, fix)',
        'rows = {"state": "正常"}',
    ],
)
def test_a_text_in_one_language_is_found(code: str) -> None:
    assert list(texts_alone(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        'HELP = Phrase("列出", "lists what can go wrong")',
        '"""A docstring with words."""',
        'logger.info("the journal is read again")',
        "tell(WRITTEN.fill(file=path))",
        'Problem(f"{name} (--x)", EMPTY.fill(), fix)',
        'tell("")',
    ],
)
def test_a_text_in_both_or_in_the_log_is_none(code: str) -> None:
    assert not list(texts_alone(ast.parse(code)))
