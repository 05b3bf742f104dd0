from __future__ import annotations

from string import Formatter

from bot.prompt.wording_zh import ZH as WORDS


def test_the_rules_name_every_heading() -> None:
    fields = {name for _, name, _, _ in Formatter().parse(WORDS.rules) if name}
    assert fields == {"name", "own", "earlier", "record", "forwarded", "question", "added", "now", "recalled", "notes"}
    assert WORDS.language == "zh"
    assert len(WORDS.rules.splitlines()) == 10  # a rule is a line, however it is folded in the file
