"""The pages of the documentation site, and the check of a built site."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.check_site import main, read_pages
from scripts.site_pages import ROOT, ROOT_PAGES, collect_pages, relink, site_places

HOME = '<nav><a href="other.html">Other</a></nav><article>{}</article>'
OTHER = '<article><h1 id="top">1. Other</h1></article>'


def check_site(directory: Path, body: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the report of the check for a site whose home page has the body."""
    (directory / "index.html").write_text(HOME.format(body))
    (directory / "other.html").write_text(OTHER)
    code = main([str(directory)])
    said = capsys.readouterr().err
    assert code == (1 if said else 0)
    return said


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#top">link</a>',
        '<a href="https://example.org/page">another site</a>',
        '<a href="#here" id="here">anchor</a>',
        '<a href=".">this directory</a>',
        '<img src="data:image/png;base64,AAAA">',
        '<link rel="canonical" href="https://example.org/docs/">',
        "<pre>- a list in code, and [x](y)</pre>",
        "<p>A line - with a dash, and 2. a number</p>",
    ],
)
def test_valid_page_passes(body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_site(tmp_path, body, capsys) == ""


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">x</a>', "links to gone.html: there is no such file"),
        ('<a href="other.html#gone">x</a>', "links to other.html#gone: there is no such anchor"),
        ('<a href="#gone">x</a>', "links to #gone: there is no such anchor"),
        ('<img src="gone.png">', "links to gone.png: there is no such file"),
        ('<img src="https://example.org/x.png">', "fetches https://example.org/x.png"),
        ('<script src="//example.org/x.js"></script>', "fetches //example.org/x.js"),
        ('<link rel="preconnect" href="https://example.org">', "fetches https://example.org"),
        ("<style>@import 'https://example.org/x.css'</style>", "fetches https://example.org/x.css"),
        ('<p style="background: url(https://example.org/x)">', "fetches https://example.org/x"),
        ('<pre class="mermaid">graph</pre>', "needs a script of a CDN"),
        ("<p>Items:\n- one</p>", "Markdown that was not rendered: - one"),
        ("<p>See [that][there].</p>", "Markdown that was not rendered"),
    ],
)
def test_broken_page_is_reported(
    body: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in check_site(tmp_path, body, capsys)


def test_style_sheet_that_fetches_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theme.css").write_text("@font-face { src: url('https://example.org/font') }")
    assert "theme.css fetches https://example.org/font" in check_site(tmp_path, "", capsys)


def test_page_outside_of_the_navigation_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stray.html").write_text(OTHER)
    assert "stray.html is not in the navigation" in check_site(tmp_path, "", capsys)


def test_links_from_the_root_of_the_host_are_resolved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "404.html").write_text('<a href="/docs/other.html">x</a><a href="/docs/">y</a>')
    home = '<link rel="canonical" href="https://example.org/docs/index.html">'
    assert check_site(tmp_path, home, capsys) == ""


def test_void_elements_do_not_extend_the_navigation(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<nav><br><img src="x.png"></nav><a href="y.html">y</a>')
    assert read_pages(tmp_path)["index.html"].navigation == []


PLACES = {
    "docs/index.md": "index.md",
    "docs/adr/README.md": "adr/README.md",
    "docs/reference/api.md": "reference/api.md",
    "CHANGELOG.md": "changelog.md",
}


@pytest.mark.parametrize(
    ("source", "link", "rewritten"),
    [
        ("docs/reference/api.md", "[x](../../CHANGELOG.md#new)", "[x](../changelog.md#new)"),
        ("docs/index.md", "[x](../CHANGELOG.md)", "[x](changelog.md)"),
        ("CHANGELOG.md", "[x](docs/reference/api.md)", "[x](reference/api.md)"),
        ("CHANGELOG.md", "[x](docs/adr/)", "[x](adr/README.md)"),
        ("docs/index.md", "[x](https://example.org/a)", "[x](https://example.org/a)"),
        ("docs/index.md", "[x](#here)", "[x](#here)"),
        ("docs/index.md", "`call[0](argument)`", "`call[0](argument)`"),
    ],
)
def test_links_are_rewritten_for_the_new_place_of_a_page(
    source: str, link: str, rewritten: str
) -> None:
    assert relink(link, source, PLACES) == rewritten


def test_every_page_is_collected(tmp_path: Path) -> None:
    directory = tmp_path / "pages"
    collect_pages(ROOT, directory)
    assert all((directory / place).is_file() for place in site_places(ROOT).values())
    assert set(ROOT_PAGES.values()) <= {
        path.relative_to(directory).as_posix() for path in directory.rglob("*.*")
    }
