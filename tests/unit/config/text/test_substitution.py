import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Span
from cogwork.config.text.substitution import (
    SubstitutedText,
    UnsetVariable,
    hide_variables,
    substitute,
)

ENVIRONMENT = {"A": "one", "EMPTY": "", "PORT": "8080", "QUOTE": 'a"b\n\\', "_x1": "low"}


def slice_span(text: str, span: Span) -> str:
    assert 0 <= span.start <= span.end <= len(text)
    return text[span.start : span.end]


FORMS = [
    ("$A", "one"),
    ("$A.b", "one.b"),
    ("$_x1-", "low-"),
    ("${A}", "one"),
    ("${A}${A}", "oneone"),
    ("$A$A", "oneone"),
    ("$EMPTY", ""),
    ("${NO:-def}", "def"),
    ("${NO-def}", "def"),
    ("${NO:=def}", "def"),
    ("${NO=def}", "def"),
    ("${EMPTY:-def}", "def"),
    ("${EMPTY-def}", ""),
    ("${EMPTY:=def}", "def"),
    ("${EMPTY=def}", ""),
    ("${A:-def}", "one"),
    ("${A-def}", "one"),
    ("${NO:+alt}", ""),
    ("${NO+alt}", ""),
    ("${EMPTY:+alt}", ""),
    ("${EMPTY+alt}", "alt"),
    ("${A:+alt}", "alt"),
    ("${NO:-}", ""),
    ("${NO:-a $A ${A} b}", "a $A ${A b}"),
    ("${NO:-:-}", ":-"),
    ("$$", "$"),
    ("$$A", "$A"),
    ("$$$A", "$one"),
    ("$${packages.x}", "${packages.x}"),
]


@pytest.mark.parametrize(("form", "result"), FORMS)
def test_variable_form_is_replaced(form: str, result: str) -> None:
    for before, after in (
        ("", ""),
        ('{"k": "', '"}'),
        ('"\\\\', ' \\n"'),
        ("[", ", 1]"),
        ('"', "\n"),
    ):
        done = substitute(before + form + after, ENVIRONMENT)
        assert done.text == before + result + after
        assert done.unset == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "$",
        "a $ b",
        "$1 $- $( ${} ${ $",
        "${packages.ml_model.x}",
        "${environment.HOME}",
        "${packages.$A}",
        "${A:?message}",
        "${A/b/c}",
        "${ A }",
        "${1}",
        "${A",
        "${é}",
        "// $A ${A}",
        "/* $A\n */ 1 /* ${A} **",
        '["//"] // $A',
        '"\\$A"',
        '"\\\\\\${A}"',
        '"${NO:-a\\}"',
    ],
)
def test_text_without_variable_forms_is_unchanged(text: str) -> None:
    assert substitute(text, ENVIRONMENT) == SubstitutedText(text, text, (), ())


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('{"port": ${PORT}, "name": "$A"}', '{"port": 8080, "name": "one"}'),
        ('{"port": ${NO:-1}}', '{"port": 1}'),
        ('["$A // ${A}", 1] // $A\n$A', '["one // one", 1] // $A\none'),
        ("/* $A */ $A /* ", "/* $A */ one /* "),
        ('["a \\" $A", $A]', '["a \\" one", one]'),
        ('["a $QUOTE"]', '["a a\\"b\\n\\\\"]'),
        ("[$QUOTE]", '[a"b\n\\]'),
        ('"$QUOTE\n$QUOTE', '"a\\"b\\n\\\\\na"b\n\\'),
        ('["${NO:-say \\"hi\\"}"]', '["say \\"hi\\""]'),
        ('["${NO:-a\\\\}"]', '["a\\\\"]'),
        ('[${NO:-"a b"}]', '["a b"]'),
        ('"${A $A"', '"${A one"'),
        ('"${x y} ${A:-b $A"', '"${x y} ${A:-b one"'),
    ],
)
def test_strings_and_comments_are_distinguished(text: str, result: str) -> None:
    assert substitute(text, ENVIRONMENT).text == result


