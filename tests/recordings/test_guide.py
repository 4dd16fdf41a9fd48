"""The guide to recordings says what the package does."""

import contextlib
import io
import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "recordings.md"


def test_the_snippets_of_the_guide_print_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.MULTILINE | re.DOTALL
    )
    assert len(blocks) >= 5
    names = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == expected
