"""Attributes of the cameras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import (
    Attributes,
    Dependency,
    Duration,
    FileField,
    IgnoredValue,
    UnsetIfZero,
    fault,
)

PixelCount = Annotated[int, Field(gt=0, le=10_000)]
OptionalPixelCount = Annotated[int, Field(ge=0, le=10_000), UnsetIfZero()]
OptionalFrameRate = Annotated[float, Field(ge=0, le=240), UnsetIfZero()]
OptionalFile = Annotated[FileField, UnsetIfZero()]


class IntrinsicParameters(Attributes):
    """The projection of the lens, from the world to pixels."""

    width_px: PixelCount
    """Width of the images that were used for calibration."""
    height_px: PixelCount
    """Height of the images that were used for calibration."""
    fx: Annotated[float, Field(gt=0)]
    """Horizontal focal length in pixels."""
    fy: Annotated[float, Field(gt=0)]
    """Vertical focal length in pixels."""
    ppx: float
    """Principal point, in pixels from the left."""
    ppy: float
    """Principal point, in pixels from the top."""


class DistortionParameters(Attributes):
    """Lens distortion in the Brown-Conrady model."""

    rk1: float = 0.0
    """First radial coefficient."""
    rk2: float = 0.0
    """Second radial coefficient."""
    rk3: float = 0.0
    """Third radial coefficient."""
    tp1: float = 0.0
    """First tangential coefficient."""
    tp2: float = 0.0
    """Second tangential coefficient."""


class Optics(Attributes):
    intrinsic_parameters: Annotated[IntrinsicParameters, UnsetIfZero()] | None = None
    """Lens parameters: `width_px`, `height_px`, `fx`, `fy`, `ppx`, `ppy`. Required for point
    clouds."""
    distortion_parameters: DistortionParameters | None = None
    """Lens distortion: `rk1`, `rk2`, `rk3`, `tp1`, `tp2`."""


def _explain_odd_size(attributes: FakeCameraAttributes) -> str | None:
    odd = [key for key in ("width", "height") if getattr(attributes, key) % 2]
    return f'"{odd[0]}" must be even: video does not support odd sizes' if odd else None


class FakeCameraAttributes(Attributes):
    """A camera without hardware: a color gradient, or a conveyor belt with parts."""

    width: Annotated[int, Field(ge=64, le=10_000), UnsetIfZero()] = 1280
    """Width of the images; must be even."""
    height: Annotated[int, Field(ge=48, le=10_000), UnsetIfZero()] = 720
    """Height of the images; must be even."""
    scene: Literal["gradient", "conveyor"] = "gradient"
    """Scene to show: a color gradient, or gears, bolts and nuts on a conveyor belt. The conveyor
    also provides depth, as a second image (`depth` in addition to `color`) and as point clouds."""
    animated: bool = False
    """Whether the gradient moves. The conveyor always does."""
    frame_rate: OptionalFrameRate = 15.0
    """Images per second of a moving scene."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of the parts on the conveyor: the same seed shows the same parts."""
    ground_truth: bool = False
    """Whether images of the conveyor carry the bounding boxes of its parts as annotations."""

    @model_validator(mode="after")
    def _check_even_size(self) -> Self:
        if message := _explain_odd_size(self):
            raise fault(codes.BAD_VALUE, message)
        return self


_IMAGE_FILES = ("color_image_file_path", "depth_image_file_path", "pointcloud_file_path")


class ImageFileAttributes(Optics):
    """A camera that shows files: an image, depth or a point cloud."""

    color_image_file_path: OptionalFile | None = None
    """Path of a JPEG or PNG file, shown as the image `color`."""
    depth_image_file_path: OptionalFile | None = None
    """Path of a file with distances in millimeters, a 16-bit PNG or raw depth, shown as the image
    `depth`."""
    pointcloud_file_path: OptionalFile | None = None
    """Path of a PCD file with the point cloud. Defaults to one computed from the depth image."""

    preloaded_image: Annotated[str, UnsetIfZero()] | None = None
    """Not available: the images `pizza`, `dog` and `crowd` of viam-server are not included."""

    def ignored_values(self, written: Mapping[str, JsonValue]) -> tuple[IgnoredValue, ...]:
        if not written.get("preloaded_image"):
            return ()
        message = "the images of viam-server are not included; the files are shown"
        return (IgnoredValue(("preloaded_image",), message, is_removable=True),)

    @model_validator(mode="before")
    @classmethod
    def _drop_unused_image(cls, data: Any) -> Any:
        """Drop the image if there are files, so that the same runs without it."""
        if isinstance(data, dict) and any(data.get(key) for key in _IMAGE_FILES):
            return {key: value for key, value in data.items() if key != "preloaded_image"}
        return data

    @model_validator(mode="after")
    def _check_any_file(self) -> Self:
        if not any(getattr(self, key) for key in _IMAGE_FILES):
            if self.preloaded_image is not None:
                raise fault(
                    codes.NOT_TAKEN_OVER,
                    f'the image "{self.preloaded_image}" is not included; write the path of an '
                    'image as "color_image_file_path"',
                )
            raise fault(
                codes.MISSING_FIELD,
                '"color_image_file_path", "depth_image_file_path" or "pointcloud_file_path" is '
                "missing: set at least one",
            )
        return self