@pytest.mark.parametrize(
    "value",
    ["5", "-1.5e3", "true", "false", "null", '"a, b"', '"say \\"hi\\""', " 5\n", "9" * 5000],
)
def test_scalar_value_is_allowed_outside_a_string(value: str) -> None:
    for text in ("[$V]", '{"a": ${V}}', '{"a": ${V:-1}}', '{"a": ${NO:-[1, 2]}}', "[${V:+1, 2}]"):
        assert substitute(text, {"V": value}).not_scalar == ()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "1, 2",
        '1, "debug": true',
        '1}, "debug": true, "x": {',
        "[1]",
        "{}",
        '"a" // ',
        '"a',
        "a",
        "1 2",
        "/* */ 1",
        "NaN",
        "-Infinity",
        "01",
        "[" * 10_000,
        '"a\nb"',
    ],
)
def test_other_values_outside_a_string_are_reported(value: str) -> None:
    text = '{"a": "$V", "b": [${V}]}'
    (found,) = substitute(text, {"V": value}).not_scalar
    assert (found.name, slice_span(text, found.span)) == ("V", "${V}")


@given(value=st.text(alphabet='{}[]:,"\\ \n/*1atrue-.$', max_size=20))
def test_scalar_value_outside_a_string_adds_no_members(value: str) -> None:
    done = substitute('{"a": [$V], "b": 1}', {"V": value})
    if not done.not_scalar:
        filled = read_json(done.text).value
        assert isinstance(filled, dict)
        assert filled.keys() == {"a", "b"}
        assert isinstance(filled["a"], list)
        assert len(filled["a"]) == 1
        assert not isinstance(filled["a"][0], dict | list)


def test_unset_variables_are_listed_with_their_spans() -> None:
    text = '{"a": "$NO", "b": ${GONE}, "c": "${NO:-1}${NO:+2}$EMPTY"} // $NO'
    done = substitute(text, ENVIRONMENT)
    assert done.text == '{"a": "", "b": , "c": "1"} // $NO'
    assert [name for name, _ in done.unset] == ["NO", "GONE"]
    assert [slice_span(text, span) for _, span in done.unset] == ["$NO", "${GONE}"]
    assert done.unset[0] == UnsetVariable("NO", Span(7, 10))


@pytest.mark.parametrize(
    ("found", "origin"),
    [
        ("a: ", "a: "),
        ("one", "${A}"),
        ("n", "${A}"),
        (": on", ": ${A}"),
        ("ne, ", "${A}, "),
        (", b", ", b"),
        ("b: 8080", "b: $PORT"),
        ("c: $ d: ", "c: $$ d: "),
        ("d:  e", "d: ${EMPTY}$EMPTY e"),
        (" e", " e"),
    ],
)
def test_original_span_covers_the_variable_of_a_result(found: str, origin: str) -> None:
    text = "a: ${A}, b: $PORT, c: $$ d: ${EMPTY}$EMPTY e"
    done = substitute(text, ENVIRONMENT)
    assert done.text == "a: one, b: 8080, c: $ d:  e"
    start = done.text.index(found)
    assert slice_span(text, done.original_span(Span(start, start + len(found)))) == origin


def test_original_span_of_an_empty_span_is_the_empty_variable() -> None:
    text = "[${EMPTY}$NO]"
    done = substitute(text, ENVIRONMENT)
    assert done.text == "[]"
    assert slice_span(text, done.original_span(Span(1, 1))) == "${EMPTY}$NO"
    assert done.original_span(Span(0, 0)) == Span(0, 0)
    assert done.original_span(Span(2, 2)) == Span(len(text), len(text))
    assert done.original_span(Span(0, 1)) == Span(0, 1)
    assert slice_span(text, done.original_span(Span(1, 2))) == "]"


def test_original_span_of_a_syntax_error_is_its_variable() -> None:
    text = '{"name": "$A", "port": ${PORT}}'
    done = substitute(text, {"A": "a long value", "PORT": "80x"})
    with pytest.raises(JsonSyntaxError) as caught:
        read_json(done.text)
    assert slice_span(text, done.original_span(caught.value.span)) == "${PORT}"


@given(st.text().filter(lambda text: "$" not in text))
def test_text_without_dollar_is_unchanged(text: str) -> None:
    assert substitute(text, ENVIRONMENT) == SubstitutedText(text, text, (), ())


LITERALS = st.text(alphabet='ab 1:"\\/*{[,]\n\r', max_size=8)
PLACES = st.sampled_from(["$V", "${V}", "${V-x}", "${V:-x}", "$$", "${NO}", "${NO:-d}", "${p.x}"])


