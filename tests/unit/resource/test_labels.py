"""Parsing of labels in all supported formats."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.models.real_models import model_path

from cogwork.resource.labels import MAX_CHARACTERS, MAX_LABELS, InvalidLabels, Labels, parse_labels


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cat\ndog\n", ["cat", "dog"]),
        ("\ufeffcat\r\ndog\r\n", ["cat", "dog"]),
        ("cat\rdog", ["cat", "dog"]),
        ("  cat  \n\n \t\ngreat white shark\n", ["cat", "great white shark"]),
        ("tench, Tinca tinca\ngoldfish, Carassius auratus", None),
        ("0\n1\n2", ["0", "1", "2"]),
        ("2 wheels\n3 wheels\nboat", ["2 wheels", "3 wheels", "boat"]),
        ("2 wheels\n2 wings", ["2 wheels", "2 wings"]),
        ("[background]\ncat\n", ["[background]", "cat"]),
        ("été\n犬", ["été", "犬"]),
        ("cat", ["cat"]),
        ("cat, great white shark ,dog", ["cat", "great white shark", "dog"]),
        ("cat dog  bird\n", ["cat", "dog", "bird"]),
        ("0 1 2", ["0", "1", "2"]),
        ("0,1,2", ["0", "1", "2"]),
        ("1 wheel, 2 wheels", ["1 wheel", "2 wheels"]),
        ("0: cat, 1: great white shark", ["cat", "great white shark"]),
        ('["cat", "dog"]', ["cat", "dog"]),
        ("['cat', \"dog's\",]", ["cat", "dog's"]),
    ],
)
def test_unnumbered_labels_are_parsed_in_order(text: str, names: list[str] | None) -> None:
    expected = names if names is not None else text.split("\n")
    assert parse_labels(text).names == dict(enumerate(expected))


@pytest.mark.parametrize(
    "text",
    [
        "0  cat\n\n7  polar bear\n",
        "7 polar bear\n0\tcat",
        "0: cat\r\n7: polar bear\r\n",
        "0,cat\n7,polar bear",
        '0,"cat"\n7,"polar bear"',
        '{"0": "cat", "7": "polar bear"}',
        '{"cat": 0, "polar bear": 7}',
        '\ufeff{\n  "0": "cat",\n  "7": " polar bear "\n}\n',
        "{0: 'cat', 7: 'polar bear'}",
        "{\n  0: 'cat',\n  7: \"polar bear\",\n}",
        "{'cat': 0, 'polar bear': 7}",
        '["cat", "", "", "", "", "", "", "polar bear"]',
        "cat,,,,,,,polar bear,,",
        "id,name\n0,cat\n7,polar bear\n",
        'Name;ID\ncat;0\n\n"polar bear";7',
        'supercategory\t"class_id"\tlabel\nanimal\t0\tcat\nanimal\t7\tpolar bear\textra',
        "id,name,display_name\n0,/m/01yrx,cat\n7,/m/0633h,polar bear",
        "item { id: 0 name: 'cat' }\nitem { id: 7 name: \"polar bear\" }",
        """
        # The classes.
        item {
          name: "/m/01yrx"  # a cat
          id: 0
          display_name: "cat"
          keypoints { id: 3 label: "nose" }
          child_ids: [4, 5]
        }
        item: <
          id: 7, display_name: 'p\\157lar bear';
          frequency: RARE
        >
        """,
    ],
)
def test_numbered_labels_with_gaps_are_parsed(text: str) -> None:
    labels = parse_labels(text)
    assert labels.names == {0: "cat", 7: "polar bear"}
    assert len(labels) == 8
    assert [labels.get(index) for index in (0, 1, 7, 8, -1)] == ["cat", None, "polar bear"] + [
        None
    ] * 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('["caf\\u00e9 \\ud83d\\ude00"]', "café 😀"),
        ("{0: 'it\\'s a \\\\ caf\\xe9'}", "it's a \\ café"),
        ("item { id: 0 name: 'it\\'s a \\\\ caf\\303\\251' }", "it's a \\ café"),
        ("item { id: 0 name: 'a\\9\\8 caf\\303\\251' }", "a98 café"),
        ("id,name\n0\x1e,cat", "cat"),
        ('0,"say ""cat"""\n1,dog', 'say "cat"'),
        ('id,name\n0,"cat, ""domestic"""', 'cat, "domestic"'),
        ("item { id: 0 name: '#1 {' }", "#1 {"),
    ],
)
def test_escapes_are_decoded(text: str, name: str) -> None:
    assert parse_labels(text).get(0) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there are no labels; write one per line"),
        ("\ufeff \r\n\n", "there are no labels"),
        ("[]", "there are no labels"),
        ('{"0": " "}', "there are no labels"),
        (",,,", "there are no labels"),
        ("id,name\n\n,", "there are no labels"),
        ('["cat", "dog"', "begin like JSON, but are not valid JSON: .* line 1 column 14"),
        ('["cat", dog]', "begin like JSON, but are not"),
        ("{0: 'cat', 1: print('dog')}", "begin like JSON, but are not"),
        ("{0: '\\d'}", "begin like JSON, but are not"),
        ("[" * 100_000, "begin like JSON, but are not"),
        ("{0:" * 100_000, "begin like JSON, but are not"),
        ('{"cat": ' + "9" * 5000 + "}", "begin like JSON, but are not"),
        ('["cat", 1]', "have an unknown format"),
        ('{"0": "cat", "1": 2}', "have an unknown format"),
        ('{"cat": true}', "have an unknown format"),
        ('{"cat": 1.5}', "have an unknown format"),
        ('{"first": "cat"}', '"first" is not a label index'),
        ('{"-1": "cat"}', '"-1" is not a label index'),
        ('{"cat": -1}', 'label "cat" has the index -1; number the labels from 0'),
        ('{"cat": 100000}', "has the index 100000; number the labels from 0 to at most 99999"),
        ('{"cat": 1, "dog": 1}', 'labels "cat" and "dog" both have the index 1'),
        ('{"1": "cat", "01": "dog"}', "both have the index 1"),
        ("100000 cat\n1 dog", "has the index 100000"),
        ("id,name\n1,cat\n1,dog", "both have the index 1"),
        ("id,name\none,cat", '"one" is not a label index'),
        ('id,name\n1,"cat', "the table of labels cannot be parsed"),
        ("id,name\n1," + "a" * 200_000, "the table of labels cannot be parsed"),
        ("item { id: 1 name: 'cat' ", "braces of the label map do not match"),
        ("item { id: 1 name: 'cat' } }", "braces of the label map do not match"),
        ("item {\n id: 1\n name: 'cat\n}", "line 3 of the label map has an unterminated string"),
        ("item { name: 'cat' }", "has no name or no id"),
        ("item { id: 1 }", "has no name or no id"),
        ("item { id: 1 name: cat }", "label name cat is not quoted; write it in quotes"),
        ("item { id: x name: 'cat' }", '"x" is not a label index'),
        ("item { id: 1 name: 'cat' } item { id: 1 name: 'dog' }", "both have the index 1"),
        ("c\0a\0t\0", "the labels are not text; save them as UTF-8"),
        (
            "{0: '\\x00'}",
            'label "U\\+0000" contains a null character or an unpaired surrogate; remove it',
        ),
        ('["\\ud800"]', "contains a null character or an unpaired surrogate; remove it"),
        (
            "a" * (MAX_CHARACTERS + 1),
            "the labels have 1048577 characters, but the limit is 1048576",
        ),
        ("a\n" * (MAX_LABELS + 1), "has the index 100000"),
    ],
)
def test_invalid_labels_raise(text: str, words: str) -> None:
    with pytest.raises(InvalidLabels, match=words) as error:
        parse_labels(text)
    assert error.value.status == "FAILED_PRECONDITION"
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "item { id: 1 name: " + "\\'" * 500_000,
        "item {" + "".join(f" a{n} {n}" for n in range(80_000)),
        "{0: '" + "a" * 1_000_000,
        "{" + " " * 1_000_000,
        "{" + "0:'a', " * 140_000,
        "0 " + " " * 1_000_000 + "\n:",
        "[" + "]" * 1_000_000,
        "# " * 500_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_are_parsed_fast(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(InvalidLabels):
        parse_labels(text)
    assert time.process_time() - started < 5


pieces = st.lists(
    st.sampled_from(
        [*"{}[]<>:,;#'\"\\\n\t\v\xa0 07a\0\ud800", "item", "id", "name", "\\x", "\\777"]
    )
    | st.characters()
).map("".join)


@given(
    st.text()
    | pieces
    | st.builds("item {{{}".format, pieces)
    | st.builds(
        "{{{}0: '{}', 1: '{}'}}".format, st.sampled_from(["", " ", "\v", "\xa0"]), pieces, pieces
    )
)
@example("item { id: 1 name: '\\777' }")
def test_any_text_is_parsed_or_raises_invalid_labels(text: str) -> None:
    try:
        labels = parse_labels(text)
    except InvalidLabels:
        return
    assert labels.names
    assert all(0 <= index < len(labels) for index in labels.names)
    assert all(name.encode() and name == name.strip() for name in labels.names.values())


names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12
).filter(lambda name: name == name.strip())


