"""Parsers of the configuration: JSON, substitution, placeholders, secrets, and all of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy
from tests.support.paths import TESTS
from tests.unit.config.workshop import load_config

from cogwork.config.check import diagnostic_format
from cogwork.config.schema.schedule import parse_schedule
from cogwork.config.source.last_good import DamagedCopy, LastGood
from cogwork.config.text.file import Unreadable, decode_text
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.placeholders import (
    PackagePath,
    fill_placeholders,
    find_environment_placeholders,
)
from cogwork.config.text.positions import Json, Pointer
from cogwork.config.text.secrets import environment_scrubber, mask_secrets
from cogwork.config.text.substitution import substitute
from cogwork.core import duration

COMPLETE = TESTS / "unit" / "config" / "complete.json"
ENVIRONMENT = {"HOME": "/home/cog", "QUOTE": 'a"b', "NUMBER": "5", "BROKEN": "}{", "LONG": "x" * 50}
PACKAGES = {"detector": PackagePath("ml_model", "/data/detector")}

_JSON_TOKENS = (
    *(character.encode() for character in "{}[],:\"\\/*$#'\n\r\t-+.eE"),
    b"true",
    b"null",
    b"//",
    b"/*",
    b"*/",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"\xef\xbb\xbf",
    b"1e999",
)
_FORMS = (b"${", b"}", b"$$", b"$HOME", b"${QUOTE}", b"$BROKEN", b"${NUMBER:-", b":+", b"$schema")


def target_json(data: bytes) -> None:
    text = decode_lossy(data)
    try:
        document = read_json(text)
    except JsonSyntaxError as fault:
        _check_span(fault.span.start, fault.span.end, text)
        if _is_plain_json(text):
            raise ContractViolation("JSON that the standard library reads is refused") from fault
        return
    _check_spans(document.value, (), lambda pointer: document.value_span(pointer), text)
    for double in document.duplicates:
        _check_span(double.first.start, double.second.end, text)


def _is_plain_json(text: str) -> bool:
    """Strict JSON within the limits of the reader: depth, digits, and size of numbers."""
    if len(text) > 100:  # no more than 100 brackets, no number with more than 300 digits
        return False
    try:
        json.loads(text, parse_constant=_raise_value_error, parse_float=_parse_finite).__class__  # noqa: B018
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _raise_value_error(constant: str) -> float:
    raise ValueError(constant)


def _parse_finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(text)
    return value


def _check_spans(value: Json, pointer: Pointer, span_of: object, text: str) -> None:
    span = span_of(pointer)  # type: ignore[operator]
    _check_span(span.start, span.end, text)
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value or ())
        if isinstance(value, list)
        else ()
    )
    for step, each in inner:
        _check_spans(each, (*pointer, step), span_of, text)


def _check_span(start: int, end: int, text: str) -> None:
    if not 0 <= start <= end <= len(text):
        raise ContractViolation(f"a span from {start} to {end} in {len(text)} characters")


def target_substitute(data: bytes) -> None:
    text = decode_lossy(data)
    done = substitute(text, ENVIRONMENT)
    longest = max(map(len, ENVIRONMENT.values())) + 10
    if len(done.text) > (1 + longest) * (len(text) + 1):
        raise ContractViolation(f"{len(text)} characters became {len(done.text)}")
    for unset in done.unset:
        _check_span(unset.span.start, unset.span.end, text)
    from cogwork.config.text.positions import Span

    step = max(1, len(done.text) // 16)
    for start in range(0, len(done.text), step):
        origin = done.original_span(Span(start, min(len(done.text), start + step)))
        _check_span(origin.start, origin.end, text)


def target_placeholders(data: bytes) -> None:
    text = decode_lossy(data)
    value: Json = {"a": text, "b": [text, 1]}
    filled, faults = fill_placeholders(value, PACKAGES, ENVIRONMENT)
    if not faults and text.count("${") == 0 and filled is not value:
        raise ContractViolation("a value without placeholders was copied")
    if sum(len(fault.message) for fault in faults) > 2000 * (1 + len(faults)) + 20 * len(text):
        raise ContractViolation("the messages are longer than what they are about")
    find_environment_placeholders(text)


def target_secrets(data: bytes) -> None:
    text = decode_lossy(data)
    shown = mask_secrets(text)
    if len(shown) != len(text) or shown.count("\n") != text.count("\n"):
        raise ContractViolation("the text without secrets has another size")
    if mask_secrets(shown.replace("*", "x")).count("\n") != text.count("\n"):
        raise ContractViolation("line breaks were hidden")
    environment_scrubber(text, ENVIRONMENT)(text)


def target_load(data: bytes) -> None:
    with allow_errors(data, Unreadable):
        result = load_config(decode_text(data), ENVIRONMENT)
        for fault in result.diagnostics[:50]:
            diagnostic_format.as_text(fault, "machine.json")
            json.dumps(diagnostic_format.as_json(fault, "machine.json"), allow_nan=False).encode()


def target_schedule(data: bytes) -> None:
    with allow_errors(data, ValueError):
        parse_schedule(decode_lossy(data))


def target_duration(data: bytes) -> None:
    with allow_errors(data, ValueError):
        seconds = duration.parse(decode_lossy(data))
        if abs(seconds) < 9e9 and duration.parse(duration.render(seconds)) != seconds:
            raise ContractViolation(f"{seconds!r} does not survive being written")


def target_last_good(data: bytes) -> None:
    """Decode also with a valid checksum, so that the data behind it is tested."""
    from cogwork.config.source.last_good import _header

    place = LastGood(Path("/nowhere"))
    with allow_errors(data, DamagedCopy):
        place._decode(data)
    with allow_errors(data, DamagedCopy):
        place._decode(_header(data) + data)


def _encode_texts(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


def _config_seeds() -> list[bytes]:
    return [
        COMPLETE.read_bytes(),
        *_encode_texts(
            "{}",
            '{"components": [{"name": "a", "api": "rdk:component:camera", "model": "fake",'
            ' "attributes": {"width": 3, "x": [1.5e3, null, true]}}]} // comment',
            '{"services": [{"name": "v", "type": "vision", "model": "rdk:builtin:mlmodel",'
            ' "depends_on": ["a"], "log_configuration": {"level": "debug"}}]}',
            '{"modules": [{"name": "m", "executable_path": "/bin/acme", "env": {"TOKEN": "abc"}}],'
            ' "remotes": [{"name": "r", "address": "localhost:1"}]}',
            '{"network": {"bind_address": "[::1]:80"}, "jobs": [{"name": "j", "schedule": "10m",'
            ' "resource": "a", "method": "DoCommand", "command": {"a": [1]}}]}',
            '{"log": [{"pattern": "rdk.*", "level": "debug"}], "auth": {"handlers": []}}',
        ),
    ]


_SCHEDULES = _encode_texts("10m", "1h30m", "*/15 * * * *", "0 0 1,15 * 5", "0 30 9 * * MON-FRI",
                    "continuous", "0 0 L * *", "0 0 * * 5#2", "0 0 1-7/2 JAN,FEB *")  # fmt: skip

TARGETS = (
    Target(
        "config.json",
        target_json,
        _config_seeds,
        ("cogwork.config.text.json_reader", "cogwork.config.text.json_errors"),
        _JSON_TOKENS,
    ),
    Target(
        "config.substitute",
        target_substitute,
        lambda: _encode_texts(
            '{"a": "$HOME/${QUOTE}", $NUMBER: ${NUMBER:-7}, "$schema": 1} // $X',
            '"${A:-x}${B:+y}$$ \\$HOME ${LONG=z}" /* ${C} */ ${BROKEN}',
        ),
        ("cogwork.config.text.substitution",),
        (*_FORMS, *_JSON_TOKENS),
    ),
    Target(
        "config.placeholders",
        target_placeholders,
        lambda: _encode_texts(
            "${packages.ml_model.detector}/x ${packages.detector} ${environment.HOME}",
            "${packages.module.detector} ${nope} ${environment.NOPE}",
        ),
        ("cogwork.config.text.placeholders",),
        (b"${packages.", b"${environment.", b"}", b".", b"ml_model"),
    ),
    Target(
        "config.secrets",
        target_secrets,
        lambda: [
            *_encode_texts(
                '{"password": "abc", "auth": {"x": [1, "y"]}, "env": {"TOKEN": "t"}}',
                "{'api_key': 'x', token: ${HOME}, \"a\": /* password x */ \"b\"} // secret: 5",
            ),
            *_config_seeds(),
        ],
        ("cogwork.config.text.secrets",),
        (b'"password"', b"token", b"auth", b"env", b"=", *_JSON_TOKENS, *_FORMS),
    ),
    Target(
        "config.load",
        target_load,
        _config_seeds,
        (
            "cogwork.config.check.loader",
            "cogwork.config.check.checker",
            "cogwork.config.check.crosscheck",
            "cogwork.config.check.validator",
            "cogwork.config.check.diagnostic_collector",
            "cogwork.config.check.redacted_text",
        ),
        (*_JSON_TOKENS, *_FORMS, b'"components"', b'"name"', b'"attributes"', b'"depends_on"'),
        largest=8192,
    ),
    Target(
        "config.schedule",
        target_schedule,
        lambda: _SCHEDULES,
        (
            "cogwork.config.schema.schedule:parse_schedule",
            "cogwork.config.schema.schedule:_parse_interval",
            "cogwork.config.schema.schedule:_parse_cron",
        ),
        (b"*", b"/", b",", b"-", b"#", b"L", b"W", b"MON", b"JAN", b" ", b"continuous"),
        largest=300,
    ),
    Target(
        "config.duration",
        target_duration,
        lambda: _encode_texts("5m", "1m30s", "200ms", "-1.5h", ".5us", "0", "+1µs", "2540400h"),
        ("cogwork.core.duration",),
        (b"ns", b"us", b"\xc2\xb5s", b"ms", b"s", b"m", b"h", b".", b"-", b"0" * 40),
        largest=400,
    ),
    Target(
        "config.last_good",
        target_last_good,
        lambda: [b"{}", '{"a": "ü"}'.encode(), b"cogwork-last-good 1 2 abc\n{}"],
        ("cogwork.config.source.last_good:LastGood",),
    ),
)
