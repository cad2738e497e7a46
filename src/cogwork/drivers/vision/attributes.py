"""What the vision services read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cogwork.config.fields import Attributes, FileField, Needs

Share = Annotated[float, Field(ge=0, le=1)]
Three = Annotated[list[float], Field(min_length=3, max_length=3)]

Family = Literal["named", "ssd", "yolo_v5", "yolo_v8", "yolox", "end_to_end", "detr"]


class MlmodelVisionAttributes(Attributes):
    mlmodel_name: Annotated[str, Field(min_length=1), Needs("rdk:service:mlmodel")]
    """The ML model service whose model is used."""
    camera_name: Annotated[str, Needs("rdk:component:camera")] | None = None
    """The camera of calls that name none."""
    remap_input_names: dict[str, str] = {}
    """From the model's name of its input to `image`."""
    remap_output_names: dict[str, str] = {}
    """From the model's names of its outputs to the required ones: `location`, `category` and
    `score` of a detector, `probability` of a classifier."""
    input_image_bgr: bool = False
    """Whether the model wants blue, green, red instead of red, green, blue."""
    input_image_mean_value: Three = [0.5, 0.5, 0.5]
    """What is subtracted from each channel (values from 0 to 1), for models that take floats."""
    input_image_std_dev: Three = [0.5, 0.5, 0.5]
    """What each channel is divided by after that."""
    default_minimum_confidence: Share | None = None
    """The least confidence of anything that is reported."""
    label_confidences: dict[str, Share] = {}
    """The least confidence label by label. Labels that are not in it are not reported, and
    `default_minimum_confidence` does not count."""
    label_path: FileField | None = None
    """What the model's numbers are called; the model's own labels when left out."""
    xmin_ymin_xmax_ymax_order: Annotated[list[int], Field(min_length=4, max_length=4)] | None = None
    """Which column of a box is what, where the model's order is not y, x, y, x: 0 is the left
    edge, 1 the upper, 2 the right and 3 the lower."""
    family: Family | None = None
    """How the outputs are read. Found out from the model when left out; `cogwork model inspect`
    tells."""
    letterbox: bool | None = None
    """Whether a picture keeps its shape in the model's input, with grey edges. As the model's
    family does it when left out; others stretch the picture."""
    maximum_detections: Annotated[int, Field(ge=1, le=10_000)] = 300
    """How many detections of one picture are reported at most, the surest first."""
    nms_overlap: Share = 0.45
    """How much two boxes of one label may overlap before the less sure one is dropped, for
    families that do not do that themselves."""


class ColorDetectorAttributes(Attributes):
    detect_color: Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")]
    """The colour to look for, as `#rrggbb`."""
    hue_tolerance_pct: Annotated[float, Field(gt=0, le=1)] = 0.05
    """How far a hue may be from it, as a part of the colour circle."""
    saturation_cutoff_pct: Share = 0.2
    """The least saturation of a pixel that counts."""
    value_cutoff_pct: Share = 0.3
    """The least brightness of a pixel that counts."""
    segment_size_px: Annotated[int, Field(ge=1)] = 100
    """The least number of pixels of a patch."""
    label: str = ""
    """What the detections are called; the name of the nearest plain colour when left out."""
    camera_name: Annotated[str, Needs("rdk:component:camera")] | None = None
    """The camera of calls that name none."""


class FakeDetection(Attributes):
    label: str
    """What it is."""
    confidence: Share = 1.0
    """How sure it is."""
    box: Annotated[list[Share], Field(min_length=4, max_length=4)] = [0.25, 0.25, 0.75, 0.75]
    """Left, upper, right and lower edge, as parts of the picture."""


class FakeClassification(Attributes):
    label: str
    """What it is."""
    confidence: Share = 1.0
    """How sure it is."""


class FakeVisionAttributes(Attributes):
    detections: list[FakeDetection] = [FakeDetection(label="thing")]
    """What it detects in every picture: `label`, `confidence`, `box`."""
    classifications: list[FakeClassification] = [FakeClassification(label="thing")]
    """What it calls every picture: `label`, `confidence`."""
    camera_name: Annotated[str, Needs("rdk:component:camera")] | None = None
    """The camera of calls that name none."""
