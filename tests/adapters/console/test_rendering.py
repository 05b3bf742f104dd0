from __future__ import annotations

import re
from pathlib import Path

from adapters.console.rendering import StaticFiles
from tests.adapters.console.samples import trace
from tests.adapters.console.visiting import SECRET, SHORT, visiting

TEMPLATES = Path(__file__).parents[3] / "adapters/console/templates"


def test_no_template_marks_anything_as_safe_or_has_script_or_style_in_it() -> None:
    for file in TEMPLATES.glob("*.html"):
        text = file.read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup|<style|\sstyle=|\son\w+=|javascript:", text), file.name
        assert all(re.match(r'<script type="module" src="', found) for found in re.findall(r"<script[^>]*", text))


async def test_secrets_are_masked_where_people_wrote_them_and_nowhere_else() -> None:
    async with visiting() as place:
        await place.log_in()
        place.journal.traces.append(trace(f"'{SECRET}' is {SHORT}"))
        for path in ("/turns", "/turns/t1"):
            page = (await place.ask("GET", path))[1]
            assert SECRET not in page, path
            assert "&#39;***&#39; is ***" in page, path
        assert "{ display: none; }" in (await place.ask("GET", f"{StaticFiles().path}/console.css"))[1]
