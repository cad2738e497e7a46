from pathlib import Path

from cogwork.core.files.file_identity import identify


def test_identity_changes_with_the_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    before = identify(file.stat())
    assert identify(file.stat()) == before
    file.write_text("three")
    assert identify(file.stat()) != before


def test_identity_changes_when_the_file_is_replaced(tmp_path: Path) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_text("one")
    before = identify(file.stat())
    other.write_text("one")
    other.replace(file)
    assert identify(file.stat()) != before
