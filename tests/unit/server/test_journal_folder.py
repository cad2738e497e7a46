from pathlib import Path

from cogwork.server.journal_folder import prepare_journal_folder


def test_new_folder_is_private_and_found_by_earlier_versions(tmp_path: Path) -> None:
    folder = prepare_journal_folder(tmp_path / "home")
    assert folder == tmp_path / "home" / "journal"
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "m.jsonl").write_text("new\n")
    assert (tmp_path / "home" / "story" / "m.jsonl").read_text() == "new\n"


def test_history_of_an_earlier_version_is_kept(tmp_path: Path) -> None:
    (tmp_path / "story").mkdir()
    (tmp_path / "story" / "m.jsonl").write_text("old\n")
    for _ in range(2):  # the second start finds what the first has left
        folder = prepare_journal_folder(tmp_path)
        assert (folder / "m.jsonl").read_text() == "old\n"
        assert (tmp_path / "story").readlink() == Path("journal")


def test_server_of_an_earlier_version_that_still_runs_goes_on_writing(tmp_path: Path) -> None:
    (tmp_path / "story").mkdir()
    with (tmp_path / "story" / "m.jsonl").open("a") as running:
        folder = prepare_journal_folder(tmp_path)
        running.write("late\n")
    (tmp_path / "story" / "m-rotated.jsonl").write_text("")
    assert (folder / "m.jsonl").read_text() == "late\n"
    assert (folder / "m-rotated.jsonl").exists()


def test_former_folder_that_is_a_link_to_another_disk_stays_there(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "m.jsonl").write_text("old\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "story").symlink_to(disk)
    for _ in range(2):
        assert (prepare_journal_folder(home) / "m.jsonl").read_text() == "old\n"
    assert (home / "story" / "m.jsonl").read_text() == "old\n"


def test_both_folders_are_left_alone(tmp_path: Path) -> None:
    for name in ("story", "journal"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.jsonl").write_text(name)
    assert (prepare_journal_folder(tmp_path) / "m.jsonl").read_text() == "journal"
    assert (tmp_path / "story" / "m.jsonl").read_text() == "story"


def test_home_that_cannot_be_used_does_not_prevent_the_start(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert prepare_journal_folder(tmp_path / "home") == tmp_path / "home" / "journal"
