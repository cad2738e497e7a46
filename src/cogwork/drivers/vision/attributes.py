"""Attributes of the vision services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from cogwork.config.schema.fields import (
    Attributes,
    Dependency,
    FileField,
    IgnoredValue,
    OptionalDependency,
    UnsetIfZero,
)

_CHANNELS = 3
UnitFloat = Annotated[float, Field(ge=0, le=1)]
ChannelValues = Annotated[
    list[float],
    Field(min_length=_CHANNELS),
    AfterValidator(lambda values: values[:_CHANNELS]),
    UnsetIfZero(),
]
CameraName = Annotated[str, OptionalDependency("rdk:component:camera"), UnsetIfZero()]

MAX_DETECTIONS = 10_000
"""Largest allowed `max_detections`. It bounds the run time and the size of replies for models that
output very many rows."""

Family = Literal["named", "ssd", "yolo_v5", "yolo_v8", "yolox", "end_to_end", "detr"]


class MlmodelVisionAttributes(Attributes):
    """Finds objects or classes in images, with an ML model."""

    mlmodel_name: Annotated[str, Field(min_length=1), Dependency("rdk:service:mlmodel")]
    """Name of the ML model service to run."""
    camera_name: CameraName | None = None
    """Camera to use for calls that do not name one."""
    remap_input_names: dict[str, str] = {}
    """Maps the model's input name to `image`."""
    remap_output_names: dict[str, str] = {}
    """Maps the model's output names to the required ones: `location`, `category` and `score` for a
    detector, `probability` for a classifier."""
    input_image_bgr: bool | None = None
    """Whether the model expects BGR instead of RGB channel order. Defaults to the convention of the
    model's family: BGR for YOLOX and for detectors of OpenVINO, RGB for all others."""
    input_image_mean_value: ChannelValues | None = None
    """Mean to subtract from each channel (values from 0 to 1), for models with float input. Values
    after the third are ignored. Defaults to the convention of the model's family, otherwise to
    `[0.5, 0.5, 0.5]`."""
    input_image_std_dev: ChannelValues | None = None
    """Standard deviation to divide each channel by after subtracting the mean. Values after the
    third are ignored. Defaults to the convention of the model's family, otherwise to `[0.5, 0.5,
    0.5]`."""
    default_minimum_confidence: UnitFloat | None = None
    """Minimum confidence of reported results. If omitted, results are not filtered by
    confidence."""
    label_confidences: dict[str, UnitFloat] = {}
    """Minimum confidence per label. Labels that are not listed are not reported, and
    `default_minimum_confidence` is ignored. The log and the status show listed labels
    that the model does not have."""
    label_path: Annotated[FileField, UnsetIfZero()] | None = None
    """Label file, one label per class index. Defaults to the labels of the model. Classes without
    a label are reported by index."""
    xmin_ymin_xmax_ymax_order: (
        Annotated[list[int], Field(min_length=4, max_length=4), UnsetIfZero()] | None
    ) = None
    """Order of the box columns, if it is not y, x, y, x: 0 is the left edge, 1 the top, 2 the right
    and 3 the bottom."""
    family: Family | None = None
    """Output format of the model. Detected from the model if omitted; `cogwork model inspect` shows
    the result."""
    letterbox: bool | None = None
    """Whether to keep the aspect ratio of the image and pad it with gray. Defaults to the
    convention of the model's family; other models get a stretched image."""
    max_detections: Annotated[int, Field(ge=1, le=MAX_DETECTIONS)] = MAX_DETECTIONS
    """Maximum number of detections per image, highest confidence first. A warning is logged when
    detections are dropped."""
    nms_overlap: UnitFloat = 0.45
    """IoU above which the less confident of two boxes with the same label is dropped, for families
    without built-in non-maximum suppression."""

    def ignored_values(self, written: Mapping[str, JsonValue]) -> tuple[IgnoredValue, ...]:
        channels = {
            key: written.get(key) for key in ("input_image_mean_value", "input_image_std_dev")
        }
        return tuple(
            IgnoredValue(
                (key,),
                f"only the first {_CHANNELS} values are used, one for each channel of the image",
                f"write {_CHANNELS} values",
                values[:_CHANNELS],
            )
            for key, values in channels.items()
            if isinstance(values, list) and len(values) > _CHANNELS
        )


class ColorDetectorAttributes(Attributes):
    """Detects areas of one color in the images of a camera."""

    detect_color: Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]
    """Color to detect, as `#rrggbb`."""
    hue_tolerance_pct: Annotated[float, Field(gt=0, le=1)] = 0.05
    """Maximum difference between the hue of a matching pixel and the hue of `detect_color`, as a
    fraction of the color wheel."""
    saturation_cutoff_pct: UnitFloat = 0.2
    """Minimum saturation of a matching pixel."""
    value_cutoff_pct: UnitFloat = 0.3
    """Minimum brightness of a matching pixel."""
    segment_size_px: Annotated[int, Field(ge=0)] = 100
    """Minimum size of a blob in pixels."""
    label: str = ""
    """Label of the detections. Defaults to the name of the nearest basic color."""
    camera_name: CameraName | None = None
    """Camera to use for calls that do not name one."""


class FakeDetection(Attributes):
    label: str
    """Label of the detection."""
    confidence: UnitFloat = 1.0
    """Confidence of the detection."""
    box: Annotated[list[UnitFloat], Field(min_length=4, max_length=4)] = [0.25, 0.25, 0.75, 0.75]
    """Left, top, right and bottom edge, as fractions of the image."""


class FakeClassification(Attributes):
    label: str
    """Label of the classification."""
    confidence: UnitFloat = 1.0
    """Confidence of the classification."""


class FakeVisionAttributes(Attributes):
    """A vision service that finds in every image what is configured."""

    detections: list[FakeDetection] = [FakeDetection(label="thing")]
    """Detections to report for every image: `label`, `confidence`, `box`."""
    classifications: list[FakeClassification] = [FakeClassification(label="thing")]
    """Classifications to report for every image: `label`, `confidence`."""
    camera_name: CameraName | None = None
    """Camera to use for calls that do not name one."""
