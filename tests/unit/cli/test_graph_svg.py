"""The SVG of a machine's resources."""

from __future__ import annotations

import random
import time
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.machines import BELT, SCALE, WORKSHOP, component, machines, many

from cogwork.cli.graph_svg import as_svg
from cogwork.cli.graph_text import DiagramNode
from cogwork.config.diagnostics import replace_unprintable

SVG = "{http://www.w3.org/2000/svg}"


def drawn(nodes: list[DiagramNode]) -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(nodes))


def titles(picture: ElementTree.Element, kind: str) -> list[str]:
    return [
        element.findtext(f"{SVG}title", "")
        for element in picture.iter()
        if element.get("class", "").startswith(f"{kind} ")
    ]


def texts(picture: ElementTree.Element, kind: str) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text") if text.get("class") == kind]


def test_a_machine() -> None:
    picture = drawn(WORKSHOP)
    assert picture.findtext(f"{SVG}title") == "5 resources, 1 ready, 3 unhealthy, 1 configuring"
    assert texts(picture, "name") == ["belt", "cropped", "scale", "net", "find"]
    assert "camera · acme:cameras:usb" in texts(picture, "about")
    assert f"{BELT}\nacme:cameras:usb\nunhealthy: cannot open /dev/video7: no such device" in (
        titles(picture, "box")
    )
    assert sorted(titles(picture, "lines")) == [
        "cropped depends on belt",
        "find depends on cropped",
        "find depends on net",
    ]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([], "this machine has no resources"),
        (WORKSHOP[-1:], "1 resource, 1 ready"),
        ([DiagramNode(SCALE, "fake", "?", None, (BELT,))], "1 resource, 1 unconfigured, 1 missing"),
    ],
)
def test_it_says_what_it_shows(nodes: list[DiagramNode], said: str) -> None:
    picture = drawn(nodes)
    assert picture.findtext(f"{SVG}title") == said
    shown = " ".join("".join(picture.find(f"{SVG}text").itertext()).split("●"))  # type: ignore[union-attr]
    assert Counter(shown.replace(" ", "")) == Counter(said.replace(",", "").replace(" ", ""))


def test_a_long_reason_is_cut_off_and_whole_in_the_tooltip() -> None:
    reason = "the end of this is " + "far " * 40 + "away"
    picture = drawn([DiagramNode(SCALE, "fake", "unhealthy", reason)])
    (shown,) = texts(picture, "why")
    assert shown.endswith("…")
    assert reason.startswith(shown[:-1])
    assert titles(picture, "box") == [f"{SCALE}\nfake\nunhealthy: {reason}"]


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    name = "camera-above-the-third-conveyor-belt-on-the-left-number-12"
    (shown,) = texts(drawn([DiagramNode(component(name), "fake", "ready")]), "name")
    beginning, _, end = shown.partition("…")
    assert len(shown) < 35
    assert name.startswith(beginning)
    assert name.endswith(end)
    assert end.endswith("number-12")


def test_it_is_legible_in_the_dark_and_needs_nothing_else() -> None:
    text = as_svg(WORKSHOP)
    assert "@media (prefers-color-scheme:dark)" in text
    assert text.count("http") == 1, "only the name of the format"
    assert not {"script", "image", "use", "a"} & {
        element.tag.removeprefix(SVG) for element in ElementTree.fromstring(text).iter()
    }


@given(machines())
def test_every_node_and_edge_is_there(nodes: list[DiagramNode]) -> None:
    picture = drawn(nodes)
    names = {node.name for node in nodes} | {name for node in nodes for name in node.depends_on}
    edges = {(node.name, needed) for node in nodes for needed in node.depends_on}
    assert len(titles(picture, "box")) == len(names)
    assert len(titles(picture, "lines")) == len({needed for _, needed in edges})


@given(machines(st.from_regex(r"\Ardk:component:sensor/[a-z]{1,5}\Z")))
def test_lines_say_who_depends_on_whom(nodes: list[DiagramNode]) -> None:
    said = {
        (start, needed)
        for title in titles(drawn(nodes), "lines")
        for starts, _, needed in [
            title.replace(" depends on ", " depend on ").partition(" depend on ")
        ]
        for start in starts.split(", ")
    }
    assert said == {
        (node.short_name, needed.rpartition("/")[2]) for node in nodes for needed in node.depends_on
    }


@given(machines(), st.randoms())
def test_the_order_they_come_in_does_not_matter(
    nodes: list[DiagramNode], chance: random.Random
) -> None:
    assert as_svg(chance.sample(nodes, len(nodes))) == as_svg(nodes)


@pytest.mark.parametrize("evil", ["</title><script>", "]]>", "&amp;", '"onload="x', "\0\x1b\ud800"])
def test_hostile_words_stay_words(evil: str) -> None:
    picture = drawn([DiagramNode(evil, evil, evil, evil, (evil, f"rdk:{evil}:{evil}/{evil}"))])
    plain = drawn([DiagramNode("x", "x", "x", "x", ("x", "rdk:x:x/x"))])
    assert vocabulary(picture) == vocabulary(plain)
    assert titles(picture, "box")[0] == "\n".join(
        [replace_unprintable(evil)] * 2 + [replace_unprintable(f"{evil}: {evil}")]
    )


def vocabulary(picture: ElementTree.Element) -> tuple[set[str], set[str], set[str]]:
    elements = list(picture.iter())
    return (
        {element.tag for element in elements},
        {name for element in elements for name in element.attrib},
        {element.get("class", "") for element in elements},
    )


def test_three_hundred_within_a_second() -> None:
    nodes = many(300)
    start = time.process_time()
    text = as_svg(nodes)
    assert time.process_time() - start < 1
    assert len(titles(ElementTree.fromstring(text), "box")) == 300


def test_lines_to_trouble_have_its_colour() -> None:
    classes = [element.get("class", "") for element in drawn(WORKSHOP).iter(f"{SVG}g")]
    assert sorted(filter(None, classes)) == [
        "lines configuring",
        "lines unhealthy trouble",
        "lines unhealthy trouble",
    ]
