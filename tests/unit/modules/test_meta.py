"""The meta.json of a module: paths outside its folder are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.modules.meta import BadMeta, read_meta


def read_entrypoint(folder: Path, content: str) -> Path | None:
    (folder / "meta.json").write_text(content)
    meta = read_meta(folder)
    return meta.resolve_file("entrypoint") if meta is not None else None


def test_entrypoint_is_resolved(tmp_path: Path) -> None:
    assert read_entrypoint(tmp_path, '{"entrypoint": "bin/run"}') == tmp_path / "bin" / "run"
    assert read_entrypoint(tmp_path, "[]") is None


@pytest.mark.parametrize(
    "name",
    [
        '"../run"',
        '"/bin/sh"',
        "5",
        '["run"]',
        '"run\\u0000"',
        '"\\ud800"',
        '"loop/run"',
    ],
    ids=lambda name: name[:20],
)
def test_entrypoint_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BadMeta, match="it must name a file inside the folder"):
        read_entrypoint(tmp_path, f'{{"entrypoint": {name}}}')


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadMeta, match="cannot be read"):
        read_entrypoint(tmp_path, "[" * 100_000)
