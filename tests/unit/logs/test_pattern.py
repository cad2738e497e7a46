from __future__ import annotations

import contextlib
import time
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
def test_pattern_matches_whole_logger_names(
    pattern: str, logger: str, matches: bool | None
) -> None:
    if matches is None:
        with pytest.raises(ValueError, match="neither a wildcard nor a regular expression"):
            Pattern.parse(pattern)
    else:
        assert Pattern.parse(pattern).matches(logger) is matches


def test_dot_in_a_wildcard_is_literal() -> None:
    wildcard, _ = Pattern.parse("rdk.*").expressions
    assert not wildcard.fullmatch("rdk")
    assert not wildcard.fullmatch("rdkx")
    assert wildcard.fullmatch("rdk.config")


def test_empty_pattern_raises() -> None:
    with pytest.raises(ValueError, match="the pattern is empty"):
        Pattern.parse("")


@pytest.mark.parametrize(
    "text", ["a{1001}", "(" * 400, "((a{100}){100}){100}", "(?=x)y", r"(a)\1", "\ud800"]
)
def test_pattern_that_cannot_be_compiled_raises(text: str) -> None:
    with pytest.raises(ValueError, match="neither a wildcard nor a regular expression"):
        Pattern.parse(text)


def test_ambiguous_expression_emits_no_warning() -> None:
    with warnings.catch_warnings(record=True) as noise:
        warnings.simplefilter("always")
        Pattern.parse("[[a]--b]")
    assert noise == []


@given(st.text(min_size=1))
def test_any_text_is_parsed_or_raises_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert Pattern.parse(text).text == text


def test_too_long_pattern_raises() -> None:
    with pytest.raises(ValueError, match="10000 characters; the maximum is 1000"):
        Pattern.parse("x" * 10_000)


@pytest.mark.parametrize("text", [r"(([a-z:_./]+)+)+!", "(a|aa)+!", "(.*)*x(.*)*y(.*)*z"])
def test_hostile_expression_takes_linear_time(text: str) -> None:
    """A backtracking engine would practically never finish any of these."""
    pattern = Pattern.parse(text)
    started = time.perf_counter()
    assert not pattern.matches("a" * 10_000)
    assert time.perf_counter() - started < 5


def test_unsupported_syntax_is_named_in_the_error() -> None:
    with pytest.raises(ValueError, match="look-around and back-references are not supported"):
        Pattern.parse("(?!rdk).*")


def test_equal_texts_are_equal_patterns() -> None:
    assert Pattern.parse("rdk.*") == Pattern.parse("rdk.*")
    assert Pattern.parse("rdk.*") != Pattern.parse("rdk.a*")
