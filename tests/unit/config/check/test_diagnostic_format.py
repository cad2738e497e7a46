"""Format of diagnostics: caret position, and no control characters in the output."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.config.workshop import load_config, sensor

from cogwork.config.check.diagnostic_format import as_json, as_reported, as_text, summarize
from cogwork.config.check.diagnostics import ConfigLocation, Diagnostic, Effect, RelatedInfo
from cogwork.config.check.loader import LocatedDiagnostic
from cogwork.config.check.redacted_text import SourceExcerpt
from cogwork.config.schema import codes
from cogwork.config.text.positions import Position


def format_lines(text: str, code: str) -> list[str]:
    fault = next(f for f in load_config(text).diagnostics if f.diagnostic.code.id == code)
    return as_text(fault, "m.json").split("\n")


def columns(text: str) -> list[str]:
    """Return the character of each terminal column; a wide character takes two columns."""
    cells: list[str] = []
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me"):
            continue
        wide = unicodedata.east_asian_width(character) in "WF"
        cells += [character] * (2 if wide else 1)
    return cells


def text_under_caret(lines: list[str]) -> str:
    _, line, caret = lines[:3]
    start, end = caret.index("^"), caret.rindex("^") + 1
    return "".join(dict.fromkeys(columns(line)[start:end]))


def test_text_has_position_message_excerpt_and_hint() -> None:
    text = '{\n  "components": [],\n  "componets": []\n}'
    (fault,) = load_config(text).diagnostics
    assert as_text(fault, "machine.json") == (
        'machine.json:3:3  error  unknown key "componets"  [E103]\n'
        '  3 |   "componets": []\n'
        '    |   ^^^^^^^^^^^ did you mean "components"?'
    )


def test_text_shows_the_related_position() -> None:
    (fault,) = load_config('{"debug": true,\n\n\n\n\n\n\n\n\n "debug": false}').diagnostics
    assert as_text(fault, "m.json") == (
        'm.json:10:2  error  duplicate key "debug"  [E003]\n'
        '  10 |  "debug": false}\n'
        "     |  ^^^^^^^\n"
        "    m.json:1:2  the first occurrence, which is used\n"
        '  1 | {"debug": true,\n'
        "    |  ^^^^^^^"
    )


BEFORE = [
    "",
    "plain",
    "日本語",
    "한국어",
    "全角ＡＢ",
    "😀🤖",
    "e\u0301a\u0308",
    "ที่นี่",
    "नमस्ते",
    "1\u20e3",
    "é",
    "﷽",
    "a\u200db\u202ec\u2066",
]


@pytest.mark.parametrize("before", BEFORE)
def test_caret_is_under_the_fault(before: str) -> None:
    lines = format_lines(f'{{"revision": "{before}", "debug": 5}}', "E101")
    assert text_under_caret(lines) == "5"
    lines = format_lines(f'{{\t"revision": "{before}",\t"zzz": 5}}', "E103")
    assert text_under_caret(lines) == '"z'


@pytest.mark.parametrize("name", ["日本", "😀", "e\u0301", "ที่", "\t"])
def test_caret_is_as_wide_as_the_fault(name: str) -> None:
    written = name.replace("\t", "\\t")
    lines = format_lines(
        json.dumps({"log": [{"pattern": "a", "level": name}]}, ensure_ascii=False), "E402"
    )
    caret = lines[2][lines[2].index("^") : lines[2].rindex("^") + 1]
    assert len(caret) == len(columns(f'"{written}"'))


def test_tab_takes_one_column() -> None:
    _, line, caret = format_lines('{\n\t\t"debug":\t5\n}', "E101")[:3]
    assert line == '  2 |   "debug": 5'
    assert caret == "    |            ^"


@pytest.mark.parametrize("before", [0, 79, 80, 81, 150, 199, 200, 201, 5_000, 300_000])
@pytest.mark.parametrize("after", [0, 5_000])
def test_long_line_is_cut_around_the_caret(before: int, after: int) -> None:
    text = '{"revision": "' + "x" * before + '", "debug": 57, "log": [' + " " * after + "]}"
    lines = format_lines(text, "E101")
    assert text_under_caret(lines) == "57"
    assert all(len(line) <= 180 for line in lines)


def test_fault_longer_than_the_excerpt_is_cut() -> None:
    lines = format_lines('{"revision": "' + "x" * 500 + '", "debug": "' + "y" * 1000 + '"}', "E101")
    assert all(len(line) <= 300 for line in lines)
    assert text_under_caret(lines) == '"y'


def test_output_has_no_control_characters_from_the_file() -> None:
    nasty = "\x1b[31m\x07\x08\x7f\x9b2J\u202e\u2028\r\u200b"
    escaped = json.dumps(nasty)[1:-1]
    texts = [
        f'{{"revision": 5, // {nasty}\n "debug": 5 /* {nasty} */, "x": 1}}',
        f'{{"{escaped}": 1, "debug": "{escaped}", "{escaped}": 2}}',
        f'{{"log": [{{"pattern": "({escaped}", "level": "{escaped}"}}]}}',
        f'{{"debug": "{nasty}"}}',
        f'{{"debug": {nasty}}}',
        f"{{{nasty}: 1}}",
        f'{{"a": "\\{nasty}"}}',
        json.dumps({"components": [sensor("a", depends_on=[nasty]), sensor(nasty), sensor(nasty)]}),
        json.dumps({"components": [{"name": nasty, "api": nasty, "model": nasty}]}),
        json.dumps({"modules": [{"name": "m", "executable_path": nasty, "type": nasty}]}),
    ]
    for text in texts:
        load = load_config(text)
        assert load.diagnostics
        for fault in load.diagnostics:
            for file in ("m.json", f"{nasty}.json", None):
                assert as_text(fault, file).replace("\n", "").isprintable()
        for spec in load.result.specs:
            assert spec.fault is None or spec.fault.isprintable()


def test_message_about_a_huge_key_is_short() -> None:
    for fault in load_config('{"' + "k" * 300_000 + '": 1}').diagnostics:
        assert len(as_text(fault, "m.json")) < 1000


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_formatted_as_printable_text(before: str, after: str) -> None:
    written = [json.dumps(part, ensure_ascii=False) for part in (before, after)]
    for text in (
        f'{{{written[0]}: 1, "debug": {written[1]}}}',
        f'{before}{{"debug": 5}}{after}',
    ):
        for fault in load_config(text).diagnostics:
            shown = as_text(fault, "m.json")
            assert shown.replace("\n", "").isprintable()
            assert fault.excerpt is not None
            json.dumps(as_json(fault, "m.json"))


def test_json_form_has_all_fields() -> None:
    (fault,) = load_config('{"debug": true,\n "debug": false}').diagnostics
    assert as_json(fault, "m.json") == {
        "code": "E003",
        "severity": "error",
        "message": 'duplicate key "debug"',
        "effect": "it is ignored",
        "hint": None,
        "pointer": "/debug",
        "file": "m.json",
        "line": 2,
        "column": 2,
        "related": [
            {
                "message": "the first occurrence, which is used",
                "pointer": "/debug",
                "file": "m.json",
                "line": 1,
                "column": 2,
            }
        ],
    }
    assert list(as_json(fault, None)) == [key for key in as_json(fault, "m.json") if key != "file"]


def test_reported_form_names_the_resource() -> None:
    wrong = {**sensor("s"), "attributes": {"no_such_key": 1}}
    loaded = load_config(json.dumps({"components": [wrong], "debug": 5}))
    reported = list(as_reported(loaded.diagnostics, loaded.result, "m.json"))
    assert {each["pointer"]: each["resource"] for each in reported} == {
        "/components/0/attributes/no_such_key": "rdk:component:sensor/s",
        "/debug": None,
    }


def test_text_without_a_file_name_has_line_and_column() -> None:
    (fault,) = load_config('{\n"debug": 5}').diagnostics
    assert as_text(fault, None) == (
        "line 2, column 10  error  expected true or false, got the number 5  [E101]\n"
        '  2 | "debug": 5}\n'
        "    |          ^"
    )


def test_text_without_an_excerpt_shows_pointers() -> None:
    diagnostic = Diagnostic(
        codes.DUPLICATE_NAME,
        "taken",
        ConfigLocation(("a/b", 0)),
        Effect.IGNORED,
        "rename it",
        (RelatedInfo("first", ConfigLocation(())),),
    )
    text = as_text(LocatedDiagnostic(diagnostic, None, (None,)), "m.json")
    assert text == "/a~1b/0  error  taken  [E202]\n    rename it\n    m.json  first"


def test_each_part_of_the_text_has_its_style() -> None:
    (fault,) = load_config('{"network": {"bind_address": ":1"}}').diagnostics
    text = as_text(fault, "m.json", lambda text, style: f"<{style}>{text}</>")
    assert text.startswith("<bold>m.json:1:30</>  <yellow>warning</>  ")
    assert "<dim>[W502]</>" in text
    assert "<red>^^^^</>" in text


def test_caret_may_be_past_the_end_of_the_line() -> None:
    diagnostic = Diagnostic(codes.NOT_JSON, "m", ConfigLocation(()), Effect.REFUSED)
    text = as_text(LocatedDiagnostic(diagnostic, SourceExcerpt(Position(1, 4), 1, "abc")), "f")
    assert text.split("\n")[2] == "    |    ^"


def test_summary_counts_errors_and_warnings() -> None:
    assert summarize(
        load_config('{"x": 1, "y": 2, "network": {"bind_address": ":1"}}').diagnostics
    ) == ("2 errors, 1 warning")
    assert summarize(load_config('{"x": 1}').diagnostics) == "1 error"
    assert summarize(()) == ""
