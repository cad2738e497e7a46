from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.models.real_models import model_path
from tests.unit.drivers.mlmodel.tflite_files import addition, file_of, flatbuffer, with_files

from cogwork.drivers.mlmodel import flatbuffer as reader
from cogwork.drivers.mlmodel.tflite_metadata import TfliteMetadata, read_metadata
from cogwork.resource.labels import parse_labels

MODEL = file_of(addition())
AXIS_LABELS, VALUE_LABELS, VOCABULARY = 2, 3, 5
NORMALIZATION, THRESHOLD = 1, 3


def with_metadata(model: dict[int, Any]) -> bytes:
    return file_of(addition(), metadata=flatbuffer(model, b"M001"))


def with_tensor_metadata(inputs: list[dict[int, Any]], outputs: list[dict[int, Any]]) -> bytes:
    return with_metadata({3: [{2: inputs, 3: outputs}]})


def with_label_files(*files: dict[int, Any]) -> bytes:
    return with_tensor_metadata([], [{0: "boxes"}, {0: "classes", 6: list(files)}])


def read_label_names(content: bytes) -> list[str] | None:
    labels = read_metadata(content).labels
    return None if labels is None else [str(labels.get(index)) for index in range(len(labels))]


def test_metadata_and_labels_of_a_real_classifier_are_read() -> None:
    metadata = read_metadata(model_path("efficientnet_lite0_uint8.tflite").read_bytes())
    assert metadata.name == "EfficientNet-lite image classifier (quantized)"
    assert metadata.description.startswith("Identify the most prominent object in the image")
    assert [each.name for each in metadata.inputs] == ["image"]
    assert [each.name for each in metadata.outputs] == ["probability"]
    assert metadata.properties == {
        "normalization": {"mean": [127.0], "std": [128.0]},
        "range": {"min": [0.0], "max": [255.0]},
    }
    assert metadata.labels == parse_labels(model_path("imagenet_labels_1000.txt").read_text())
    assert metadata.labels is not None
    assert len(metadata.labels) == 1000


@pytest.mark.parametrize(
    "name", ["ssd_mobilenet_v2_coco_quant_postprocess", "face_detection_short_range"]
)
def test_real_models_without_metadata_have_empty_metadata(name: str) -> None:
    assert read_metadata(model_path(f"{name}.tflite").read_bytes()) == TfliteMetadata()


def test_tensors_are_described_in_order() -> None:
    content = with_tensor_metadata(
        [
            {0: "picture", 1: "what the camera sees"},
            {0: "mask", 4: [{0: NORMALIZATION, 1: {0: [0.0], 1: [1.0]}}]},
        ],
        [{0: "boxes"}, {0: "scores", 1: "of each box"}],
    )
    metadata = read_metadata(content)
    assert [(each.name, each.description) for each in metadata.inputs] == [
        ("picture", "what the camera sees"),
        ("mask", ""),
    ]
    assert [each.name for each in metadata.outputs] == ["boxes", "scores"]
    assert metadata.properties == {"normalization": {"mean": [0.0], "std": [1.0]}}


def test_normalization_of_the_first_image_input_is_used() -> None:
    threshold = {0: THRESHOLD, 1: {0: "not a list of numbers"}}
    first = {0: NORMALIZATION, 1: {0: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0]}}
    second = {0: NORMALIZATION, 1: {0: [0.0], 1: [1.0]}}
    content = with_tensor_metadata([{0: "size"}, {4: [threshold, first]}, {4: [second]}], [])
    assert read_metadata(content).properties == {
        "normalization": {"mean": [1, 2, 3], "std": [4, 5, 6]}
    }


@pytest.mark.parametrize("kind", [AXIS_LABELS, VALUE_LABELS])
def test_labels_are_read_from_the_file_named_by_an_output(kind: int) -> None:
    files = {"vocabulary.txt": "a\nb", "classes": "cat\ndog", "labels.txt": "one\ntwo"}
    content = with_label_files({0: "vocabulary.txt", 2: VOCABULARY}, {0: "classes", 2: kind})
    assert read_label_names(with_files(content, files)) == ["cat", "dog"]


def test_english_labels_are_preferred_to_translations() -> None:
    content = with_label_files(
        {0: "german.txt", 2: AXIS_LABELS, 3: "de"}, {0: "english.txt", 2: AXIS_LABELS, 3: "en"}
    )
    files = {"german.txt": "Katze\nHund", "english.txt": "cat\ndog"}
    assert read_label_names(with_files(content, files)) == ["cat", "dog"]


@pytest.mark.parametrize("content", [MODEL, with_label_files({0: "missing.txt", 2: AXIS_LABELS})])
def test_labels_are_read_from_a_file_named_labels_without_a_reference(
    content: bytes,
) -> None:
    files = {"readme.txt": "x\ny", "LabelMap.txt": "cat\ndog"}
    assert read_label_names(with_files(content, files)) == ["cat", "dog"]


