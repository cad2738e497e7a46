from __future__ import annotations

import copy
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.text.json_edit import (
    Edit,
    ImpossibleEdit,
    InsertItem,
    Remove,
    RemoveDuplicates,
    Rename,
    SetValue,
    edit_json,
    find_replacements,
)
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json, Pointer
from cogwork.config.text.replacements import original_offset, replace_spans

from .test_json_reader import VALUES, decorate, dumps

OBJECT = """{
  // about a
  "a": 1, // one
  "b": [1, 2, 3],
  "c": {"x": true} /* last */
}
"""
NEW_VALUES: list[Json] = [None, 1, "x", [], {}, [1, {"k": []}], {"a": {"b": "//"}}]
COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n\r]*|/\*.*?\*/)', re.DOTALL)


def edited(text: str, *edits: Edit) -> str:
    return edit_json(text, edits)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Remove(("a",)), OBJECT.replace('  "a": 1, // one\n', "")),
        (Remove(("b",)), OBJECT.replace('  "b": [1, 2, 3],\n', "")),
        (Remove(("c",)), OBJECT.replace('3],\n  "c": {"x": true} /* last */', "3]")),
        (Remove(("b", 0)), OBJECT.replace("1, 2, 3", "2, 3")),
        (Remove(("b", 1)), OBJECT.replace("1, 2, 3", "1, 3")),
        (Remove(("b", 2)), OBJECT.replace("1, 2, 3", "1, 2")),
        (Remove(("c", "x")), OBJECT.replace('{"x": true}', "{}")),
        (Rename(("b",), 'new "b"'), OBJECT.replace('"b":', '"new \\"b\\"":')),
        (SetValue(("a",), "text"), OBJECT.replace('"a": 1', '"a": "text"')),
        (
            SetValue(("a",), {"k": [1]}),
            OBJECT.replace('"a": 1', '"a": {\n    "k": [\n      1\n    ]\n  }'),
        ),
        (SetValue(("d",), 2), OBJECT.replace("} /* last */", '}, /* last */\n  "d": 2')),
        (SetValue(("c", "y"), [1]), OBJECT.replace("true}", 'true, "y": [1]}')),
        (InsertItem(("b", 0), 0), OBJECT.replace("1, 2, 3", "0, 1, 2, 3")),
        (InsertItem(("b", 2), 0), OBJECT.replace("1, 2, 3", "1, 2, 0, 3")),
        (InsertItem(("b", 3), 4), OBJECT.replace("1, 2, 3", "1, 2, 3, 4")),
    ],
)
def test_one_edit(edit: Edit, expected: str) -> None:
    assert edited(OBJECT, edit) == expected


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        ("[]", [InsertItem((0,), 1)], "[1]"),
        ("{}\n", [SetValue(("a",), [1])], '{"a": [1]}\n'),
        ("{\n}\n", [SetValue(("a",), [1])], '{\n  "a": [\n    1\n  ]\n}\n'),
        ("{ // none\n}", [SetValue(("a",), 1)], '{ // none\n  "a": 1\n}'),
        ('{\n\t"a": {}\n}', [SetValue(("a", "b"), 1)], '{\n\t"a": {\n\t\t"b": 1\n\t}\n}'),
        ('{\r\n    "a": 1\r\n}', [SetValue(("b",), 2)], '{\r\n    "a": 1,\r\n    "b": 2\r\n}'),
        ("[1,]", [InsertItem((1,), 2)], "[1, 2,]"),
        ("[1,]", [Remove((0,))], "[]"),
        ("[1, 2,]", [Remove((1,))], "[1,]"),
        ("[1 // one\n]", [InsertItem((1,), 2)], "[1, // one\n2\n]"),
        ("[\n  1,\n  2\n]", [Remove((0,)), Remove((1,))], "[]"),
        ("[\n  1,\n  // two\n  2\n]", [Remove((0,)), Remove((1,))], "[\n  // two\n]"),
        ("[\n  1,\n  2\n]", [Remove((0,)), InsertItem((2,), 3)], "[\n  2,\n  3\n]"),
        ("[\n  1,\n  2\n]", [Remove((1,)), InsertItem((2,), 3)], "[\n  1,\n  3\n]"),
        ('{ "a": 1\n, "b": 2\n, "c": 3\n}', [Remove(("c",))], '{ "a": 1\n, "b": 2\n}'),
        ('{ "a": 1\n, "b": 2\n, "c": 3\n}', [Remove(("b",))], '{ "a": 1\n, "c": 3\n}'),
        ('{"a": 1, "a": 2, "b": 3}', [Remove(("a",))], '{"b": 3}'),
        ('{"a": 1, "a": 2, "b": 3}', [Rename(("a",), "c")], '{"c": 1, "b": 3}'),
        ('{"a": 1, "a": 2, "b": 3}', [RemoveDuplicates(("a",))], '{"a": 1, "b": 3}'),
        ('{"a": 1, "b": 2}', [Remove(("a",)), Rename(("b",), "a")], '{"a": 2}'),
        ('{"a": {"b": 1}}', [Remove(("a", "b")), Remove(("a",))], "{}"),
        ('{"a": 1}', [Rename(("a",), "b"), SetValue(("a",), 2)], '{"b": 2}'),
        ("[{}]", [SetValue((), None)], "null"),
    ],
)
def test_layout_of_the_file_is_kept(text: str, edits: list[Edit], expected: str) -> None:
    assert edited(text, *edits) == expected