class WebcamAttributes(Optics):
    """A camera that is connected to this computer, such as a USB webcam."""

    video_path: str = ""
    """Device to use: `/dev/video0`, or better its link in `/dev/v4l/by-id`, which does not depend
    on the USB port. Defaults to the first camera."""
    format: Annotated[str, UnsetIfZero()] | None = None
    """Pixel format of the device, such as `MJPG` or `YUYV`. Defaults to the best one available."""
    width_px: OptionalPixelCount | None = None
    """Width of the images. Defaults to about 1280."""
    height_px: OptionalPixelCount | None = None
    """Height of the images. Defaults to about 720."""
    frame_rate: OptionalFrameRate | None = None
    """Images per second. Defaults to about 30."""


class FilterAttributes(Attributes):
    """An FFmpeg filter."""

    name: Annotated[str, Field(min_length=1, pattern=r"^\w+$")]
    """Name of the filter, such as `scale` or `hflip`."""
    args: list[str] = []
    """Positional arguments."""
    kw_args: dict[str, JsonValue] = {}
    """Named arguments."""


class FfmpegAttributes(Optics):
    """A network camera, a video file or anything else that FFmpeg can open."""

    video_path: Annotated[str, Field(min_length=1)]
    """Path of a file, or a URL such as `rtsp://camera.local/stream` or `http://…`."""
    input_kw_args: dict[str, JsonValue] = {}
    """FFmpeg options for opening the source, such as `{"rtsp_transport": "udp"}`; `format` (or `f`)
    sets the input format."""
    filters: list[FilterAttributes] = []
    """FFmpeg filters to apply to each image, such as `[{"name": "scale", "args": ["640",
    "-1"]}]`."""
    loop: bool = True
    """Whether to restart a file at its end."""
    stall: Annotated[Duration, Field(ge=0.1, le=600)] = 3.0
    """Time without data after which the source is reopened."""


class RotateAttributes(Attributes):
    type: Literal["rotate"]
    """Rotates the image."""
    attributes: RotateBy = Field(default_factory=lambda: RotateBy.model_construct())
    """Settings of the rotation: `angle_degs`."""


class RotateBy(Attributes):
    angle_degs: float = 180.0
    """Clockwise angle in degrees. For angles other than multiples of 90, the image grows and gets
    black corners."""


class ResizeAttributes(Attributes):
    type: Literal["resize"]
    """Resizes the image."""
    attributes: ResizeTo
    """Settings of the new size: `width_px`, `height_px`."""


class ResizeTo(Attributes):
    width_px: PixelCount
    """Width of the result."""
    height_px: PixelCount
    """Height of the result."""


class CropAttributes(Attributes):
    type: Literal["crop"]
    """Crops the image."""
    attributes: CropTo
    """Settings of the crop: `x_min_px`, `y_min_px`, `x_max_px`, `y_max_px`, `overlay_crop_box`."""


class CropTo(Attributes):
    x_min_px: Annotated[float, Field(ge=0)] = 0.0
    """Left edge: in pixels, or as a fraction of the width if all four edges are at most 1."""
    y_min_px: Annotated[float, Field(ge=0)] = 0.0
    """Top edge."""
    x_max_px: Annotated[float, Field(gt=0)]
    """Right edge."""
    y_max_px: Annotated[float, Field(gt=0)]
    """Bottom edge."""
    overlay_crop_box: bool = False
    """Whether to draw the edges on the full image instead of cropping it."""

    @model_validator(mode="after")
    def _check_crop_area(self) -> Self:
        for low, high in (("x_min_px", "x_max_px"), ("y_min_px", "y_max_px")):
            if getattr(self, low) >= getattr(self, high):
                raise fault(codes.BAD_VALUE, f'"{low}" must be less than "{high}"')
        return self


class DetectionsAttributes(Attributes):
    type: Literal["detections"]
    """Draws the boxes that a vision service detects."""
    attributes: DetectionsBy
    """Settings of the boxes: `detector_name`, `confidence_threshold`, `valid_labels`."""


class DetectionsBy(Attributes):
    detector_name: Annotated[str, Dependency("rdk:service:vision")]
    """Vision service to use."""
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Minimum confidence of drawn detections."""
    valid_labels: list[str] = []
    """Labels to draw. Defaults to all."""


class ClassificationsAttributes(Attributes):
    type: Literal["classifications"]
    """Draws the labels with which a vision service classifies the image."""
    attributes: ClassificationsBy
    """Settings of the labels: `classifier_name`, `confidence_threshold`, `max_classifications`,
    `valid_labels`."""


class ClassificationsBy(Attributes):
    classifier_name: Annotated[str, Dependency("rdk:service:vision")]
    """Vision service to use."""
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Minimum confidence of drawn labels."""
    max_classifications: Annotated[int, Field(ge=0, le=100), UnsetIfZero()] = 1
    """Maximum number of labels, highest confidence first."""
    valid_labels: list[str] = []
    """Labels to draw. Defaults to all."""


PipelineStep = Annotated[
    RotateAttributes
    | ResizeAttributes
    | CropAttributes
    | DetectionsAttributes
    | ClassificationsAttributes,
    Field(discriminator="type"),
]


class TransformAttributes(Optics):
    """Rotates, resizes, crops or annotates the images of another camera."""

    source: Annotated[str, Dependency("rdk:component:camera")]
    """Camera whose images to transform."""
    pipeline: Annotated[list[PipelineStep], Field(min_length=1)]
    """Steps to apply to each image, in this order: `{"type": "rotate", "attributes": {"angle_degs":
    90}}`, `resize`, `crop`, `detections` or `classifications`."""
