"""Every check says what it found in both languages, where it finds it out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import config
from bot.cli import doctor
from bot.cli.checks import NAMES, Outcome
from bot.core.engine_words import ENGINE_WORDS
from bot.core.language import Bilingual, Phrase
from frostagent.models.openai.client import REASONS
from tests.owners import both

MADE = {"ok", "warning", "failure", "judge"}
HAN = re.compile("[\u4e00-\u9fff]")
PLACES = re.compile(r"\{(\w+)\}")


def nodes() -> Iterator[ast.AST]:
    for folder in (Path(doctor.__file__).parent, Path(config.__file__).parent):
        for file in sorted(folder.glob("*.py")):
            yield from ast.walk(ast.parse(file.read_text("utf-8")))


def text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def pairs() -> Iterator[tuple[str, str]]:
    """Chinese and English, as they are written."""
    for node in nodes():
        match node:
            case ast.Call(func=ast.Name(id="Phrase"), args=[zh, en]) if text(en):
                yield text(zh), text(en)
            case ast.Call(func=ast.Name(id="Bilingual"), args=[en, zh]) if text(en):
                yield text(zh), text(en)


def test_every_check_has_a_name_in_chinese() -> None:
    names = {*Outcome}
    for node in nodes():
        match node:
            case ast.Call(func=ast.Name(id=name), args=[check, *_]) if name in {*MADE, "Probe"}:
                names.add(text(check))
    assert len(names) > 30
    assert sorted(names - {*NAMES, ""}) == []


def test_every_line_is_a_pair_with_the_same_places() -> None:
    said = list(pairs())
    assert len(said) > 150
    worded = [(PLACES.sub("", zh).strip(" ：:。（）"), en) for zh, en in said]
    assert [(zh, en) for zh, en in worded if HAN.search(en) or (zh and not HAN.search(zh))] == []


def test_no_check_speaks_one_language_alone() -> None:
    for node in nodes():
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, *lines]) if name in MADE:
                alone = [line for line in lines if text(line) or isinstance(line, ast.JoinedStr)]
                assert not alone, ast.unparse(node)
            case ast.Assign(targets=[ast.Name(id="said" | "fix")], value=ast.Constant() | ast.JoinedStr()):
                raise AssertionError(ast.unparse(node))
            case _:
                pass


def test_a_sentence_within_another_is_in_its_language() -> None:
    server = Bilingual("a OneBot server", "某个 OneBot 服务")
    said = Phrase("{server} 登录的是账号 {account}", "{server} has account {account}").fill(server=server, account=5)
    assert both(said) == ("某个 OneBot 服务 登录的是账号 5", "a OneBot server has account 5")
    assert deepcopy(server).zh == server.zh


def test_why_the_connection_to_a_model_failed_is_told_in_both_languages() -> None:
    reasons = [getattr(ENGINE_WORDS, why) for _, why in REASONS]
    assert all(HAN.search(why.zh) and why.en.isascii() for why in reasons)
