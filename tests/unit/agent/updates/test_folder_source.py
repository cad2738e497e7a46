"""A folder of releases: what its channel offers, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogwork.agent.errors import SourceUnavailable
from cogwork.agent.release.manifest import archive_name
from cogwork.agent.updates.folder_source import FolderSource
from cogwork.agent.updates.source import UpdateTarget
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product

SERVER, AGENT = Product.SERVER, Product.AGENT


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "file://{}/"])
async def test_channel_names_the_releases_beside_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "channel.json").write_text(json.dumps({"server": "1.5.0", "toaster": 7}))
    name = archive_name(SERVER, "1.5.0", PLATFORM)
    expected = {SERVER: UpdateTarget("1.5.0", f"file://{tmp_path}/{name}")}
    assert await FolderSource(form.format(tmp_path)).check({}, ()) == expected


async def test_both_products(tmp_path: Path) -> None:
    (tmp_path / "channel.json").write_text('{"server": "1.5.0", "agent": "1.4.0"}')
    found = await FolderSource(str(tmp_path)).check({}, ())
    assert {product: each.version for product, each in found.items()} == {
        SERVER: "1.5.0",
        AGENT: "1.4.0",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ('["server"]', "cannot be read"),
        ('{"server": 7}', "7 is not a version"),
        ('{"server": "../1"}', "'../1' is not a version"),
        (json.dumps({"server": "1", "more": "x" * (1 << 16)}), "more than 65536 bytes"),
    ],
)
async def test_channel_that_cannot_be_used(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "channel.json").write_text(text)
    with pytest.raises(SourceUnavailable, match=reason):
        await FolderSource(str(tmp_path)).check({}, ())


async def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"missing/channel\.json cannot be read"):
        await FolderSource(str(tmp_path / "missing")).check({}, ())


async def test_folder_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(url: str, limit: int) -> bytes:
        raise TimeoutError

    monkeypatch.setattr("cogwork.agent.updates.folder_source.fetch_small", hang)
    with pytest.raises(SourceUnavailable, match="did not answer within 60 s"):
        await FolderSource(str(tmp_path)).check({}, ())
