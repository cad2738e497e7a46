import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.errors import InvalidName
from cogwork.graph.name import Api, ModelName, Reference, ResourceName, check_name

CAMERA = Api("rdk", "component", "camera")
WORDS = st.text("abcXYZ019_-", min_size=1, max_size=8)
APIS = st.builds(Api, WORDS, WORDS, WORDS)
NAMES = st.builds(ResourceName, APIS, WORDS, st.one_of(st.just(""), WORDS))


def test_api_is_parsed_from_three_words() -> None:
    assert Api.parse("rdk:component:camera") == CAMERA


@pytest.mark.parametrize(
    "text", ["", "camera", "rdk:component", "rdk:component:", "a:b:c:d", "a:b:c d", "a:b:c\n"]
)
def test_invalid_api_raises(text: str) -> None:
    with pytest.raises(InvalidName) as caught:
        Api.parse(text)
    assert str(caught.value) == f'"{text}" is not an API; write it like rdk:component:camera'


@pytest.mark.parametrize(
    ("text", "model", "short"),
    [
        ("fake", ModelName("rdk", "builtin", "fake"), "fake"),
        ("rdk:builtin:fake", ModelName("rdk", "builtin", "fake"), "fake"),
        ("acme:arms:gripper", ModelName("acme", "arms", "gripper"), "acme:arms:gripper"),
    ],
)
def test_bare_model_name_means_a_builtin_model(text: str, model: ModelName, short: str) -> None:
    assert ModelName.parse(text) == model
    assert model.short == short


@pytest.mark.parametrize("text", ["", "a:b", "a b", "a:b:c:d", "fake\n"])
def test_invalid_model_name_raises(text: str) -> None:
    with pytest.raises(InvalidName, match="is not a model; write it like fake or acme:arms"):
        ModelName.parse(text)


@pytest.mark.parametrize(
    ("text", "name", "short"),
    [
        ("rdk:component:camera/belt", ResourceName(CAMERA, "belt"), "belt"),
        ("rdk:component:camera/line2:belt", ResourceName(CAMERA, "belt", "line2"), "line2:belt"),
        ("rdk:component:camera/a:b:belt", ResourceName(CAMERA, "belt", "a:b"), "a:b:belt"),
    ],
)
def test_resource_name_may_have_a_remote_prefix(text: str, name: ResourceName, short: str) -> None:
    assert ResourceName.parse(text) == name
    assert name.short == short


@pytest.mark.parametrize(
    "text", ["", "belt", "rdk:component:camera", "rdk:component:camera/", "camera/belt", "a:b:c/d:"]
)
def test_invalid_resource_name_raises(text: str) -> None:
    with pytest.raises(InvalidName):
        ResourceName.parse(text)


@given(NAMES)
def test_resource_name_survives_a_round_trip(name: ResourceName) -> None:
    assert ResourceName.parse(str(name)) == name
    assert Reference.parse(str(name)) == Reference(name.short, name.api)
    assert Reference.parse(name.short) == Reference(name.short)


@given(st.builds(Reference, WORDS, st.one_of(st.none(), APIS)))
def test_reference_survives_a_round_trip(reference: Reference) -> None:
    assert Reference.parse(str(reference)) == reference


@pytest.mark.parametrize("name", ["a", "0", "belt-2_left", "A" * 60])
def test_check_name_accepts_valid_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "the name is empty"),
        ("a" * 61, "the name has 61 characters; the limit is 60"),
        ("-a", "a name starts with a letter (a to z) or a digit"),
        ("_a", "a name starts with a letter (a to z) or a digit"),
        ("a:b", "contains only letters, digits, - and _"),
        ("a\n", "contains only letters, digits, - and _"),
        ("å", "a name starts with a letter (a to z) or a digit"),
    ],
)
def test_check_name_rejects_invalid_names(name: str, sentence: str) -> None:
    with pytest.raises(InvalidName, match=re.escape(sentence)):
        check_name(name)
