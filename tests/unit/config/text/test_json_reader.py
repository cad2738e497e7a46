import json
import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import DuplicateKey, read_json
from cogwork.config.text.positions import (
    Json,
    Pointer,
    Position,
    Span,
    format_pointer,
    position_at,
)

SCALARS: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers(-(10**299), 10**299)
    | st.integers(-1000, 1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(['"', "\\", "//", "/* */", "\n", "\u2028", "é", "😀", ",]", "\x7f"])
)
KEYS = st.text(max_size=6) | st.sampled_from(["a", "/", "~1", "", "😀", '"', "\\"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
GAPS = ["", "", "", " ", "\n", "\r\n\t", "// a ] } , \" '\n", "/* , ] } */", "/***/", "/* // */ "]
PIECES = [
    *'{}[]",:',
    *("true", "nul", "1", "-", "0", ".5", "e9", "1e999", '"a"', "'b'", "\\", "\\u12", "\\ud800"),
    *("NaN", "/", "//", "/*", "*/", "#", "\n", " ", "\t", "\x01", "é", "$x"),
]
STYLES: list[dict[str, bool | int | tuple[str, str] | None]] = [
    {},
    {"ensure_ascii": False},
    {"indent": 2},
    {"indent": 0, "ensure_ascii": False},
    {"separators": (",", ":")},
]


def dumps(value: Json, style: int) -> str:
    return json.dumps(value, **STYLES[style])  # type: ignore[arg-type]


def decorate(clean: str, seed: int) -> str:
    """Add whitespace and comments between tokens and trailing commas before closing brackets."""
    chance = random.Random(seed)
    parts = [chance.choice(GAPS)]
    before = ""
    for token in TOKEN.findall(clean):
        if token in ("]", "}") and before not in ("[", "{") and chance.random() < 0.5:
            parts += [",", chance.choice(GAPS)]
        parts += [token, chance.choice(GAPS)]
        before = token
    return "".join(parts)


def walk(value: Json, pointer: Pointer = ()) -> Iterator[tuple[Pointer, Json]]:
    yield pointer, value
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, (*pointer, index))
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*pointer, key))


def slice_span(text: str, span: Span | None) -> str:
    assert span is not None
    assert 0 <= span.start <= span.end <= len(text)
    return text[span.start : span.end]


def read_invalid(text: str) -> JsonSyntaxError:
    with pytest.raises(JsonSyntaxError) as caught:
        read_json(text)
    assert str(caught.value) == caught.value.message
    slice_span(text, caught.value.span)
    return caught.value


@pytest.mark.parametrize("style", range(len(STYLES)))
@given(value=VALUES, seed=st.integers(0, 2**32))
def test_valid_json_reads_like_json_loads(style: int, value: Json, seed: int) -> None:
    clean = dumps(value, style)
    for text in (clean, decorate(clean, seed), "\ufeff" + clean):
        document = read_json(text)
        assert json.dumps(document.value) == json.dumps(json.loads(clean))
        assert document.duplicates == ()
        assert document.text == text


@given(value=VALUES, seed=st.integers(0, 2**32), style=st.integers(0, len(STYLES) - 1))
def test_spans_cover_their_key_and_value(value: Json, seed: int, style: int) -> None:
    text = decorate(dumps(value, style), seed)
    document = read_json(text)
    for pointer, inner in walk(value):
        found = slice_span(text, document.value_span(pointer))
        again = json.loads(found) if not isinstance(inner, list | dict) else read_json(found).value
        assert json.dumps(again) == json.dumps(inner)
        if pointer and isinstance(pointer[-1], str):
            assert json.loads(slice_span(text, document.key_span(pointer))) == pointer[-1]
        else:
            assert document.key_span(pointer) is None


def parse_strictly(text: str) -> Json:
    """Parse with json.loads, but raise ValueError for everything we refuse on purpose."""

    def refuse(raw: str) -> float:
        raise ValueError(raw)

    def integer(raw: str) -> int:
        return int(raw) if len(raw) <= 300 else int(refuse(raw))

    def real(raw: str) -> float:
        return float(raw) if abs(float(raw)) != float("inf") else refuse(raw)

    def unique(pairs: list[tuple[str, Json]]) -> Json:
        members = dict(pairs)
        return members if len(members) == len(pairs) else refuse("a key twice")

    value: Json = json.loads(
        text,
        parse_constant=refuse,
        parse_int=integer,
        parse_float=real,
        object_pairs_hook=unique,
    )
    json.dumps([value, text], ensure_ascii=False).encode()
    return value


def check_read_or_error(text: str) -> None:
    try:
        expected = parse_strictly(text)
    except ValueError:
        try:
            read_json(text)
        except JsonSyntaxError as fault:
            slice_span(text, fault.span)
    else:
        assert json.dumps(read_json(text).value) == json.dumps(expected)


@given(
    st.text()
    | st.text(alphabet='{}[]",:\\/*-+.eE01ntu# \n\r\t\ud800\x00\ufeff', max_size=30)
    | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
)
def test_any_text_is_read_or_is_a_syntax_error(text: str) -> None:
    check_read_or_error(text)


