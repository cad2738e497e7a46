import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.text.placeholders import PackagePath, PlaceholderFault, fill_placeholders
from cogwork.config.text.positions import Json

PACKAGES = {
    "detector": PackagePath("ml_model", "/packages/ml_model/detector-1_2"),
    "driver": PackagePath("module", "/packages/module/driver-3"),
    "org/a:b-c": PackagePath("slam_map", "/packages/slam_map/x"),
}
ENVIRONMENT = {"HOME": "/root", "EMPTY": "", "LOOP": "${environment.HOME}"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${packages.detector}", "/packages/ml_model/detector-1_2"),
        ("${packages.ml_model.detector}/m.tflite", "/packages/ml_model/detector-1_2/m.tflite"),
        ("a ${packages.module.driver} b", "a /packages/module/driver-3 b"),
        ("${packages.slam_map.org/a:b-c}", "/packages/slam_map/x"),
        ("${environment.HOME}:${environment.EMPTY}", "/root:"),
        ("${environment.LOOP}", "${environment.HOME}"),
        ("${environment.HOME} ${ $ }${", "/root ${ $ }${"),
    ],
)
def test_known_placeholders_are_filled(text: str, filled: str) -> None:
    result, faults = fill_placeholders([text], PACKAGES, ENVIRONMENT)
    assert result == [filled]
    assert [fault.placeholder for fault in faults] == (["${ $ }"] if "${ $ }" in text else [])


@pytest.mark.parametrize(
    "text", ["", "plain", "$HOME", "{environment.HOME}", "${", "${environment"]
)
def test_text_without_placeholders_is_unchanged(text: str) -> None:
    value: Json = [text, 1, None, {"${environment.HOME}": True}]
    result, faults = fill_placeholders(value, PACKAGES, ENVIRONMENT)
    assert result is value
    assert faults == ()


@pytest.mark.parametrize(
    ("placeholder", "message"),
    [
        (
            "${packages.driver}",
            'package "driver" has type module, not ml_model; write ${packages.module.driver}',
        ),
        (
            "${packages.module.detector}",
            'package "detector" has type ml_model, not module; write ${packages.ml_model.detector}',
        ),
        (
            "${packages.detectr}",
            'unknown package "detectr"; did you mean ${packages.ml_model.detector}?',
        ),
        ("${packages.q}", 'unknown package "q"; add it to "packages"'),
        (
            "${environment.GONE}",
            "the environment variable GONE is not set; set it where the server is started",
        ),
        *(
            (
                placeholder,
                f"unknown placeholder {placeholder};"
                " write ${packages.<type>.<name>} or ${environment.<NAME>}",
            )
            for placeholder in [
                "${x}",
                "${}",
                "${packages}",
                "${packages.}",
                "${packages.a.b.c}",
                "${packages.detector\n}",
                "${environment.}",
                "${environment.A.B}",
                "${environment.HOME }",
                "${a ${environment.HOME}",
            ]
        ),
    ],
)
def test_invalid_placeholder_is_reported_and_kept(placeholder: str, message: str) -> None:
    value: Json = {"a": ["", f"{placeholder} ${{environment.HOME}}"]}
    result, faults = fill_placeholders(value, PACKAGES, ENVIRONMENT)
    assert result == {"a": ["", f"{placeholder} /root"]}
    assert faults == (PlaceholderFault(("a", 1), placeholder, message),)


def test_only_changed_containers_are_copied() -> None:
    value: dict[str, Json] = {
        "same": {"deep": ["x", {"y": "${gone}"}]},
        "changed": [{"a": "${environment.HOME}", "b": [1]}, {"c": 2}],
    }
    before = copy.deepcopy(value)
    result, faults = fill_placeholders(value, PACKAGES, ENVIRONMENT)
    assert value == before
    assert isinstance(result, dict)
    assert result["same"] is value["same"]
    new, old = result["changed"], value["changed"]
    assert isinstance(new, list)
    assert isinstance(old, list)
    assert new[1] is old[1]
    assert new[0] == {"a": "/root", "b": [1]}
    assert [fault.pointer for fault in faults] == [("same", "deep", 1, "y")]


def test_long_text_takes_linear_time() -> None:
    value: Json = "${" * 500_000 + "}" + "${" * 500_000
    result, faults = fill_placeholders(value, PACKAGES, ENVIRONMENT)
    assert result is value
    assert len(faults) == 1


TEXTS = st.lists(
    st.sampled_from(
        ["${environment.HOME}", "${packages.detector}", "${x}", "a", "$", "{", "}", "."]
    )
).map("".join)
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_any_value_is_filled_without_modifying_the_input(value: Json) -> None:
    before = json.dumps(value)
    result, faults = fill_placeholders(value, PACKAGES, ENVIRONMENT)
    assert json.dumps(value) == before
    assert (result is value) == (json.dumps(result) == before)
    for pointer, placeholder, _ in faults:
        inner = result
        for step in pointer:
            inner = inner[step]  # type: ignore[index]
        assert isinstance(inner, str)
        assert placeholder in inner
