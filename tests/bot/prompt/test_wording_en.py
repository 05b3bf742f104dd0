from __future__ import annotations

from string import Formatter

from bot.prompt.prompt_language import is_chinese
from bot.prompt.wording_en import EN as WORDS


def test_the_rules_name_every_heading() -> None:
    fields = {name for _, name, _, _ in Formatter().parse(WORDS.rules) if name}
    assert fields == {"name", "own", "earlier", "record", "forwarded", "question", "added", "now", "recalled", "notes"}
    assert WORDS.language == "en"
    assert not is_chinese(WORDS.rules)
    assert len(WORDS.rules.splitlines()) == 10  # a rule is a line, however it is folded in the file
