from __future__ import annotations

import contextlib
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.logs.pattern import Pattern

CAMERA = "rdk.resource_manager.rdk:component:camera/cam"


@pytest.mark.parametrize(
    ("pattern", "logger", "matches"),
    [
        ("rdk.resource_manager.rdk:component:camera/*", CAMERA, True),
        ("rdk.*camera*", CAMERA, True),
        ("rdk.*", CAMERA, True),
        ("*", CAMERA, True),
        (CAMERA, CAMERA, True),
        ("rdk.resource_manager", CAMERA, False),
        ("camera", CAMERA, False),
        ("rdk.resource_manager.rdk:component:sensor/*", CAMERA, False),
        ("rdk.networking.*", "rdk.networking.app_connection", True),
        ("rdk.modmanager.acme.StdErr", "rdk.modmanager.acme.StdErr", True),
        ("acme", "acme", True),
        ("acme", "acme2", False),
        # Regular expressions keep their meaning.
        (r"rdk\.networking", "rdk.networking", True),
        (r"rdk\.(ftdc|config)", "rdk.config", True),
        (r"rdk\.(ftdc|config)", "rdk.tracing", False),
        (r"rdk\.resource_manager\..*:camera/.*", CAMERA, True),
        (r"rdk.[a-z]+", "rdk.config", True),
        # One of the two readings is enough: as an expression, .* is also nothing.
        ("rdk.networking.*", "rdk.networking", True),
        ("*camera*", CAMERA, True),
        ("rdk.a[b", "rdk.ab", None),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, logger: str, matches: bool | None) -> None:
    if matches is None:
        with pytest.raises(ValueError, match="neither a wildcard nor a regular expression"):
            Pattern.parse(pattern)
    else:
        assert Pattern.parse(pattern).matches(logger) is matches


def test_a_wildcard_takes_the_dot_as_it_is() -> None:
    wildcard, _ = Pattern.parse("rdk.*").readings
    assert not wildcard.fullmatch("rdk")
    assert not wildcard.fullmatch("rdkx")
    assert wildcard.fullmatch("rdk.config")


def test_an_empty_pattern_is_none() -> None:
    with pytest.raises(ValueError, match="the pattern is empty"):
        Pattern.parse("")


@pytest.mark.parametrize("text", ["a{99999999999999}", "(" * 5000 + ")" * 5000, "(?P<a>x)(?P<a>y)"])
def test_what_cannot_be_compiled_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="neither a wildcard nor a regular expression"):
        Pattern.parse(text)


def test_an_odd_expression_makes_no_noise() -> None:
    with warnings.catch_warnings(record=True) as noise:
        warnings.simplefilter("always")
        Pattern.parse("[[a]--b]")
    assert noise == []


@given(st.text(min_size=1))
def test_any_text_is_a_pattern_or_a_sentence(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert Pattern.parse(text).text == text


def test_equal_texts_are_equal_patterns() -> None:
    assert Pattern.parse("rdk.*") == Pattern.parse("rdk.*")
    assert Pattern.parse("rdk.*") != Pattern.parse("rdk.a*")
