"""Detectors without the required output names: recognized by shapes, decoded as by others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from tests.support.models.real_models import golden_outputs, model_path, photo_path, photo_paths
from tests.unit.drivers.vision.decoding import recorded_heads as recorded

from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.mlmodel.onnx import OnnxEngine
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, ImageFit, stretch_fit
from cogwork.drivers.vision.decoding.decoder import BadOutput, DetectorDecoder, Mismatch, ModelView
from cogwork.drivers.vision.decoding.families import match_family
from cogwork.resource.labels import Labels

Shape = tuple[int, ...] | None


def view(
    outputs: Mapping[str, Shape],
    *,
    labels: int | None = None,
    size: tuple[int, int] | None = (640, 640),
    **notes: Any,
) -> ModelView:
    width, height = size or (DYNAMIC, DYNAMIC)
    return ModelView(
        (TensorSpec("images", np.dtype(np.float32), (1, 3, height, width)),),
        tuple(TensorSpec(name, np.dtype(np.float32), shape) for name, shape in outputs.items()),
        Labels({number: f"label {number}" for number in range(labels)}) if labels else None,
        notes,
    )


def settings(**attributes: Any) -> MlmodelVisionAttributes:
    return MlmodelVisionAttributes(mlmodel_name="model", **attributes)


def create_decoder(seen: ModelView, **attributes: Any) -> DetectorDecoder:
    found = match_family(seen, settings(**attributes))
    assert isinstance(found, DetectorDecoder), found
    return found


def table(rows: Sequence[Sequence[float]]) -> NDArray[np.float32]:
    return np.array(rows, np.float32)


def read(
    tensors: Mapping[str, NDArray[Any]],
    size: tuple[int, int],
    labels: int | None,
    **attributes: Any,
) -> Candidates:
    """Decode the outputs of a model whose image was stretched, with the threshold that recorded
    results were made with."""
    attributes = {"default_minimum_confidence": 0.25, **attributes}
    seen = view({name: each.shape for name, each in tensors.items()}, labels=labels, size=size)
    return create_decoder(seen, **attributes).decode(tensors, stretch_fit(*size))


def assert_candidates(
    found: Candidates, rows: Sequence[recorded.Row], size: tuple[int, int]
) -> None:
    """Compare with rows of edges in pixels, score and class; equal scores may be in any order."""
    expected = np.array(sorted(rows, key=lambda row: -row[4]))
    edges = np.clip(expected[:, :4] / [*size, *size], 0, 1)
    np.testing.assert_allclose(found.scores, expected[:, 4], atol=1e-4)
    order = np.lexsort((found.boxes[:, 0], -found.scores.round(3)))
    other = np.lexsort((edges[:, 0], -expected[:, 4].round(3)))
    np.testing.assert_allclose(found.boxes[order], edges[other], atol=1e-4)
    assert found.classes[order].tolist() == expected[other, 5].tolist()


@pytest.mark.parametrize("parts", [False, True], ids=["pixels", "parts"])
@pytest.mark.parametrize("upright", [False, True])
def test_yolo_v8_is_decoded_as_by_ultralytics(parts: bool, upright: bool) -> None:
    rows = table(recorded.YOLO_V8)
    if parts:
        rows[:, :4] /= [320, 256, 320, 256]
    output = (rows if upright else rows.T)[np.newaxis]
    found = read({"output0": output}, (320, 256), 3)
    assert_candidates(found, recorded.YOLO_V8_BY_ULTRALYTICS, (320, 256))


@pytest.mark.parametrize("edges", [False, True])
def test_boxes_and_scores_in_two_outputs_are_decoded_alike(edges: bool) -> None:
    rows = table(recorded.YOLO_V8)
    boxes, scores = rows[:, :4], rows[:, 4:]
    if edges:
        boxes = np.hstack((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2))
    expected = recorded.YOLO_V8_BY_ULTRALYTICS
    assert_candidates(
        read({"b": boxes[None], "s": scores[None]}, (320, 256), 3), expected, (320, 256)
    )
    assert_candidates(
        read({"s": scores.T[None], "b": boxes.T[None]}, (320, 256), 3), expected, (320, 256)
    )
    assert_candidates(
        read({"b": boxes[None, :, None], "s": scores[None]}, (320, 256), 3), expected, (320, 256)
    )


def test_yolo_v5_is_decoded_as_by_yolov5() -> None:
    found = read({"output0": table(recorded.YOLO_V5)[np.newaxis]}, (320, 256), 3)
    assert_candidates(found, recorded.YOLO_V5_BY_YOLOV5, (320, 256))


def test_yolox_is_decoded_as_by_ddddocr() -> None:
    output = np.zeros((1, 3549, 6), np.float32)
    for row, numbers in recorded.YOLOX.items():
        output[0, row] = numbers
    found = read({"output": output}, (416, 416), None, default_minimum_confidence=0.1)
    assert_candidates(found, recorded.YOLOX_BY_DDDDOCR, (416, 416))


def test_end_to_end_rows_are_decoded_as_by_ultralytics() -> None:
    output = np.zeros((1, 300, 6), np.float32)
    output[0, : len(recorded.END_TO_END)] = recorded.END_TO_END
    found = read({"output0": output}, (320, 256), 3)
    assert_candidates(found, recorded.END_TO_END_BY_ULTRALYTICS, (320, 256))


@pytest.mark.parametrize(
    ("order", "padding"),
    [
        ([0, 1, 2, 3, 5, 4], 0),  # with class and score the other way round
        ([5, 4, 0, 1, 2, 3], -1),  # as PaddleDetection
        ([6, 0, 1, 2, 3, 5, 4], 0),  # as YOLOv7 with its NMS
        ([6, 5, 4, 0, 1, 2, 3], 0),  # as DetectionOutput of OpenVINO
    ],
)
def test_columns_of_end_to_end_rows_are_recognized_by_their_values(
    order: list[int], padding: int
) -> None:
    rows = table([(*row, 0) for row in recorded.END_TO_END])[:, order]
    rows = np.vstack((rows, np.full((3, len(order)), padding, np.float32)))
    found = read({"output": rows}, (320, 256), None)
    assert_candidates(found, recorded.END_TO_END_BY_ULTRALYTICS, (320, 256))


def test_end_to_end_row_may_be_inverted_and_exceed_the_labels() -> None:
    seen = view({"output": (DYNAMIC, 6)}, labels=80, size=(320, 256))
    output = table([(30, 40, 10, 20, 0.75, 90)])
    found = create_decoder(seen).decode({"output": output}, stretch_fit(320, 256))
    assert_candidates(found, [(10, 20, 30, 40, 0.75, 90)], (320, 256))


def test_box_as_large_as_the_image_is_not_taken_for_scores() -> None:
    rows = table([(1, 0.75, 0, 0, 1, 1), (0, 0.5, 0, 0, 1, 1)])
    found = read({"output": rows}, (320, 256), None)
    assert_candidates(found, [(0, 0, 320, 256, 0.75, 1), (0, 0, 320, 256, 0.5, 0)], (320, 256))


def detr_outputs(rows: int, filler: Sequence[float]) -> dict[str, NDArray[np.float32]]:
    """Place the recorded rows among many that say `nothing`."""
    logits = np.tile(np.array(filler, np.float32), (rows, 1))
    logits[5:13] = table(recorded.DETR_LOGITS)[:, : len(filler)]
    boxes = np.tile(np.array([0.5, 0.5, 0.2, 0.2], np.float32), (rows, 1))
    boxes[5:13] = recorded.DETR_BOXES
    return {"logits": logits[np.newaxis], "pred_boxes": boxes[np.newaxis]}


@pytest.mark.parametrize("labels", [4, None])
def test_detr_is_decoded_as_by_transformers(labels: int | None) -> None:
    found = read(detr_outputs(100, [-4, -4, -4, -4, 6]), (640, 480), labels)
    assert_candidates(found, recorded.DETR_BY_TRANSFORMERS, (640, 480))


@pytest.mark.parametrize("labels", [4, None])
def test_rt_detr_is_decoded_as_by_transformers(labels: int | None) -> None:
    outputs = detr_outputs(300, [-5, -5, -5, -5])
    found = read(outputs, (640, 480), labels, default_minimum_confidence=0.15)
    assert_candidates(found, recorded.RT_DETR_BY_TRANSFORMERS, (640, 480))


def test_rf_detr_has_no_background_class_whatever_the_labels() -> None:
    outputs = detr_outputs(300, [-5, -5, -5, -5])
    outputs = {"dets": outputs["pred_boxes"], "labels": outputs["logits"]}
    found = read(outputs, (640, 480), 3, default_minimum_confidence=0.15)
    assert_candidates(found, recorded.RT_DETR_BY_TRANSFORMERS, (640, 480))


def test_rt_detr_with_sigmoid_in_one_output_is_decoded() -> None:
    outputs = detr_outputs(300, [-5, -5, -5, -5])
    shares = 1 / (1 + np.exp(-outputs["logits"]))
    output = np.concatenate((outputs["pred_boxes"], shares), axis=2)
    seen = view({"output0": output.shape}, labels=4)
    assert create_decoder(seen).family == "detr"
    found = read({"output0": output}, (640, 480), 4, default_minimum_confidence=0.15)
    assert_candidates(found, recorded.RT_DETR_BY_TRANSFORMERS, (640, 480))


@pytest.mark.parametrize("layout", ["v8", "v5"])
@pytest.mark.parametrize("photo", ["collage_1280x720", "chelsea", "coffee", "astronaut"])
def test_real_models_find_the_reference_objects_in_photos(layout: str, photo: str) -> None:
    engine = _engine(layout)
    expected = golden_outputs("yolov2tiny_nms_stretch")[f"{photo}.jpg"]
    facts = engine.info
    seen = ModelView(facts.inputs, facts.outputs, facts.labels, facts.properties)
    found = create_decoder(seen, default_minimum_confidence=0.3)
    assert found.family == f"yolo_{layout}"
    things = found.decode(engine.run({"images": _stretch_photo(photo)}), stretch_fit(416, 416))
    assert facts.labels is not None
    names = [facts.labels.get(int(number)) for number in things.classes]
    assert sorted(map(str, names)) == sorted(each["label"] for each in expected)
    for each in expected:
        edges = np.clip(np.array(each["xyxy_416"]) / 416, 0, 1)
        assert any(
            name == each["label"]
            and abs(score - each["score"]) < 0.08
            and np.abs(box - edges).max() < 0.02
            for name, score, box in zip(names, things.scores, things.boxes, strict=True)
        ), each


@cache
def _engine(layout: str) -> OnnxEngine:
    return OnnxEngine(str(model_path(f"yolov2tiny_{layout}layout_w8.onnx")), threads=1)


def _stretch_photo(photo: str) -> NDArray[np.float32]:
    pixels = cv2.imread(str(photo_path(f"{photo}.jpg")), cv2.IMREAD_COLOR_RGB)
    assert pixels is not None
    small = cv2.resize(pixels, (416, 416), interpolation=cv2.INTER_AREA)
    tensor = np.ascontiguousarray(small.transpose(2, 0, 1)[np.newaxis], np.float32)
    tensor /= 255
    return tensor


def test_real_yolox_agrees_with_its_reference_code() -> None:
    detection_engine = pytest.importorskip("ddddocr.core.detection_engine")
    own = detection_engine.DetectionEngine()
    engine = OnnxEngine(str(Path(detection_engine.__file__).parents[1] / "common_det.onnx"), 1)
    found = create_decoder(
        ModelView(engine.info.inputs, engine.info.outputs), default_minimum_confidence=0.1
    )
    total = 0
    for path in photo_paths():
        pixels = cv2.imread(str(path))
        assert pixels is not None
        expected = own.get_bbox(path.read_bytes())
        tensor, ratio = own.preproc(pixels, (416, 416))
        height, width = pixels.shape[:2]
        outputs = engine.run({"images": tensor[np.newaxis]})
        things = found.decode(outputs, ImageFit(416, 416, width * ratio, height * ratio))
        edges = things.boxes * [width, height, width, height]
        assert len(edges) == len(expected)
        assert np.abs(edges - np.array(expected).reshape(-1, 4)).max(initial=0) < 1
        total += len(expected)
    assert total > 10


COCO = {"output0": (1, 84, 8400)}


@pytest.mark.parametrize(
    ("family", "seen"),
    [
        ("yolo_v8", view(COCO, labels=80)),
        ("yolo_v8", view(COCO)),
        ("yolo_v8", view({"output0": (DYNAMIC, 84, DYNAMIC)}, labels=80, size=None)),
        ("yolo_v8", view({"output0": (DYNAMIC, 84, 8400)}, size=None, imgsz=[640.0, 640.0])),
        ("yolo_v8", view({"output0": (1, 8400, 84)})),
        ("yolo_v8", view({"output0": (1, 8400, 5)}, labels=1)),
        ("yolo_v8", view({"output0": (1, 5, 8400)})),
        ("yolo_v8", view({"output0": (1, 6, 8400)}, labels=2)),
        ("yolo_v8", view({"output0": (1, 84, 33600)}, size=(1280, 1280))),
        ("yolo_v8", view({"output0": (1, 84, 34000)}, size=(1280, 1280))),
        ("yolo_v8", view({"output0": (1, 116, 8400), "m": (1, 32, 160, 160)}, task="segment")),
        ("yolo_v8", view({"output0": (1, 116, 8400), "m": (1, 160, 160, 32)}, labels=80)),
        ("yolo_v8", view({"output0": (1, 56, 8400)}, labels=1, task="pose", kpt_shape=[17, 3])),
        ("yolo_v8", view({"b": (1, 8400, 4), "s": (1, 8400, 80)})),
        ("yolo_v8", view({"boxes": (1, 10647, 1, 4), "confs": (1, 10647, 80)}, size=(416, 416))),
        ("yolo_v5", view({"output0": (1, 25200, 85)}, labels=80)),
        ("yolo_v5", view({"output0": (1, 25200, 85)})),
        ("yolo_v5", view({"output0": (1, 85, 25200)})),
        ("yolo_v5", view({"output": (1, 25200, 6), "raw": (1, 3, 80, 80, 6)}, labels=1)),
        ("yolo_v5", view({"output": (1, DYNAMIC, 85)}, labels=80)),
        ("yolo_v5", view({"output": (1, 25200, 117), "m": (1, 32, 160, 160)}, labels=80)),
        ("yolox", view({"output": (1, 8400, 85)}, labels=80)),
        ("yolox", view({"output": (1, 3549, 6)}, size=(416, 416))),
        ("end_to_end", view({"output0": (1, 300, 6)}, labels=80)),
        ("end_to_end", view({"output0": (1, 300, 6)}, labels=2)),
        ("end_to_end", view({"output0": (1, DYNAMIC, 6)}, labels=1, end2end=True)),
        ("end_to_end", view({"output0": (1, DYNAMIC, 6)}, labels=1, args={"nms": True})),
        ("end_to_end", view({"output0": (1, DYNAMIC, 6)}, labels=80)),
        ("end_to_end", view({"output0": (1, 300, 38), "m": (1, 32, 160, 160)}, labels=80)),
        ("end_to_end", view({"output": (DYNAMIC, 7)}, labels=80)),
        ("end_to_end", view({"output": (1, 1, 200, 7)})),
        ("detr", view({"logits": (DYNAMIC, DYNAMIC, 92), "pred_boxes": (DYNAMIC, DYNAMIC, 4)})),
        ("detr", view({"dets": (1, 300, 4), "labels": (1, 300, 91)})),
        ("detr", view({"output0": (1, 300, 84)}, labels=80)),
    ],
    ids=lambda each: each if isinstance(each, str) else ", ".join(map(str, each.outputs)),
)
def test_family_is_recognized(family: str, seen: ModelView) -> None:
    found = create_decoder(seen)
    assert found.family == family
    assert found.assumptions


def test_families_have_their_preprocessing_defaults() -> None:
    yolo = create_decoder(view(COCO))
    assert (yolo.letterbox, yolo.align_top_left, yolo.normalization, yolo.bgr) == (
        True,
        False,
        "0..1",
        False,
    )
    yolox = create_decoder(view({"output": (1, 8400, 85)}))
    assert (yolox.letterbox, yolox.align_top_left, yolox.normalization, yolox.bgr) == (
        True,
        True,
        "0..255",
        True,
    )
    old = create_decoder(view({"logits": (1, 100, 92), "pred_boxes": (1, 100, 4)}, labels=91))
    assert (old.letterbox, old.normalization) == (False, "imagenet")
    rt = create_decoder(view({"logits": (1, 300, 80), "pred_boxes": (1, 300, 4)}, labels=80))
    assert (rt.letterbox, rt.normalization) == (False, "0..1")


@pytest.mark.parametrize(
    ("words", "seen", "family"),
    [
        ("anchors", view({"r": (1, 896, 16), "c": (1, 896, 1)}), None),
        ("anchors", view({"b": (1, 1917, 4), "s": (1, 1917, 91)}, labels=90), None),
        ("there are 91 labels", view(COCO, labels=91), None),
        ("Set `label_path`", view({"o": (1, 84, 845)}), None),
        ("oriented boxes", view({"o": (1, 20, 8400)}, labels=15, task="obb"), None),
        ("classify", view({"o": (1, 1000)}, labels=1000, task="classify"), None),
        ("match no known detector format", view({"o": (1, 1000)}), None),
        ("match no known detector format", view({"o": (DYNAMIC, 7)}, labels=7), None),
        ("maps", view({"a": (1, 255, 80, 80), "b": (1, 255, 40, 40)}), None),
        ("`end_to_end`, `yolo_v8` or `yolo_v5`", view({"o": (1, DYNAMIC, 6)}, labels=2), None),
        ("(none)", view({}), None),
        ("does not declare", view({"o": None}, labels=80), None),
        ("set to `detr`", view(COCO | {"x": (1, 7)}), "detr"),
        ("set to `end_to_end`", view(COCO), "end_to_end"),
        ("set to `yolo_v8`", view({"o": (1, 4, 8400)}), "yolo_v8"),
        ("set to `ssd`", view(COCO), "ssd"),
    ],
)
def test_unknown_families_are_refused_with_a_reason(
    words: str, seen: ModelView, family: str | None
) -> None:
    found = match_family(seen, settings(family=family))
    assert isinstance(found, Mismatch)
    assert words in " ".join(found.reasons)


def test_configured_family_overrides_recognition() -> None:
    assert create_decoder(view(COCO, labels=91), family="yolo_v8").family == "yolo_v8"
    assert (
        create_decoder(view({"o": (1, 25200, 85)}, labels=81), family="yolo_v8").family == "yolo_v8"
    )


@pytest.mark.parametrize("shape", [None, (DYNAMIC, DYNAMIC, DYNAMIC)])
def test_configured_family_needs_no_shapes(shape: Shape) -> None:
    seen = view({"o": shape}, size=None)
    for family in ("yolo_v8", "yolo_v5", "yolox", "end_to_end", "detr"):
        assert create_decoder(seen, family=family).family == family
    rows = table(recorded.YOLO_V8).T[np.newaxis]
    decoder = create_decoder(seen, family="yolo_v8", default_minimum_confidence=0.25)
    found = decoder.decode({"o": rows}, stretch_fit(320, 256))
    assert_candidates(found, recorded.YOLO_V8_BY_ULTRALYTICS, (320, 256))


def test_quantized_outputs_are_dequantized() -> None:
    rows = table(recorded.YOLO_V8)
    rows[:, :4] /= [320, 256, 320, 256]
    quantization = Quantization(1 / 250, -120)
    stored = np.round(rows * 250 - 120).astype(np.int8).T[np.newaxis]
    facts = TensorSpec("o", stored.dtype, stored.shape, quantization=quantization)
    seen = view({}, labels=3, size=(320, 256))
    seen = ModelView(seen.inputs, (facts,), seen.labels)
    decoder = create_decoder(seen, default_minimum_confidence=0.25)
    found = decoder.decode({"o": stored}, stretch_fit(320, 256))
    expected = np.array(recorded.YOLO_V8_BY_ULTRALYTICS)
    assert sorted(found.classes) == sorted(expected[:, 5])
    np.testing.assert_allclose(found.scores, expected[:, 4], atol=1 / 250)
    centers = found.boxes.reshape(-1, 2, 2).mean(axis=(0, 1))
    edges = np.clip(expected[:, :4] / [320, 256, 320, 256], 0, 1)
    np.testing.assert_allclose(centers, edges.reshape(-1, 2, 2).mean(axis=(0, 1)), atol=1 / 250)


SMALL = (64, 64)
"""An input of 84 cells."""


def one_box(*box: float, score: float = 0.9) -> NDArray[np.float32]:
    """Return the output of a head with one class that finds one object among many rows."""
    output = np.zeros((1, 5, 84), np.float32)
    output[0, :2] = 60
    output[0, :, 40] = (*box, score)
    return output


def test_boxes_are_relative_to_the_image_inside_the_letterbox() -> None:
    # 200x100 pixels in 64x64 are 64x32, with 16 empty rows above.
    fit = ImageFit(64, 64, scale_x=64, scale_y=32, offset_y=16)
    found = create_decoder(view({"o": (1, 5, 84)}, size=SMALL)).decode(
        {"o": one_box(16, 32, 8, 8)}, fit
    )
    np.testing.assert_allclose(found.boxes, [[12 / 64, 12 / 32, 20 / 64, 20 / 32]])
    over = create_decoder(view({"o": (1, 5, 84)}, size=SMALL)).decode(
        {"o": one_box(4, 16, 16, 8)}, fit
    )
    np.testing.assert_allclose(over.boxes, [[0, 0, 12 / 64, 4 / 32]])
    beside = create_decoder(view({"o": (1, 5, 84)}, size=SMALL)).decode(
        {"o": one_box(32, 6, 9, 9)}, fit
    )
    assert len(beside) == 0


def test_negative_sizes_are_normalized() -> None:
    found = read({"o": one_box(16, 32, -8, 8)}, SMALL, None)
    np.testing.assert_allclose(found.boxes, [[12 / 64, 28 / 64, 20 / 64, 36 / 64]])


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", range(5))
def test_rows_with_nan_or_infinity_are_dropped(odd: float, column: int) -> None:
    output = one_box(16, 32, 8, 8)
    output[0, :, 50] = (48, 48, 8, 8, 0.9)
    output[0, column, 50] = odd
    assert len(read({"o": output}, SMALL, None)) == 1


def test_scores_slightly_above_1_are_clipped() -> None:
    assert read({"o": one_box(16, 32, 8, 8, score=1.02)}, SMALL, None).scores.tolist() == [1]


def test_minimum_confidence_is_applied() -> None:
    output = one_box(16, 32, 8, 8, score=0.2)
    assert len(read({"o": output}, SMALL, None, default_minimum_confidence=None)) == 1
    assert len(read({"o": output}, SMALL, None, default_minimum_confidence=0.2)) == 1
    assert len(read({"o": output}, SMALL, None, default_minimum_confidence=0.3)) == 0
    by_label = {"label 0": 0.1, "other": 0.9}
    assert len(read({"o": output}, SMALL, None, label_confidences=by_label)) == 1
    assert any("0.001" in each for each in create_decoder(view(COCO)).assumptions)
    assert not any(
        "0.001" in each
        for each in create_decoder(view(COCO), label_confidences={"a": 1}).assumptions
    )


def test_without_thresholds_only_empty_rows_are_dropped() -> None:
    for score, count in ((0.0, 0), (0.0009, 0), (0.0011, 1)):
        output = one_box(16, 32, 8, 8, score=score)
        assert len(read({"o": output}, SMALL, None, default_minimum_confidence=None)) == count


def _decoded_yolox_output() -> NDArray[np.float32]:
    """Return the empty output of a YOLOX for 416x416 that has added its grid itself."""
    places = [
        (x * stride, y * stride, stride, stride, 0, 0)
        for stride in (8, 16, 32)
        for y in range(416 // stride)
        for x in range(416 // stride)
    ]
    return table(places)[np.newaxis]


YOLOX = view({"o": (1, 3549, 6)}, size=(416, 416))
PAIR = view({"b": (1, 8400, 4), "s": (1, 8400, 2)})
DETR = view({"logits": (1, 100, 4), "pred_boxes": (1, 100, 4)})


@pytest.mark.parametrize(
    ("words", "seen", "outputs"),
    [
        ("did not return", view(COCO), {}),
        ("one image", view(COCO), {"output0": np.zeros((2, 84, 8400))}),
        ("5 are needed", view(COCO), {"output0": np.zeros((1, 3, 8400))}),
        ("from 0 to 1", view(COCO), {"output0": np.full((1, 84, 8400), 9)}),
        ("is not numeric", view(COCO), {"output0": np.array([["cat"]])}),
        ("`yolo_v5`", YOLOX, {"o": _decoded_yolox_output()}),
        ("`yolo_v5`", YOLOX, {"o": _decoded_yolox_output() / 416}),
        ("YOLO grid", YOLOX, {"o": np.zeros((1, 100, 6))}),
        (
            "`yolox`",
            view({"o": (1, DYNAMIC, 8)}, labels=3, size=(416, 416)),
            {"o": np.zeros((1, 3549, 8))},
        ),
        ("unknown order", view({"o": (1, 300, 6)}), {"o": np.full((1, 300, 6), 0.5)}),
        (
            "anchors",
            PAIR,
            {"b": np.tile([1, 1, -1, -1], (1, 8400, 1)), "s": np.zeros((1, 8400, 2))},
        ),
        ("7 boxes", PAIR, {"b": np.zeros((1, 7, 4)), "s": np.zeros((1, 9, 2))}),
        (
            "not normalized",
            DETR,
            {"logits": np.zeros((1, 100, 4)), "pred_boxes": np.full((1, 100, 4), 50)},
        ),
    ],
)
def test_outputs_that_contradict_the_family_are_refused(
    words: str, seen: ModelView, outputs: dict[str, NDArray[Any]]
) -> None:
    shape = seen.inputs[0].shape
    assert shape is not None
    with pytest.raises(BadOutput, match=words):
        create_decoder(seen).decode(outputs, stretch_fit(shape[3], shape[2]))


HEADS = (
    view({"o": (1, 7, 84)}, labels=3, size=SMALL),
    view({"o": (1, 84, 7)}, labels=3, size=SMALL),
    view({"o": (1, 252, 8)}, labels=3, size=SMALL),
    view({"o": (1, 84, 8)}, labels=3, size=SMALL),
    view({"o": (1, 20, 6)}, labels=3, size=SMALL),
    view({"o": (DYNAMIC, 7)}, size=SMALL),
    view({"o": (1, 1, 20, 7)}, size=SMALL),
    view({"boxes": (1, 84, 4), "s": (1, 84, 3)}, size=SMALL),
    view({"logits": (1, 9, 4), "pred_boxes": (1, 9, 4)}, labels=3, size=SMALL),
    view({"logits": (1, 9, 3), "pred_boxes": (1, 9, 4)}, size=SMALL),
)
_WILD = st.floats(width=32) | st.sampled_from((0.0, 0.5, 1.0, 30.0, np.nan, np.inf, 3e38))
_LIKELY = st.floats(0, 1, width=32)


@given(st.data())
def test_any_output_is_decoded_or_refused(data: st.DataObject) -> None:
    seen = data.draw(st.sampled_from(HEADS))
    numbers = data.draw(st.sampled_from((_WILD, _LIKELY)))
    outputs = {
        facts.name: data.draw(
            arrays.arrays(
                data.draw(st.sampled_from((np.float32, np.float64))),
                tuple(3 if extent == DYNAMIC else extent for extent in facts.shape or ()),
                elements=numbers,
                fill=numbers,
            )
        )
        for facts in seen.outputs
    }
    found = create_decoder(seen, default_minimum_confidence=data.draw(_LIKELY), max_detections=30)
    try:
        things = found.decode(outputs, ImageFit(64, 64, 64, 48, 0, 8))
    except BadOutput:
        return
    assert ((things.boxes >= 0) & (things.boxes <= 1)).all()
    assert (things.boxes[:, :2] < things.boxes[:, 2:]).all()
    assert ((things.scores >= 0) & (things.scores <= 1)).all()
    assert (np.diff(things.scores) <= 0).all()
    assert (things.classes >= 0).all()
    assert things.boxes.dtype == things.scores.dtype == np.dtype(np.float32)


_EXTENT = st.sampled_from((DYNAMIC, 1, 2, 3, 4, 5, 6, 7, 16, 80, 84, 85, 100, 300, 8400, 25200))
_OUTPUTS = st.dictionaries(
    st.sampled_from(("o", "boxes", "scores", "labels", "logits", "pred_boxes", "num_dets")),
    st.none() | st.lists(_EXTENT, max_size=5).map(tuple),
    max_size=4,
)
_NOTES = st.fixed_dictionaries(
    {},
    optional={
        "task": st.sampled_from(("detect", "segment", "pose", 3)),
        "imgsz": st.sampled_from(([640, 640], [640.0], 640, "640", [], None, [-1], [0.5, 2])),
        "kpt_shape": st.sampled_from(([17, 3], "17", None)),
        "end2end": st.sampled_from((True, "true", 1.0, False, None)),
        "args": st.sampled_from(({"nms": True}, "nms", None)),
    },
)


@given(
    _OUTPUTS,
    st.sampled_from((None, 1, 2, 80)),
    st.sampled_from((None, (640, 640))),
    _NOTES,
    st.sampled_from((None, "yolo_v5", "yolo_v8", "yolox", "end_to_end", "detr", "named")),
)
def test_any_model_is_recognized_or_refused(
    outputs: dict[str, Shape],
    labels: int | None,
    size: tuple[int, int] | None,
    notes: dict[str, Any],
    family: str | None,
) -> None:
    found = match_family(view(outputs, labels=labels, size=size, **notes), settings(family=family))
    if isinstance(found, Mismatch):
        assert found.reasons
    else:
        assert family in (None, found.family)
        with pytest.raises(BadOutput):
            found.decode({}, stretch_fit(640, 640))
