"""What the cameras read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, FileField, Needs, fault

Pixels = Annotated[int, Field(gt=0, le=10_000)]
Rate = Annotated[float, Field(gt=0, le=240)]


class IntrinsicParameters(Attributes):
    """How the lens maps the world to pixels."""

    width_px: Pixels
    """The width of the pictures they were measured on."""
    height_px: Pixels
    """The height of the pictures they were measured on."""
    fx: Annotated[float, Field(gt=0)]
    """The focal length in pixels, across."""
    fy: Annotated[float, Field(gt=0)]
    """The focal length in pixels, down."""
    ppx: float
    """Where the lens looks, in pixels from the left."""
    ppy: float
    """Where the lens looks, in pixels from the top."""


class DistortionParameters(Attributes):
    """How the lens bends straight lines, after Brown and Conrady."""

    rk1: float = 0.0
    """Radial, first order."""
    rk2: float = 0.0
    """Radial, second order."""
    rk3: float = 0.0
    """Radial, third order."""
    tp1: float = 0.0
    """Tangential, first."""
    tp2: float = 0.0
    """Tangential, second."""


class Optics(Attributes):
    intrinsic_parameters: IntrinsicParameters | None = None
    """The lens: `width_px`, `height_px`, `fx`, `fy`, `ppx`, `ppy`. Point clouds need it."""
    distortion_parameters: DistortionParameters | None = None
    """The bend of the lens: `rk1`, `rk2`, `rk3`, `tp1`, `tp2`."""


def _even(attributes: FakeCameraAttributes) -> str | None:
    odd = [key for key in ("width", "height") if getattr(attributes, key) % 2]
    return f'"{odd[0]}" must be even: video has no odd sizes' if odd else None


class FakeCameraAttributes(Attributes):
    width: Annotated[int, Field(ge=64, le=10_000)] = 1280
    """How wide the pictures are; an even number."""
    height: Annotated[int, Field(ge=48, le=10_000)] = 720
    """How high the pictures are; an even number."""
    scene: Literal["gradient", "conveyor"] = "gradient"
    """What it sees: colours, or gears, bolts and nuts that move past on a belt. The belt also
    has depth, in a picture of its own (`depth`, beside `color`) and as point clouds."""
    animated: bool = False
    """Whether the colours move. The belt always does."""
    frame_rate: Rate = 15.0
    """New pictures a second, for those that move."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Which parts come along the belt: the same seed shows the same."""
    ground_truth: bool = False
    """Whether each picture of the belt carries the boxes of its parts, as annotations."""

    @model_validator(mode="after")
    def _fits_video(self) -> Self:
        if wrong := _even(self):
            raise fault(codes.BAD_VALUE, wrong)
        return self


class ImageFileAttributes(Optics):
    color_image_file_path: FileField | None = None
    """A JPEG or PNG: the picture `color`."""
    depth_image_file_path: FileField | None = None
    """Distances in millimetres, as a PNG of 16 bits a pixel or as raw depth: the picture
    `depth`."""
    pointcloud_file_path: FileField | None = None
    """A PCD file: the point cloud. Without it, the depth is turned into one."""

    @model_validator(mode="after")
    def _shows_something(self) -> Self:
        if not (
            self.color_image_file_path or self.depth_image_file_path or self.pointcloud_file_path
        ):
            raise fault(
                codes.MISSING_FIELD,
                '"color_image_file_path", "depth_image_file_path" or "pointcloud_file_path" is '
                "missing: there would be nothing to see",
            )
        return self


class WebcamAttributes(Optics):
    video_path: str = ""
    """Which camera: `/dev/video0`, or better its link in `/dev/v4l/by-id`, which stays the same
    when it is plugged in elsewhere. The first one when left out."""
    format: str | None = None
    """How the device sends pictures, such as `MJPG` or `YUYV`. The best of its own when left
    out."""
    width_px: Pixels | None = None
    """How wide the pictures shall be. About 1280 when left out."""
    height_px: Pixels | None = None
    """How high the pictures shall be. About 720 when left out."""
    frame_rate: Rate | None = None
    """Pictures a second. About 30 when left out."""


class FilterAttributes(Attributes):
    """One filter of FFmpeg."""

    name: Annotated[str, Field(min_length=1, pattern=r"^\w+$")]
    """Such as `scale` or `hflip`."""
    args: list[str] = []
    """What it is given, in order."""
    kw_args: dict[str, JsonValue] = {}
    """What it is given by name."""


