"""The check of phrases finds them in code and documentation, and the tree has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.check_language import find_phrases, list_files, main


@pytest.mark.parametrize(
    ("text", "line", "phrase"),
    [
        ("The size is that of the camera.", 1, "that of"),
        ("One.\nThose of others are not.", 2, "those of"),
        ("# It belongs to whoever\n# asks.", 1, "whoever"),
        ("# The color is that\n    # of the page.", 1, "that of"),
        ("/** Moves of its\n * own accord. */", 1, "of its own accord"),
        ("refuses what is no file", 1, "what is no"),
    ],
)
def test_phrase_is_found_with_its_line(text: str, line: int, phrase: str) -> None:
    assert list(find_phrases(text)) == [(line, phrase)]


@pytest.mark.parametrize(
    "text", ["the part that often fails", "what is not a file", "that, of course", "what is now"]
)
def test_other_words_are_left_alone(text: str) -> None:
    assert list(find_phrases(text)) == []


def test_finding_says_where_it_is_and_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.md"
    file.write_text("Fine.\n\nIt moves of its own accord.\n")
    assert main([str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == f'{file}:3: "of its own accord": write "by itself"\n'
    assert err == "1 to reword; CONTRIBUTING.md says why\n"


def test_check_covers_code_and_documentation() -> None:
    files = list_files()
    for each in ("src/cogwork/__init__.py", "docs/tutorial.md", "README.md", "web/src/main.ts"):
        assert each in files
    assert "CHANGELOG.md" not in files