EDITS = st.lists(
    st.tuples(st.sampled_from("dirx"), st.integers(0, 10**6), st.sampled_from(PIECES)),
    min_size=1,
    max_size=3,
)


def mutate(text: str, edits: list[tuple[str, int, str]]) -> str:
    for kind, place, piece in edits:
        at = place % (len(text) + 1)
        rest = text[at:] if kind in "ix" else text[at + 1 :]
        put = {"d": "", "i": piece, "r": piece, "x": text[at : at + 5]}[kind]
        text = text[:at] + put + rest
    return text


@given(value=VALUES, style=st.integers(0, len(STYLES) - 1), edits=EDITS, seed=st.integers(0, 99))
def test_mutated_json_is_read_or_is_a_syntax_error(
    value: Json, style: int, edits: list[tuple[str, int, str]], seed: int
) -> None:
    clean = dumps(value, style)
    check_read_or_error(mutate(clean, edits))
    check_read_or_error(mutate(decorate(clean, seed), edits))


# « and » mark the span of the fault.
FAULTS = [
    ("«»", "expected a JSON value, but found an empty text", "write at least {}"),
    ("// x«»", "but found only whitespace and comments", "write at least {}"),
    (
        '{"width": 3«» "height": 4}',
        'a comma or } after the value of "width", but found "height"',
        "add a comma here",
    ),
    ('{"width": 3«»\n"height": 4}', 'a comma or } after the value of "width"', "add a comma here"),
    ('{"size": {}«» // x\n "height": 4}', 'a comma or } after the value of "size"', "comma"),
    ("[1«» 2]", "expected a comma or ] after item 1 of the list, but found 2", "add a comma"),
    ("[[]«» []]", "expected a comma or ] after item 1 of the list, but found [", "add a comma"),
    ('["a"«»: 1]', "expected a comma or ] after item 1 of the list", "a list has no keys"),
    ('{"a"«» 1}', 'expected a colon after the key "a", but found 1', 'write "a": followed by'),
    ('{"a": «}»', 'expected a value for "a", but found }', "write a string, a number"),
    ('{"a": «»', 'expected a value for "a", but found the end of the text', "write"),
    ("[1,«,» 2]", "expected a value or ], but found a comma", "remove this comma"),
    ("{«,»}", "expected a key in double quotes or }, but found a comma", "remove this comma"),
    ('{"a": 1, «[»', "expected a key in double quotes or }, but found [", "double quote"),
    (
        '{\n  "a": «[»1, 2\n}',
        "expected ] to close the list opened at line 2, column 8, but found } at line 3, column 1",
        "add the ] that closes this [",
    ),
    (
        '\ufeff«{»"a": 1',
        "expected } to close the object opened at line 1, column 1, but the text ends",
        "add the }",
    ),
    ('{"a": 1, «[»', "expected a key", "double quote"),
    ('[{"a": 1}, «{»"b": 2, ', "} to close the object opened at line 1, column 12", "add the }"),
    ("{«a»: 1}", "expected a key in double quotes or }, but found a", '"a"'),
    ("{«'a'»: 1}", "expected a key in double quotes or }, but found 'a'", "double quotes"),
    ("[«'a b'»]", "expected a value or ], but found 'a b'", "strings in double quotes"),
    ("[«NaN»]", "but found NaN", "JSON has no "),
    ("«Infinity»", "but found Infinity", "JSON has no "),
    ("[«-Infinity»]", "but found -Infinity", "JSON has no "),
    ("[«True»]", "but found True", "lowercase"),
    ("[«None»]", "but found None", "write null"),
    ("[«truefalse»]", "but found truefalse", "double quotes"),
    ("[«007»]", "expected a number without leading zeros, but found 007", "write 7"),
    ("«-00.5»", "expected a number without leading zeros, but found -00.5", "write -0.5"),
    ("[«+1»]", "expected a number, but found +1", "write it like"),
    ("[«5.»]", "expected a number, but found 5.", "write it like"),
    ("[«1٣»]", "expected a number, but found 1٣", "write it like"),
    ("[«-1e999»]", "expected a number up to 1.8e308, but found -1e999", "smaller"),
    (f"[«{'9' * 301}»]", "an integer of at most 300 digits, but found 301", "string"),
    ('["a«\t»b"]', "found the control character U+0009", "write it as \\t"),
    ('["a«\x00»b"]', "found the control character U+0000", "write it as \\u0000"),
    (
        '{"a": «"b»\n}',
        "expected a closing quote, but found the end of the line",
        "close the string",
    ),
    ('«"»', "expected a closing quote, but found the end of the text", "close the string"),
    ('{«"b»\r\n: 1}', "expected a closing quote, but found the end of the line", "close"),
    (r'"C:«\x»"', "expected one of", r"write a literal backslash as \\"),
    (r'"«\u12»"', r"expected four hexadecimal digits after \u, but found \u12", r"\u00e9"),
    (r'"ab«\ud800»"', r"but found \ud800, half of a surrogate pair", "both halves"),
    (r'"\ud83d\ude00«\ude00»"', r"but found \ude00, half", "both halves"),
    (r'{"\\ud800«\uDC00»": 1}', r"but found \uDC00, half", "both halves"),
    ('"«\ud800»"', "found U+D800, half of a surrogate pair", "UTF-8"),
    ("[" * 100 + "«[»", "expected at most 100 nested brackets", "reduce the nesting"),
    ("{} «{»}", "expected the end of the text after the value, but found {", "remove"),
    ("[1]«]»", "expected the end of the text after the value, but found ]", "closes nothing"),
    ('"a"«x»', "expected the end of the text after the value, but found x", "remove"),
    ("[1, «/*» 2]", "expected */ to close this comment, but the text ends", "add */"),
    ("«#» x", "expected JSON or a comment, but found #", "start a comment with //"),
    ("[1 «/» 2]", "expected JSON or a comment, but found /", "start a comment with //"),
]


