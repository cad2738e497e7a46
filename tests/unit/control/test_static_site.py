"""The files of the control page: what is served, how, and to whom."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from cogwork.control import static_site
from cogwork.control.static_site import CONTENT_SECURITY_POLICY, StaticSite

HTML = "<!doctype html>" + "x" * 2000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "assets").mkdir(parents=True)
    (site / "index.html").write_text(HTML)
    (site / "assets" / "index-1a2b.js").write_text("script")
    (site / "key.pem").write_text("secret")
    (tmp_path / "outside.html").write_text("secret")
    (site / "link.html").symlink_to(tmp_path / "outside.html")
    (site / ".hidden.json").write_text("secret")
    return site


async def test_files_are_served_under_their_names(directory: Path) -> None:
    site = StaticSite(directory)
    assert site.problem is None
    for path in ("/", "/index.html"):
        file = await site.read(path)
        assert file is not None
        assert (file.body, file.media_type, file.is_immutable) == (
            HTML.encode(),
            "text/html",
            False,
        )
    script = await site.read("/assets/index-1a2b.js")
    assert script is not None
    assert script.is_immutable


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.html",
        "/assets/../../outside.html",
        "//etc/passwd",
        "/assets",
        "/key.pem",
        "/x",
        "/link.html",
        "/.hidden.json",
    ],
)
def test_nothing_else_is_served(directory: Path, path: str) -> None:
    assert path not in StaticSite(directory)


async def test_browsers_get_compressed_files_once(directory: Path) -> None:
    file = await StaticSite(directory).read("/")
    assert file is not None
    plain = file.respond(Headers())
    assert (plain.body, plain.headers.get("content-encoding")) == (HTML.encode(), None)
    packed = file.respond(Headers({"accept-encoding": "br, gzip"}))
    assert gzip.decompress(bytes(packed.body)) == HTML.encode()
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    again = file.respond(Headers({"if-none-match": packed.headers["etag"]}))
    assert (again.status_code, again.body) == (304, b"")


def test_policy_allows_no_inline_code() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY


async def test_removed_file_is_not_found(directory: Path) -> None:
    site = StaticSite(directory)
    (directory / "index.html").unlink()
    assert await site.read("/") is None


def test_directory_without_a_page_has_none(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text("secret")
    assert "/machine.json" not in StaticSite(tmp_path)
    assert StaticSite(tmp_path).problem == f"{tmp_path} has no readable index.html"
    missing = tmp_path / "missing"
    assert StaticSite(missing).problem == f"{missing} has no readable index.html"


@pytest.mark.parametrize(
    ("is_clone", "advice"),
    [(True, "run `make page` in the clone"), (False, "`pip install --force-reinstall --no-deps")],
)
def test_package_without_a_page_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_clone: bool, advice: str
) -> None:
    monkeypatch.setattr(static_site, "BUILT_SITE", tmp_path / "site")
    monkeypatch.setattr(static_site, "CLONE", tmp_path / "package.json")
    if is_clone:
        (tmp_path / "package.json").touch()
    problem = StaticSite(tmp_path / "site").problem
    assert problem is not None
    assert "install Node" in problem
    assert advice in problem