@given(value=st.text(min_size=1), before=st.text(), after=st.text(), form=PLACES)
def test_value_in_a_string_is_read_back_exactly(
    value: str, before: str, after: str, form: str
) -> None:
    before, after = (json.dumps(part.replace("$", ""))[1:-1] for part in (before, after))
    expected = {"$$": "$", "${NO}": "", "${NO:-d}": "d", "${p.x}": "${p.x}"}.get(form, value)
    done = substitute(f'{{"k": "{before} {form} {after}"}}', {"V": value})
    assert read_json(done.text).value == {
        "k": json.loads(f'"{before} "') + expected + json.loads(f'" {after}"')
    }


@given(
    value=st.sampled_from(['"', '", "x": "', "\n", "\\", '\\"', "}", "//", "$V"])
    | st.text(min_size=1),
    string=st.lists(PLACES | st.sampled_from(["\\", "a", "$", "{", "}", "${V:-\\"]), max_size=8),
)
def test_value_never_escapes_its_string(value: str, string: list[str]) -> None:
    text = '["' + "".join(string) + '", 1]'
    try:
        plain = read_json(substitute(text, {"V": "v"}).text).value
    except JsonSyntaxError:
        return
    filled = read_json(substitute(text, {"V": value}).text).value
    assert isinstance(plain, list)
    assert isinstance(filled, list)
    assert len(filled) == len(plain)


@given(
    parts=st.lists(st.tuples(LITERALS, PLACES), max_size=5),
    value=st.sampled_from(["", "v", '"', "long value\n"]),
    at=st.tuples(st.integers(0, 100), st.integers(0, 100)),
)
def test_original_span_without_variables_has_the_same_text(
    parts: list[tuple[str, str]], value: str, at: tuple[int, int]
) -> None:
    text = "".join(literal + form for literal, form in parts)
    done = substitute(text, {"V": value})
    start, end = sorted(min(offset, len(done.text)) for offset in at)
    origin = done.original_span(Span(start, end))
    found = slice_span(text, origin)
    if "$" not in found:
        assert found == done.text[start:end]


@given(forms=st.lists(PLACES, max_size=6), quote=st.sampled_from(["", '"']))
def test_original_span_of_literal_text_is_the_literal(forms: list[str], quote: str) -> None:
    literals = [f"<é{index}>" for index in range(len(forms) + 1)]
    text = quote + literals[0] + "".join(map("".join, zip(forms, literals[1:], strict=True)))
    done = substitute(text, {"V": 'two "words"'})
    for literal in literals:
        start, end = done.text.index(literal), done.text.index(literal) + len(literal)
        assert done.original_span(Span(start, end)).start == text.index(literal)
        assert slice_span(text, done.original_span(Span(start, end))) == literal


@given(st.text(alphabet='$${}AB:-+=."\\/*\n a', max_size=40))
def test_any_text_is_substituted_with_valid_spans(text: str) -> None:
    done = substitute(text, ENVIRONMENT)
    assert done.original == text
    for start in range(len(done.text) + 1):
        for end in range(start, min(start + 4, len(done.text)) + 1):
            slice_span(text, done.original_span(Span(start, end)))
    for unset in done.unset:
        assert slice_span(text, unset.span).lstrip("${").rstrip("}") == unset.name


@pytest.mark.parametrize(
    ("unit", "size"),
    [
        *((unit, 600_000) for unit in ("${A:-", '"${A:-', '"', "${", "/*", "*/", "\\", '"\\', "/")),
        *((unit, 20_000) for unit in ("$", "$A", "${A}", '"$A"')),
    ],
)
def test_long_texts_take_linear_time(unit: str, size: int) -> None:
    long = unit * (size // len(unit))
    for text in (long, '"' + long, '"' + long + '\\}"', "$" + long, "/*$" + long):
        assert substitute(text, {}).original == text


def test_unbraced_name_in_a_key_is_not_a_variable() -> None:
    text = '{"$schema" : "$schema", "${NAME}": 1, "$$ref": 2}'
    result = substitute(text, {"schema": "x", "NAME": "n"})
    assert result.text == '{"$schema" : "x", "n": 1, "$ref": 2}'


def test_hidden_variables_are_strings_of_the_same_length() -> None:
    text = '{"a": $A, // $B\n "${K}": ${C:-[1, 2]}, "b": "$D ${E}"}'
    hidden = hide_variables(text)
    assert hidden == '{"a": "", // $B\n "${K}": "__________", "b": "$D ${E}"}'
    assert len(hidden) == len(text)
    assert hide_variables("[1]") == "[1]"