@pytest.mark.parametrize(("marked", "message", "hint"), FAULTS)
def test_syntax_error_has_message_hint_and_span(marked: str, message: str, hint: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    fault = read_invalid(text)
    assert message in fault.message
    assert hint in (fault.hint or "")
    start = marked.index("«")
    assert fault.span == Span(start, marked.index("»") - 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, /* x */], // y\n}', {"a": [1]}),
        ("/**/ /* * ** / */ 1 // end", 1),
        ("\ufeff[]", []),
        (r'"\ud83d\ude00 \\ud800"', "😀 \\ud800"),
        ("-0", 0),
        ("1E5", 1e5),
        ("-2.5e-3", -2.5e-3),
        ("9" * 300, int("9" * 300)),
        ("[" * 100 + "]" * 100, json.loads("[" * 100 + "]" * 100)),
    ],
)
def test_extensions_and_limits_are_accepted(text: str, value: Json) -> None:
    assert json.dumps(read_json(text).value) == json.dumps(value)


def test_first_of_duplicate_keys_counts() -> None:
    text = '{"a": {"b": 1, "b": 2, "\\u0062": 3}, "a": {"c": 4, "c": 5}, "d": 6}'
    document = read_json(text)
    assert document.value == {"a": {"b": 1}, "d": 6}
    places = [[match.start(), match.end()] for match in re.finditer(r'"[^"]*"', text)]
    a1, b1, b2, b3, a2, c1, c2, _ = (Span(*place) for place in places)
    assert document.duplicates == (
        DuplicateKey(("a", "b"), b1, b2),
        DuplicateKey(("a", "b"), b1, b3),
        DuplicateKey(("a",), a1, a2),
        DuplicateKey(("a", "c"), c1, c2),
    )
    assert document.key_span(("a",)) == a1
    assert slice_span(text, document.value_span(("a", "b"))) == "1"


def test_missing_pointer_has_the_span_of_its_nearest_ancestor() -> None:
    text = '{"a": [10, {"b": {}}]}'
    document = read_json(text)
    assert document.value_span(()) == Span(0, len(text))
    assert document.value_span(("x", "y")) == Span(0, len(text))
    assert slice_span(text, document.value_span(("a", 7))) == '[10, {"b": {}}]'
    assert slice_span(text, document.value_span(("a", -1))) == '[10, {"b": {}}]'
    assert slice_span(text, document.value_span(("a", 0, "deep", "er"))) == "10"
    assert slice_span(text, document.value_span(("a", 1, "b", "c"))) == "{}"
    assert document.key_span(("x",)) is None
    assert document.key_span(("a", 0, "b")) is None


def test_format_pointer_escapes_slashes_and_tildes() -> None:
    assert format_pointer(()) == ""
    assert format_pointer(("a/b", 0, "~", "")) == "/a~1b/0/~0/"


@pytest.mark.parametrize(
    ("text", "offset", "position"),
    [
        ("", 0, (1, 1)),
        ("ab", 2, (1, 3)),
        ("a\nb", 1, (1, 2)),
        ("a\nb", 2, (2, 1)),
        ("a\r\n😀b", 4, (2, 2)),
        ("\ufeffab", 0, (1, 1)),
        ("\ufeffab", 1, (1, 1)),
        ("\ufeffa\nb", 4, (2, 2)),
    ],
)
def test_position_at_counts_lines_and_columns(
    text: str, offset: int, position: tuple[int, int]
) -> None:
    assert position_at(text, offset) == Position(*position)


MILLION = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * MILLION,
        " " * MILLION,
        '"' + "a" * MILLION,
        '["' + "\\n" * MILLION,
        '{"a"' + " " * MILLION,
        "/*" * MILLION,
        "//\n" * (MILLION // 3),
        "[1" + "/**/" * (MILLION // 4) + "x",
        "[/" + "*" * MILLION,
        "1" * MILLION,
        "0" * MILLION,
        "[0." + "1" * MILLION + "x]",
        "1" * MILLION + "e5",
        "'" * MILLION,
        "a" * MILLION,
    ],
    ids=lambda text: text[:6],
)
def test_long_broken_texts_take_linear_time(text: str) -> None:
    fault = read_invalid(text)
    assert len(fault.message) < 200
    assert len(fault.hint or "") < 100
