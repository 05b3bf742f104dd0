from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).parents[3] / "adapters/console/templates"


def test_no_template_marks_anything_as_safe_or_has_script_or_style_in_it() -> None:
    for file in TEMPLATES.glob("*.html"):
        text = file.read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup|<style|\sstyle=|\son\w+=|javascript:", text), file.name
        assert all(re.match(r'<script type="module" src="', found) for found in re.findall(r"<script[^>]*", text))
