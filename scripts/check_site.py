"""Checks a built documentation site, and exits 1 if something in it is broken.

- Every link, anchor and image within the site resolves. Links to other sites are not followed.
- Nothing is fetched from elsewhere: the site works offline.
- Every page is in the navigation.
- No Markdown is left unrendered.

    python -m scripts.check_site site
"""

from __future__ import annotations

import argparse
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

Attributes = Sequence[tuple[str, str | None]]

HOME = "index.html"
NOT_FOUND = "404.html"
_FETCHING = ("src", "srcset", "poster", "data", "href")
"""Attributes whose URL the browser fetches by itself; `href` not for `<a>`."""
_UNFETCHED_RELATIONS = {"canonical", "next", "prev", "alternate", "license", "me"}
_CSS_URL = re.compile(r"""url\(\s*["']?(?!data:)([^"')]+)|@import\s+["']([^"']+)""")
_UNRENDERED = re.compile(r"\n\s*(?:[-*+]|\d+\.) |```|\|\s*-{3,}|\]\(|\]\[")
_LITERAL = {"code", "pre", "script", "style", "svg", "h1", "h2", "h3"}
_DRAWN_BY_A_CDN = "mermaid"
"""The class of elements for which the theme's script fetches a library from a CDN."""


@dataclass
class Page(HTMLParser):
    """The content, links and fetched URLs of one page."""

    path: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    navigation: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    canonical: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag not in _VOID:
            self._open.append(tag)
        if "id" in values:
            self.ids.add(values["id"])
        if _DRAWN_BY_A_CDN in values.get("class", "").split():
            self.problems.append(f"needs a script of a CDN for its {_DRAWN_BY_A_CDN} diagram")
        if tag == "a":
            self._add_link(values)
        elif tag == "link" and values.get("rel") in _UNFETCHED_RELATIONS:
            if values["rel"] == "canonical":
                self.canonical = values["href"]
        else:
            self.fetched += [
                url for name in _FETCHING if (url := values.get(name)) and not is_inline(url)
            ]
        self.fetched += css_urls(values.get("style", ""))

    def _add_link(self, values: Mapping[str, str]) -> None:
        if "href" in values:
            self.links.append(values["href"])
            if "nav" in self._open:
                self.navigation.append(values["href"])

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            self.fetched += css_urls(data)
        if "article" in self._open and not _LITERAL.intersection(self._open):
            found = _UNRENDERED.search(data)
            if found:
                line = data[found.start() :].strip().partition("\n")[0]
                self.problems.append(f"has Markdown that was not rendered: {line[:60]}")


_VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta"),
    *("source", "track", "wbr"),
}
"""Elements without an end tag."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a built documentation site.")
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args(argv).directory
    pages = read_pages(directory)
    problems = sorted(set(find_problems(directory, pages)))
    for problem in problems:
        print(problem, file=sys.stderr)
    links = sum(len(page.links) + len(page.fetched) for page in pages.values())
    print(f"{len(pages)} pages with {links} links: {len(problems)} problems")
    return 1 if problems else 0


def read_pages(directory: Path) -> dict[str, Page]:
    """The pages of a site, by path."""
    pages = {}
    for file in sorted(directory.rglob("*.html")):
        page = Page(file.relative_to(directory).as_posix())
        page.feed(file.read_text(encoding="utf-8"))
        pages[page.path] = page
    return pages


def find_problems(directory: Path, pages: Mapping[str, Page]) -> Iterator[str]:
    if HOME not in pages:
        yield f"{directory} has no {HOME}"
        return
    base = urlsplit(pages[HOME].canonical).path.removesuffix(HOME) or "/"
    site = Site(directory, pages, base)
    for page in pages.values():
        yield from (f"{page.path} {problem}" for problem in page.problems)
        yield from (f"{page.path} fetches {url}" for url in page.fetched if is_external(url))
        for url in (*page.links, *page.fetched):
            if not is_external(url) and (problem := site.problem_of(page.path, url)):
                yield f"{page.path} links to {url}: {problem}"
    for sheet in sorted(directory.rglob("*.css")):
        urls = css_urls(sheet.read_text(encoding="utf-8"))
        yield from (f"{sheet.name} fetches {url}" for url in urls if is_external(url))
    linked = {site.target_of(HOME, url)[0] for url in pages[HOME].navigation}
    for path in pages.keys() - linked - {HOME, NOT_FOUND}:
        yield f"{path} is not in the navigation: add it to `nav` in mkdocs.yml"


@dataclass(frozen=True)
class Site:
    directory: Path
    pages: Mapping[str, Page]
    base: str
    """The path at which the site is published. Links of the 404 page start with this path."""

    def problem_of(self, page: str, url: str) -> str | None:
        """Return the reason why a link is broken; None if it works."""
        path, anchor = self.target_of(page, url)
        if not (self.directory / path).is_file():
            return "there is no such file"
        if anchor and path in self.pages and anchor not in self.pages[path].ids:
            return "there is no such anchor"
        return None

    def target_of(self, page: str, url: str) -> tuple[str, str]:
        """Return the file that a URL names, and the anchor in the file."""
        parts = urlsplit(url)
        path = unquote(parts.path)
        if path.startswith(self.base):
            path = path.removeprefix(self.base)
        elif path:
            path = posixpath.join(posixpath.dirname(page), path)
        else:
            path = page
        path = posixpath.normpath(path)
        if (self.directory / path).is_dir():
            path = posixpath.normpath(posixpath.join(path, HOME))
        return path, unquote(parts.fragment)


def css_urls(text: str) -> list[str]:
    """Yield the URLs that a style sheet fetches."""
    return [found[1] or found[2] for found in _CSS_URL.finditer(text)]


def is_external(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.scheme or parts.netloc)


def is_inline(url: str) -> bool:
    return url.startswith("data:")


if __name__ == "__main__":
    sys.exit(main())