class FfmpegAttributes(Optics):
    video_path: Annotated[str, Field(min_length=1)]
    """A file, or a URL such as `rtsp://camera.local/stream` or `http://…`."""
    input_kw_args: dict[str, JsonValue] = {}
    """Options of FFmpeg for opening it, such as `{"rtsp_transport": "udp"}`; `format` (or `f`)
    names the input format."""
    filters: list[FilterAttributes] = []
    """What is done to each picture, such as `[{"name": "scale", "args": ["640", "-1"]}]`."""
    loop: bool = True
    """Whether a file begins again when it ends."""
    stall: Annotated[Duration, Field(ge=0.1, le=600)] = 3.0
    """How long the source may send nothing before it is opened anew."""


class RotateAttributes(Attributes):
    type: Literal["rotate"]
    """Turns the picture."""
    attributes: RotateBy = Field(default_factory=lambda: RotateBy.model_construct())
    """`angle_degs`."""


class RotateBy(Attributes):
    angle_degs: float = 180.0
    """Clockwise; the corners that come up are black. 90, 180 and 270 turn the whole picture."""


class ResizeAttributes(Attributes):
    type: Literal["resize"]
    """Makes the picture larger or smaller."""
    attributes: ResizeTo
    """`width_px` and `height_px`."""


class ResizeTo(Attributes):
    width_px: Pixels
    """How wide it shall be."""
    height_px: Pixels
    """How high it shall be."""


class CropAttributes(Attributes):
    type: Literal["crop"]
    """Cuts a part out."""
    attributes: CropTo
    """`x_min_px`, `y_min_px`, `x_max_px`, `y_max_px`, `overlay_crop_box`."""


class CropTo(Attributes):
    x_min_px: Annotated[float, Field(ge=0)] = 0.0
    """The left edge: in pixels, or as a part of the width when all four are at most 1."""
    y_min_px: Annotated[float, Field(ge=0)] = 0.0
    """The upper edge."""
    x_max_px: Annotated[float, Field(gt=0)]
    """The right edge."""
    y_max_px: Annotated[float, Field(gt=0)]
    """The lower edge."""
    overlay_crop_box: bool = False
    """Whether to draw the edges on the whole picture instead of cutting."""

    @model_validator(mode="after")
    def _has_an_inside(self) -> Self:
        for low, high in (("x_min_px", "x_max_px"), ("y_min_px", "y_max_px")):
            if getattr(self, low) >= getattr(self, high):
                raise fault(codes.BAD_VALUE, f'"{low}" must be less than "{high}"')
        return self


class DetectionsAttributes(Attributes):
    type: Literal["detections"]
    """Draws the boxes of what a vision service detects."""
    attributes: DetectionsBy
    """`detector_name`, `confidence_threshold`, `valid_labels`."""


class DetectionsBy(Attributes):
    detector_name: Annotated[str, Needs("rdk:service:vision")]
    """The vision service that detects."""
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    """What is less sure is not drawn."""
    valid_labels: list[str] = []
    """Only these are drawn; all when left out."""


class ClassificationsAttributes(Attributes):
    type: Literal["classifications"]
    """Writes the labels that a vision service gives the picture."""
    attributes: ClassificationsBy
    """`classifier_name`, `confidence_threshold`, `max_classifications`, `valid_labels`."""


class ClassificationsBy(Attributes):
    classifier_name: Annotated[str, Needs("rdk:service:vision")]
    """The vision service that classifies."""
    confidence_threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    """What is less sure is not written."""
    max_classifications: Annotated[int, Field(ge=1, le=100)] = 1
    """How many labels are taken, the surest first."""
    valid_labels: list[str] = []
    """Only these are written; all when left out."""


Step = Annotated[
    RotateAttributes
    | ResizeAttributes
    | CropAttributes
    | DetectionsAttributes
    | ClassificationsAttributes,
    Field(discriminator="type"),
]


class TransformAttributes(Optics):
    source: Annotated[str, Needs("rdk:component:camera")]
    """The camera whose pictures are changed."""
    pipeline: Annotated[list[Step], Field(min_length=1)]
    """What is done to each picture, in this order: `{"type": "rotate", "attributes":
    {"angle_degs": 90}}`, `resize`, `crop`, `detections` or `classifications`."""