@given(st.dictionaries(st.integers(0, MAX_LABELS - 1), names, min_size=1))
def test_equivalent_formats_parse_equally(names_by_index: dict[int, str]) -> None:
    assert parse_labels(json.dumps(names_by_index)).names == names_by_index
    assert parse_labels(json.dumps(names_by_index, ensure_ascii=False)).names == names_by_index
    assert parse_labels(str(names_by_index)).names == names_by_index
    rows = [
        f'{index};"{name.replace(chr(34), chr(34) * 2)}"' for index, name in names_by_index.items()
    ]
    assert parse_labels("\n".join(["index;label", *rows])).names == names_by_index
    items = [
        f"item {{ id: {index} name: {json.dumps(name, ensure_ascii=False)} }}"
        for index, name in names_by_index.items()
    ]
    assert parse_labels("\n".join(items)).names == names_by_index


def test_many_labels_are_parsed() -> None:
    assert len(parse_labels("\n".join(f"{index} label" for index in range(60_000)))) == 60_000
    assert len(parse_labels(str(dict.fromkeys(range(80_000), "a")))) == 80_000


@pytest.mark.parametrize(
    ("file", "length", "known"),
    [
        ("coco_labels_80.txt", 80, {0: "person", 79: "toothbrush"}),
        ("coco_labels_90_dense.txt", 90, {0: "person", 11: "n/a_11", 89: "toothbrush"}),
        ("coco_labels_numbered.txt", 90, {0: "person", 11: None, 87: "teddy bear"}),
        ("imagenet_labels_1000.txt", 1000, {0: "tench", 285: "Egyptian cat", 967: "espresso"}),
    ],
)
def test_label_files_of_real_models_are_parsed(
    file: str, length: int, known: dict[int, str | None]
) -> None:
    labels: Labels = parse_labels(model_path(file).read_text("utf-8"))
    assert len(labels) == length
    assert {index: labels.get(index) for index in known} == known
