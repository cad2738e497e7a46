"""Export the network as a SavedModel, and convert the SavedModel to TFLite."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from scripts.demo_model.data import HEIGHT, LABELS, WIDTH
from scripts.demo_model.layers import (
    COLUMNS,
    DETECTIONS,
    MIN_SCORE,
    ROWS,
    SUPPRESSED_LOGIT,
    Layer,
    cell_centers,
    cell_size,
)
from scripts.demo_model.metadata import LABELS_TEXT, NAME
from tensorflow.lite.tools import flatbuffer_utils

_CELLS = ROWS * COLUMNS
_SIGNATURE = "serving_default"
_FIXED_TIMESTAMP = (2026, 1, 1, 0, 0, 0)
_Tensor = Any  # TensorFlow has no type annotations.


class Detector(tf.Module):  # type: ignore[misc]
    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__(name=NAME)
        self._layers = [_Convolution(layer) for layer in layers]

    @tf.function(  # type: ignore[untyped-decorator]
        input_signature=[tf.TensorSpec([1, HEIGHT, WIDTH, 3], tf.uint8, name="image")]
    )
    def detect(self, image: _Tensor) -> dict[str, _Tensor]:
        maps = tf.cast(image, tf.float32) * (1 / 255)
        for layer in self._layers:
            maps = layer(maps)
        logits, cells = maps[..., : len(LABELS)], tf.reshape(maps, [_CELLS, -1])
        best = tf.reduce_max(logits, axis=3, keepdims=True)
        is_peak = tf.equal(best, tf.nn.max_pool2d(best, 3, 1, "SAME"))
        peaks = tf.where(is_peak, best, tf.constant(SUPPRESSED_LOGIT))
        values, chosen = tf.math.top_k(tf.reshape(peaks, [_CELLS]), DETECTIONS, sorted=True)
        kind = tf.argmax(tf.gather(cells[:, : len(LABELS)], chosen), axis=1, output_type=tf.int32)
        boxes = _decode_boxes(tf.gather(cells[:, len(LABELS) :], chosen), chosen)
        chance = tf.sigmoid(values)
        found = tf.cast(chance >= MIN_SCORE, tf.float32)
        return {
            "location": tf.reshape(boxes * found[:, None], [1, DETECTIONS, 4]),
            "category": tf.reshape(tf.cast(kind, tf.float32) * found, [1, DETECTIONS]),
            "score": tf.reshape(chance * found, [1, DETECTIONS]),
        }


class _Convolution(tf.Module):  # type: ignore[misc]
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self._stride, self._dilation = layer.stride, layer.dilation
        self._residual, self._rectified = layer.residual, layer.rectified
        self._kernel = tf.Variable(layer.kernel.transpose(2, 3, 1, 0), trainable=False)
        self._bias = tf.Variable(layer.bias, trainable=False)

    def __call__(self, x: _Tensor) -> _Tensor:
        y = tf.nn.conv2d(x, self._kernel, self._stride, "SAME", dilations=self._dilation)
        y = tf.nn.bias_add(y, self._bias)
        y = x + y if self._residual else y
        return tf.nn.relu(y) if self._rectified else y


def _decode_boxes(chosen: _Tensor, cells: _Tensor) -> _Tensor:
    cell = tf.constant(cell_size())
    center = (chosen[:, :2] + tf.gather(tf.constant(cell_centers()), cells)) * cell
    half = tf.exp(chosen[:, 2:]) * 0.5 * cell
    return tf.clip_by_value(tf.concat([center - half, center + half], axis=1), 0.0, 1.0)


def export_saved_model(layers: Sequence[Layer], folder: Path) -> None:
    detector = Detector(layers)
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(
        detector,
        str(folder),
        signatures={_SIGNATURE: detector.detect},
        options=tf.saved_model.SaveOptions(save_debug_info=False),
    )
    _remove_if_empty(folder / "assets")


def _remove_if_empty(folder: Path) -> None:
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()


def export_tflite(saved_model: Path, path: Path) -> None:
    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model))
    model = flatbuffer_utils.read_model_from_bytearray(bytearray(converter.convert()))
    _name_tensors(model)
    flatbuffer_utils.write_model(model, str(path))
    _append_labels(path)


def _name_tensors(model: Any) -> None:
    """Name inputs and outputs like the signature, and remove all other names to save space."""
    graph, signature = model.subgraphs[0], model.signatureDefs[0]
    for number, tensor in enumerate(graph.tensors):
        tensor.name = f"t{number}".encode()
    for named in (*signature.inputs, *signature.outputs):
        graph.tensors[named.tensorIndex].name = named.name


def _append_labels(path: Path) -> None:
    """Append the labels in a zip archive, where tools expect associated files of TFLite models."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo("labels.txt", _FIXED_TIMESTAMP), LABELS_TEXT)