EXPORTED = {
    "description": "a detector",
    "stride": 32,
    "task": "detect",
    "imgsz": [640, 640],
    "names": {0: "person", 1: "bicycle"},
}


@pytest.mark.parametrize(
    ("name", "text"), [("metadata.json", json.dumps(EXPORTED)), ("temp_meta.txt", str(EXPORTED))]
)
def test_metadata_packed_by_ultralytics_is_read(name: str, text: str) -> None:
    metadata = read_metadata(with_files(MODEL, {name: text}))
    assert metadata.description == "a detector"
    assert metadata.labels == parse_labels("person\nbicycle")
    assert metadata.properties["stride"] == 32
    assert metadata.properties["task"] == "detect"
    assert metadata.properties["imgsz"] == [640, 640]


@pytest.mark.parametrize("text", ["[1, 2]", "not a dict", "[" * 100_000, "-" * 100_000 + "1", ""])
def test_unrelated_metadata_text_is_ignored(text: str) -> None:
    assert read_metadata(with_files(MODEL, {"metadata.txt": text})) == TfliteMetadata()


@pytest.mark.parametrize(
    "text",
    ["{[]: 1}", f"{{'a': 0x{'f' * 9000}}}", f"{{0x{'f' * 9000}: 1}}"],
    ids=["unhashable key", "long integer", "long integer as key"],
)
def test_unrepresentable_values_are_left_out(text: str) -> None:
    assert read_metadata(with_files(MODEL, {"metadata.txt": text})) == TfliteMetadata()


def test_long_shared_name_is_not_copied_for_each_tensor() -> None:
    content = _file_with_shared_name(tensors=2000)
    assert len(content) < 200_000
    assert read_metadata(content) == TfliteMetadata()


def _file_with_shared_name(tensors: int) -> bytes:
    """Return a file in which all inputs are the same table, with a name of 64 KiB."""
    builder = flatbuffers.Builder(256)

    def table(field: int, value: int) -> int:
        builder.StartObject(field + 1)
        builder.PrependUOffsetTRelativeSlot(field, value, 0)
        return int(builder.EndObject())

    def vector(item: int, count: int) -> int:
        builder.StartVector(4, count, 4)
        for _ in range(count):
            builder.PrependUOffsetTRelative(item)
        return int(builder.EndVector())

    name = builder.CreateString("n" * 65_536)
    graph = table(2, vector(table(0, name), tensors))
    builder.Finish(table(3, vector(graph, 1)), b"M001")
    return file_of(addition(), metadata=bytes(builder.Output()))


@pytest.mark.parametrize(
    "labels",
    [
        b"\xff\xfe no text",
        b"",
        bytes(50_000_000),
        b"cat\n" * 1_000_000,
    ],
    ids=["no text", "empty", "a bomb", "too long"],
)
def test_unreadable_labels_are_left_out(labels: bytes) -> None:
    assert read_label_names(with_files(MODEL, {"labels.txt": labels})) is None


def test_archive_of_too_many_files_is_ignored() -> None:
    files = {f"{number}.txt": "" for number in range(2000)} | {"labels.txt": "cat\ndog"}
    assert read_label_names(with_files(MODEL, files)) is None


def test_archive_with_lzma_compression_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(MODEL)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr("labels.txt", "cat\ndog")
    assert read_label_names(path.read_bytes()) is None


def test_limits_that_are_not_numbers_are_left_out() -> None:
    unit = {0: NORMALIZATION, 1: {0: [float("nan")], 1: [1.0]}}
    assert read_metadata(with_tensor_metadata([{4: [unit]}], [])).properties == {}


def test_metadata_with_too_many_tables_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    content = with_tensor_metadata([{0: "same"}] * 50, [])
    assert len(read_metadata(content).inputs) == 50
    monkeypatch.setattr(reader, "_MAX_TABLES", 40)
    assert read_metadata(content) == TfliteMetadata()


WHOLE = with_files(
    with_metadata(
        {
            0: "name",
            1: "description",
            3: [
                {
                    2: [{0: "in", 4: [{0: 1, 1: {0: [1.0], 1: [2.0]}}], 5: {0: [1.0], 1: [0.0]}}],
                    3: [{0: "out", 6: [{0: "labels.txt", 2: AXIS_LABELS}]}],
                }
            ],
        }
    ),
    {"labels.txt": "cat\ndog", "metadata.json": json.dumps(EXPORTED)},
)


@given(
    st.lists(
        st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8
    ),
    st.integers(0, len(WHOLE)),
)
def test_damaged_file_never_raises(damage: list[tuple[int, int]], size: int) -> None:
    content = bytearray(WHOLE)
    for at, value in damage:
        content[at] = value
    read_metadata(bytes(content))
    read_metadata(bytes(content[:size]))