def test_variables_stay_without_an_environment() -> None:
    text = '{"port": ${PORT:-80}, "name": "${NAME}", "on": $ON}'
    assert (
        edited(text, Remove(("name",)), SetValue(("off",), False))
        == '{"port": ${PORT:-80}, "on": $ON, "off": false}'
    )


@pytest.mark.parametrize(
    "edit",
    [
        Remove(("z",)),
        Remove(()),
        Remove(("b", 3)),
        Rename(("z",), "y"),
        Rename(("a",), "b"),
        SetValue(("z", "y"), 1),
        SetValue(("b", 3), 1),
        InsertItem(("b", 4), 1),
        InsertItem(("a", 0), 1),
    ],
)
def test_edit_without_a_place_is_refused(edit: Edit) -> None:
    with pytest.raises(ImpossibleEdit):
        edited(OBJECT, edit)


def pointers(value: Json, at: Pointer = ()) -> list[Pointer]:
    inner: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [at, *(found for key, each in inner for found in pointers(each, (*at, key)))]


def choose_edits(value: Json, seed: int) -> list[Edit]:
    """Return edits of which none is inside a value that another one removes or replaces, and
    none is at the same place as another."""
    chance = random.Random(seed)
    places = pointers(value)
    chance.shuffle(places)
    chosen: list[Edit] = []
    for place in places[: chance.randint(1, 5)]:
        if any(place[: len(each.pointer)] == each.pointer for each in chosen):
            continue
        if any(each.pointer[: len(place)] == place for each in chosen):
            continue
        at = find(value, place)
        new = chance.choice(NEW_VALUES)
        kinds: list[Edit] = [SetValue(place, new)]
        if place:
            kinds.append(Remove(place))
        if place and isinstance(place[-1], str):
            kinds.append(Rename(place, f"renamed {place[-1]}"))
        if isinstance(at, list):
            kinds.append(InsertItem((*place, chance.randint(0, len(at))), new))
        if isinstance(at, dict):
            kinds.append(SetValue((*place, "added key"), new))
        chosen.append(chance.choice(kinds))
    return chosen


def find(value: Any, place: Pointer) -> Any:
    for step in place:
        value = value[step]
    return value


def apply(value: Json, edits: list[Edit]) -> Json:
    """Apply edits of pointers into the original value, from the back to the front."""
    root: Any = {"": copy.deepcopy(value)}
    for edit in sorted(edits, key=lambda edit: edit.pointer and str(edit.pointer), reverse=True):
        if isinstance(edit, SetValue):
            parent = find(root, ("", *edit.pointer)[:-1])
            parent[("", *edit.pointer)[-1]] = copy.deepcopy(edit.value)
        elif isinstance(edit, Rename):
            parent = find(root[""], edit.pointer[:-1])
            members = {
                edit.key if key == edit.pointer[-1] else key: each for key, each in parent.items()
            }
            parent.clear()
            parent.update(members)
    indexed = [edit for edit in edits if isinstance(edit, Remove | InsertItem)]
    for edit in sorted(indexed, key=_from_the_back, reverse=True):
        parent = find(root[""], rename_steps(edit.pointer[:-1], edits))
        if isinstance(edit, InsertItem):
            parent.insert(edit.pointer[-1], copy.deepcopy(edit.value))
        else:
            del parent[edit.pointer[-1]]
    done: Json = root[""]
    return done


def rename_steps(pointer: Pointer, edits: list[Edit]) -> Pointer:
    renamed = {edit.pointer: edit.key for edit in edits if isinstance(edit, Rename)}
    return tuple(renamed.get(pointer[: number + 1], step) for number, step in enumerate(pointer))


def _from_the_back(edit: Edit) -> list[tuple[int, str]]:
    # Of a removal and an insertion at the same item, the removal comes first.
    order = [(step, "") if isinstance(step, int) else (-1, step) for step in edit.pointer]
    return [*order, (0, "") if isinstance(edit, InsertItem) else (1, "")]


@given(VALUES, st.integers(0, 4), st.integers(), st.integers())
def test_result_has_the_edited_value_and_nothing_else_changes(
    value: Json, style: int, seed: int, choice: int
) -> None:
    text = decorate(dumps(value, style), seed)
    edits = choose_edits(value, choice)
    replacements = find_replacements(text, edits)
    result = replace_spans(text, replacements)
    assert read_json(result).value == apply(value, edits)
    assert order_of_keys(read_json(result).value) == order_of_keys(apply(value, edits))
    if not any(isinstance(edit, Remove | SetValue) for edit in edits):
        assert comments_of(result) == comments_of(text)
    end = 0
    for span, _ in replacements:
        assert end <= span.start <= span.end
        end = span.end


def order_of_keys(value: Json) -> list[str]:
    return [str(place) for place in pointers(value)]


def comments_of(text: str) -> list[str]:
    return [match[1] for match in COMMENT.finditer(text) if match[1]]


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(), min_size=1), st.integers())
def test_comments_on_lines_of_their_own_stay(value: dict[str, int], seed: int) -> None:
    chance = random.Random(seed)
    lines = ["{"]
    for number, (key, each) in enumerate(value.items()):
        lines.append(f"  // above {key}")
        comma = "," if number + 1 < len(value) else ""
        lines.append(f'  "{key}": {each}{comma} // beside {key}')
    text = "\n".join((*lines, "  // end", "}", ""))
    removed = [key for key in value if chance.random() < 0.5]
    result = edited(text, *(Remove((key,)) for key in removed))
    expected = [
        line for line in text.split("\n") if not any(f'"{key}":' in line for key in removed)
    ]
    kept = [number for number, line in enumerate(expected) if '":' in line]
    if kept:
        expected[kept[-1]] = expected[kept[-1]].replace(", //", " //")
    assert result == "\n".join(expected)


def test_adding_and_removing_is_the_identity() -> None:
    for pointer in (("d",), ("c", "y")):
        added = edited(OBJECT, SetValue(pointer, {"k": [1, 2]}))
        assert read_json(added).value != read_json(OBJECT).value
        assert edited(added, Remove(pointer)) == OBJECT


def test_offsets_are_mapped_to_the_original() -> None:
    replacements = find_replacements(OBJECT, [Remove(("a",)), SetValue(("b", 1), "longer")])
    result = replace_spans(OBJECT, replacements)
    for word in ("about a", "3]", "last"):
        assert original_offset(replacements, result.index(word)) == OBJECT.index(word)
    assert original_offset(replacements, result.index("onger")) == OBJECT.index("2, 3")
