"""The vision service `mlmodel`, called by the SDK's client: every attribute and rule."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grpclib.const import Status
from numpy.typing import NDArray
from pydantic import ValidationError
from tests.support.machine.served import refused, served
from tests.support.media.foreign_camera import ForeignCamera
from tests.support.media.pictures import encode_pixels
from tests.support.models.onnx_models import FLOAT, model
from tests.support.models.vision_models import (
    BOX,
    CAMERA,
    MODEL,
    VISION,
    SdkModel,
    Workshop,
    bytes_echo,
    constant,
    detector,
    echo,
    solid,
    workshop,
)

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.core.clock import ManualClock
from cogwork.drivers.builtin_models import builtin_models
from cogwork.drivers.camera import conveyor
from cogwork.drivers.camera.attributes import FakeCameraAttributes, Optics
from cogwork.drivers.camera.conveyor import Conveyor
from cogwork.drivers.camera.fake import FakeCamera
from cogwork.drivers.mlmodel.engine import RunFailed
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.mlmodel import MlmodelVision, NoCapability
from cogwork.graph.name import ResourceName
from cogwork.media.image_header import JPEG
from cogwork.resource.registry import Registry
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402
from viam.proto.common import PointCloudObject  # noqa: E402
from viam.proto.service.vision import Classification, Detection, Detection3D  # noqa: E402
from viam.services.vision import CaptureAllResult, Vision, VisionClient  # noqa: E402

DEMO = Path(conveyor.__file__).parents[1] / "mlmodel" / "demo" / "conveyor.onnx"
LABELS = ("red", "green", "blue")
STRONG = {"red": 1.0, "green": 0.6, "blue": 0.2}
"""Of (255, 204, 153) with the usual mean and deviation."""


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    async with workshop(tmp_path) as made:
        yield made


def png_image(pixels: NDArray[Any]) -> ViamImage:
    return ViamImage(encode_pixels(".png", pixels), CameraMimeType.PNG)


PICTURE = png_image(solid(255, 204, 153))


@asynccontextmanager
async def client_of(vision: Vision, *cameras: Any) -> AsyncIterator[VisionClient]:
    async with served(vision, *cameras) as channel:
        yield VisionClient(vision.name, channel)


def scores(found: list[Classification]) -> dict[str, float]:
    return {each.class_name: each.confidence for each in found}


async def classify(vision: MlmodelVision, image: ViamImage = PICTURE) -> dict[str, float]:
    async with client_of(vision) as client:
        return scores(await client.get_classifications(image, 0))


async def detect(vision: MlmodelVision, image: ViamImage = PICTURE) -> list[tuple[str, float]]:
    async with client_of(vision) as client:
        found = await client.get_detections(image)
    return [(each.class_name, round(each.confidence, 3)) for each in found]


def close_to(**wanted: float) -> Any:
    return pytest.approx(wanted, abs=1e-3)


class TestConfiguration:
    """Attributes in the configuration file, and the dependencies that follow from them."""

    @staticmethod
    def load_config(tmp_path: Path, **attributes: Any) -> Any:
        services = [
            {"name": "v", "api": str(VISION), "model": "mlmodel", "attributes": attributes},
            {
                "name": "net",
                "api": str(MODEL),
                "model": "onnx_cpu",
                "attributes": {"model_path": str(DEMO)},
            },
        ]
        components = [{"name": "belt", "api": str(CAMERA), "model": "fake"}]
        text = json.dumps({"services": services, "components": components})
        return load(text, LoadContext(Registry(builtin_models()), tmp_path, {})).result

    def test_model_is_required(self, tmp_path: Path) -> None:
        words = [each.message for each in self.load_config(tmp_path).diagnostics]
        assert any("mlmodel_name" in each for each in words), words
        assert not any(self.load_config(tmp_path, mlmodel_name="net").diagnostics)
        for missing in ("", None):
            assert self.load_config(tmp_path, mlmodel_name=missing).diagnostics

    def test_model_is_required_and_camera_is_optional(self, tmp_path: Path) -> None:
        checked = self.load_config(tmp_path, mlmodel_name="net", camera_name="belt")
        spec = next(each for each in checked.specs if each.name.name == "v")
        assert [str(each) for each in spec.needs] == [f"{MODEL}/net"]
        assert [str(each) for each in spec.wants] == [f"{CAMERA}/belt"]
        alone = self.load_config(tmp_path, mlmodel_name="net")
        spec = next(each for each in alone.specs if each.name.name == "v")
        assert {str(each) for each in spec.needs} == {f"{MODEL}/net"}

    @pytest.mark.parametrize("name", ["mlmodel_name", "camera_name"])
    def test_unknown_names_are_reported(self, tmp_path: Path, name: str) -> None:
        given = {"mlmodel_name": "net", "camera_name": "belt", name: "nowhere"}
        words = [each.message for each in self.load_config(tmp_path, **given).diagnostics]
        assert any("nowhere" in each for each in words), words

    @pytest.mark.parametrize(
        "wrong",
        [
            {"input_image_mean_value": [0.5, 0.5]},
            {"input_image_std_dev": [1, 1, 1, 1]},
            {"default_minimum_confidence": 50},
            {"label_confidences": {"cat": 2}},
            {"remap_output_names": ["location"]},
            {"input_image_bgr": "blue"},
            {"label_path": "there-is-none.txt"},
        ],
        ids=str,
    )
    def test_invalid_values_are_reported(self, tmp_path: Path, wrong: dict[str, Any]) -> None:
        (name,) = wrong
        words = [
            str(each)
            for each in self.load_config(tmp_path, mlmodel_name="net", **wrong).diagnostics
        ]
        assert any(name in each for each in words), words

    def test_defaults_match_the_specification(self) -> None:
        given = MlmodelVisionAttributes(mlmodel_name="net")
        assert given.camera_name is None
        assert (given.remap_input_names, given.remap_output_names) == ({}, {})
        assert given.input_image_bgr is None  # RGB, and a mean and deviation of 0.5: see TestInput
        assert given.input_image_mean_value is given.input_image_std_dev is None
        assert given.default_minimum_confidence is None
        assert given.label_confidences == {}
        assert given.label_path is None
        with pytest.raises(ValidationError):
            MlmodelVisionAttributes.model_validate({})


class TestInput:
    async def test_default_normalization(self, shop: Workshop) -> None:
        assert await classify(await shop.vision(echo(*LABELS))) == close_to(**STRONG)

    async def test_input_image_bgr_swaps_the_channels(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS), input_image_bgr=True)
        assert await classify(vision) == close_to(red=0.2, green=0.6, blue=1.0)

    async def test_input_image_bgr_swaps_the_channels_of_byte_inputs(self, shop: Workshop) -> None:
        straight = await shop.vision(bytes_echo(*LABELS))
        assert await classify(straight) == close_to(red=1.0, green=0.8, blue=0.6)
        turned = await shop.vision(bytes_echo(*LABELS), input_image_bgr=True)
        assert await classify(turned) == close_to(red=0.6, green=0.8, blue=1.0)

    async def test_mean_value_applies_per_channel(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS), input_image_mean_value=[0.9, 0.7, 0.55])
        assert await classify(vision) == close_to(red=0.2, green=0.2, blue=0.1)

    async def test_std_dev_applies_per_channel(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS), input_image_std_dev=[1, 0.6, 0.4])
        assert await classify(vision) == close_to(red=0.5, green=0.5, blue=0.25)

    async def test_mean_and_std_dev_follow_the_channel_order_of_the_model(
        self, shop: Workshop
    ) -> None:
        vision = await shop.vision(
            echo(*LABELS),
            input_image_bgr=True,
            input_image_mean_value=[0.5, 0.6, 0.7],
            input_image_std_dev=[1, 1, 0.5],
        )
        assert await classify(vision) == close_to(red=0.1, green=0.2, blue=0.6)

    async def test_byte_inputs_are_not_normalized(self, shop: Workshop) -> None:
        vision = await shop.vision(
            bytes_echo(*LABELS), input_image_mean_value=[0.9] * 3, input_image_std_dev=[3] * 3
        )
        assert await classify(vision) == close_to(red=1.0, green=0.8, blue=0.6)

    async def test_std_dev_of_0_is_refused(self, shop: Workshop) -> None:
        with pytest.raises(NoCapability, match="input_image_std_dev contains 0"):
            await shop.vision(echo(*LABELS), input_image_std_dev=[1, 0, 1])

    async def test_remapped_input_gets_the_image(self, shop: Workshop) -> None:
        theirs = SdkModel(left=(1, 4, 4, 3), right=(1, 6, 6, 3))
        for remap, name, side in (
            ({}, "left", 4),
            ({"right": "image"}, "right", 6),
            ({"left": "image"}, "left", 4),
        ):
            vision = await shop.vision(theirs, remap_input_names=remap)
            await classify(vision)
            (given,) = theirs.given[-1].items()
            assert (given[0], given[1].shape) == (name, (1, side, side, 3))

    async def test_misspelled_input_remapping_is_refused(self, shop: Workshop) -> None:
        with pytest.raises(NoCapability) as error:
            await shop.vision(echo(*LABELS), remap_input_names={"imge": "image"})
        assert 'remap_input_names maps "imge" to "image"' in str(error.value)
        assert "image" in str(error.value).split("no such input")[1]


class TestOutputs:
    AMBIGUOUS = constant(
        {
            "boxes": np.array([[[0.1, 0.1, 0.5, 0.5], [0.2, 0.2, 0.6, 0.6]]], np.float32),
            "x": np.array([[1, 0]], np.float32),
            "y": np.array([[0, 1]], np.float32),
        },
        "cat",
        "dog",
    )

    async def test_detector_outputs_follow_the_remapping(self, shop: Workshop) -> None:
        names = {"boxes": "location", "x": "category", "y": "score"}
        one = await shop.vision(self.AMBIGUOUS, remap_output_names=names)
        assert await detect(one) == [("cat", 1.0), ("dog", 0.0)]
        other = await shop.vision(
            self.AMBIGUOUS, remap_output_names={**names, "x": "score", "y": "category"}
        )
        assert await detect(other) == [("cat", 1.0), ("dog", 0.0)]
        boxes = []
        for vision in (one, other):
            async with client_of(vision) as client:
                boxes.append((await client.get_detections(PICTURE))[0].y_min_normalized)
        assert boxes[0] > boxes[1]  # the second box is the sure one, or the first

    async def test_model_with_the_outputs_of_both_is_a_detector_and_a_classifier(
        self, shop: Workshop
    ) -> None:
        outputs = {
            "location": np.array([[BOX]], np.float32),
            "category": np.array([[1]], np.float32),
            "score": np.array([[0.75]], np.float32),
            "probability": np.array([[0.2, 0.5, 0.3]], np.float32),
        }
        vision = await shop.vision(constant(outputs, *LABELS))
        assert (vision.is_detector, vision.is_classifier) == (True, True)
        assert await detect(vision) == [("green", 0.75)]
        assert await classify(vision) == close_to(green=0.5, blue=0.3, red=0.2)

    async def test_detections_beyond_the_maximum_are_dropped_and_logged(
        self, shop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        rows = [(0, 0.9), (1, 0.8), (2, 0.0)]
        vision = await shop.vision(detector(rows, *LABELS), max_detections=2)
        for _ in range(2):
            assert await detect(vision) == [("red", 0.9), ("green", 0.8)]
        lines = [each.getMessage() for each in caplog.records if "dropped" in each.getMessage()]
        assert lines == ["1 detections of an image were dropped: `max_detections` is 2"]

    async def test_log_says_how_images_are_prepared(
        self, shop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO"):
            await shop.vision(echo(*LABELS), input_image_mean_value=[0.1, 0.2, 0.3])
        assert "8x8, stretched, NCHW, RGB, mean [0.1, 0.2, 0.3], std [0.5, 0.5, 0.5]" in caplog.text

    async def test_classifier_output_follows_the_remapping(self, shop: Workshop) -> None:
        two = constant(
            {
                "p": np.array([[0.7, 0.2, 0.1]], np.float32),
                "q": np.array([[0.1, 0.1, 0.8]], np.float32),
            },
            *LABELS,
        )
        with pytest.raises(NoCapability, match='a classifier needs an output named "probability"'):
            await shop.vision(two)
        for name, surest in (("p", "red"), ("q", "blue")):
            vision = await shop.vision(two, remap_output_names={name: "probability"})
            assert next(iter(await classify(vision))) == surest

    @pytest.mark.parametrize(
        "names", [{"boxs": "location"}, {"boxes": "locaton", "x": "category", "y": "score"}]
    )
    async def test_misspelled_output_remapping_is_refused(
        self, shop: Workshop, names: dict[str, str]
    ) -> None:
        made = detector([(0, 0.9)], "cat", names=("boxes", "x", "y"))
        with pytest.raises(NoCapability) as error:
            await shop.vision(made, remap_output_names=names)
        assert re.search(r"boxs|locaton", str(error.value))
        assert "boxes" in str(error.value) or "location" in str(error.value)

    async def test_required_output_names_need_no_remapping(self, shop: Workshop) -> None:
        vision = await shop.vision(detector([(1, 0.9), (0, 0.4)], "cat", "dog"))
        async with client_of(vision) as client:
            first, second = await client.get_detections(png_image(solid(1, 2, 3, 101, 201)))
        assert (first.class_name, second.class_name) == ("dog", "cat")
        assert (first.x_min, first.y_min, first.x_max, first.y_max) == (10, 50, 50, 150)
        assert first.x_max_normalized == pytest.approx(50 / 101)
        assert first.y_max_normalized == pytest.approx(150 / 201)


class TestLabels:
    async def test_label_file_overrides_the_labels_of_the_model(
        self, shop: Workshop, tmp_path: Path
    ) -> None:
        file = tmp_path / "labels.txt"
        file.write_text("rot\ngrün\nblau\n")
        own = await shop.vision(echo(*LABELS))
        given = await shop.vision(echo(*LABELS), label_path=str(file))
        assert list(await classify(own)) == ["red", "green", "blue"]
        assert list(await classify(given)) == ["rot", "grün", "blau"]

    async def test_classes_without_labels_are_numbers(self, shop: Workshop) -> None:
        assert list(await classify(await shop.vision(echo()))) == ["0", "1", "2"]
        vision = await shop.vision(detector([(7, 0.5), (0, 0.4)], "cat"))
        assert await detect(vision) == [("7", 0.5), ("cat", 0.4)]


class TestConfidence:
    ROWS = [(0, 0.9), (1, 0.6), (2, 0.4), (0, 0.3), (1, 0.05)]

    async def detect_rows(self, shop: Workshop, **attributes: Any) -> list[tuple[str, float]]:
        vision = await shop.vision(detector(self.ROWS, "cat", "Dog", "cow"), **attributes)
        return await detect(vision)

    async def test_all_detections_are_returned_by_default(self, shop: Workshop) -> None:
        assert len(await self.detect_rows(shop)) == 5

    async def test_default_minimum_confidence_is_applied(self, shop: Workshop) -> None:
        found = await self.detect_rows(shop, default_minimum_confidence=0.4)
        assert found == [("cat", 0.9), ("Dog", 0.6), ("cow", 0.4)]

    async def test_label_confidences_replace_the_default_minimum(self, shop: Workshop) -> None:
        """Labels that are not listed are left out."""
        by_label = {"CAT": 0.2, "dog": 0.5}
        wanted = [("cat", 0.9), ("Dog", 0.6), ("cat", 0.3)]
        assert await self.detect_rows(shop, label_confidences=by_label) == wanted
        both = await self.detect_rows(
            shop, label_confidences=by_label, default_minimum_confidence=0.95
        )
        assert both == wanted

    async def test_minimum_confidence_applies_to_classifications(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS), default_minimum_confidence=0.5)
        assert await classify(vision) == close_to(red=1.0, green=0.6)
        vision = await shop.vision(echo(*LABELS), label_confidences={"Blue": 0.1, "green": 0.7})
        assert await classify(vision) == close_to(blue=0.2)


class TestClassificationCount:
    async def test_n_most_probable_classes_are_returned(self, shop: Workshop) -> None:
        camera = shop.still(color=solid(153, 255, 204))
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision, camera) as client:
            for n, wanted in (
                (1, ["green"]),
                (2, ["green", "blue"]),
                (3, ["green", "blue", "red"]),
                (9, ["green", "blue", "red"]),
                (0, ["green", "blue", "red"]),
            ):
                image = png_image(solid(153, 255, 204))
                found = await client.get_classifications(image, n)
                assert [each.class_name for each in found] == wanted
                found = await client.get_classifications_from_camera("eye", n)
                assert [each.class_name for each in found] == wanted


class TestIneffectiveSettings:
    async def test_unknown_label_is_logged_and_reported_without_a_fault(
        self, shop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        vision = await shop.vision(echo(*LABELS), label_confidences={"red": 0.1, "gren": 0.1})
        words = (
            'label_confidences names "gren", which the labels of the model do not contain: '
            'did you mean "green"?'
        )
        assert vision.fault is None
        assert vision.ignored_settings == (words,)
        assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
            words
        ]
        found = await vision.get_classifications(PICTURE)
        assert [each.class_name for each in found] == ["red"]

    async def test_reversed_remap_is_reported_even_if_it_is_not_needed(
        self, shop: Workshop
    ) -> None:
        vision = await shop.vision(
            echo(*LABELS, output="out"), remap_output_names={"probability": "out"}
        )
        assert vision.fault is not None
        assert 'write "out": "probability"' in vision.fault

    async def test_reversed_remap_is_named_if_the_model_cannot_be_used(
        self, shop: Workshop
    ) -> None:
        made = detector([(0, 0.9)], "cat", names=("a", "b", "c"))
        reversed_names = {"location": "a", "category": "b", "score": "c"}
        with pytest.raises(NoCapability, match='write "a": "location"'):
            await shop.vision(made, remap_output_names=reversed_names, family="named")

    async def test_fourth_value_of_a_channel_is_ignored(self, shop: Workshop) -> None:
        three, four = [0.4, 0.5, 0.6], [0.4, 0.5, 0.6, 0.7]
        plans = [
            (
                await shop.vision(
                    echo(*LABELS), input_image_mean_value=each, input_image_std_dev=each
                )
            ).capabilities.plan
            for each in (three, four)
        ]
        assert plans[0] == plans[1]

    async def test_effective_settings_are_no_fault(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS), label_confidences={"red": 0.1})
        assert vision.fault is None


class TestCameras:
    async def test_default_camera_and_named_camera_are_used(self, shop: Workshop) -> None:
        eye, other = shop.still(), shop.still("other", color=solid(128, 255, 128))
        vision = await shop.vision(echo(*LABELS), eye, camera_name="eye")
        async with client_of(vision, eye, other) as client:
            assert scores(await client.get_classifications_from_camera("", 1)) == close_to(red=1)
            found = scores(await client.get_classifications_from_camera("other", 1))
            assert found == close_to(green=1)
            assert (await client.get_properties()).default_camera == "eye"

    async def test_call_without_a_camera_is_refused(self, shop: Workshop) -> None:
        vision = await shop.vision(detector([(0, 0.9)], "cat"))
        async with client_of(vision) as client:
            for call in (
                client.get_detections_from_camera(""),
                client.get_classifications_from_camera("", 1),
                client.get_object_point_clouds(""),
                client.get_detections_3d(""),
                client.capture_all_from_camera("", return_image=True),
            ):
                with refused() as told:
                    await call
                assert told.status is Status.INVALID_ARGUMENT
                assert "no camera name provided and no default camera found" in told.words
                assert '"camera_name"' in told.words
            assert not (await client.get_properties()).HasField("default_camera")

    @pytest.mark.parametrize("kind", ["detections", "classifications"])
    @pytest.mark.parametrize("steps_behind", [0, 1, 2])
    async def test_annotated_images_are_refused(
        self, shop: Workshop, kind: str, steps_behind: int
    ) -> None:
        camera: Any = shop.still()
        drawer = await shop.vision(
            detector([(0, 0.9)], "cat") if kind == "detections" else echo(*LABELS), name="drawer"
        )
        name = "detector_name" if kind == "detections" else "classifier_name"
        drawing = {"type": kind, "attributes": {name: "drawer"}}
        camera = await shop.transform("drawn", camera, drawing, services=[drawer])
        for number in range(steps_behind):
            turn = {"type": "rotate", "attributes": {"angle_degs": 90}}
            camera = await shop.transform(f"turned-{number}", camera, turn)
        vision = await shop.vision(detector([(0, 0.9)], "cat"))
        async with client_of(vision, camera) as client:
            for call in (
                client.get_detections_from_camera(camera.name),
                client.capture_all_from_camera(camera.name, return_detections=True),
                client.get_object_point_clouds(camera.name),
            ):
                with refused() as told:
                    await call
                assert told.status is Status.FAILED_PRECONDITION
                assert f'camera "{camera.name}"' in told.words
                assert '"drawer"' in told.words
                assert "use its source camera" in told.words

    async def test_other_transforms_are_accepted(self, shop: Workshop) -> None:
        turn = {"type": "rotate", "attributes": {"angle_degs": 90}}
        camera = await shop.transform("turned", shop.still(), turn)
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision, camera) as client:
            found = await client.get_classifications_from_camera("turned", 0)
        assert scores(found) == close_to(**STRONG)

    async def test_camera_with_only_depth_is_refused(self, shop: Workshop) -> None:
        camera = shop.still(depth=np.ones((4, 4), np.uint16))
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision, camera) as client:
            with refused() as told:
                await client.get_classifications_from_camera("eye", 1)
        assert told.status is Status.FAILED_PRECONDITION
        assert told.words == 'camera "eye" does not provide color images'

    async def test_depth_image_is_refused(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS))
        depth = encode_pixels(".png", np.ones((4, 4), np.uint16))
        async with client_of(vision) as client:
            with refused() as told:
                await client.get_classifications(ViamImage(depth, CameraMimeType.PNG), 1)
        assert told.status is Status.INVALID_ARGUMENT
        assert "color images" in told.words

    async def test_depth_is_not_requested_for_detections(self, shop: Workshop) -> None:
        camera = shop.still(color=solid(1, 2, 3), depth=np.ones((4, 4), np.uint16))
        vision = await shop.vision(detector([(0, 0.9)], "cat"))
        async with client_of(vision, camera) as client:
            await client.get_detections_from_camera("eye")
        assert camera.asked == [("color",)]


async def count_runs(vision: MlmodelVision) -> int:
    return int((await vision.get_status())["pictures"])


class TestOncePerPicture:
    async def test_concurrent_calls_share_one_run(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS), eye, camera_name="eye")
        async with client_of(vision, eye) as client:
            for number in (1, 2):
                found = await asyncio.gather(
                    *(client.get_classifications_from_camera("eye", 3) for _ in range(10)),
                    *(client.get_classifications_from_camera("", 1) for _ in range(5)),
                    client.capture_all_from_camera("", return_classifications=True),
                )
                assert len(found) == 16
                assert await count_runs(vision) == number
                eye.show(solid(255, 204, 153))

    async def test_annotating_transform_shares_the_run(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(detector([(0, 0.9)], "cat"))
        drawing = {"type": "detections", "attributes": {"detector_name": "v"}}
        drawn = await shop.transform("drawn", eye, drawing, services=[vision])
        async with client_of(vision, eye) as client:
            await asyncio.gather(drawn.frames(), client.get_detections_from_camera("eye"))
            await client.get_detections_from_camera("eye")
        assert await count_runs(vision) == 1

    async def test_each_camera_has_its_own_run(self, shop: Workshop) -> None:
        """This includes foreign cameras whose sources have the same name."""
        vision = await shop.vision(SdkModel(), input_image_mean_value=[0] * 3)
        # The images are so large that one is still being decoded when the other is requested.
        large = (4000, 3000)
        red = ForeignCamera("one", 5.0, color=encode_pixels(".png", solid(128, 0, 0, *large)))
        blue = ForeignCamera("two", 5.0, color=encode_pixels(".png", solid(0, 0, 128, *large)))
        async with client_of(vision, red, blue) as client:
            one, two = await asyncio.gather(
                client.get_classifications_from_camera("one", 1),
                client.get_classifications_from_camera("two", 1),
            )
        assert (one[0].class_name, two[0].class_name) == ("red", "blue")

    async def test_failed_run_is_repeated(self, shop: Workshop) -> None:
        eye, theirs = shop.still(), SdkModel()
        vision = await shop.vision(theirs)
        theirs.fault = RunFailed("the fan is off")
        async with client_of(vision, eye) as client:
            with refused() as told:
                await client.get_classifications_from_camera("eye", 1)
            assert told.words == "the fan is off"
            theirs.fault = None
            assert await client.get_classifications_from_camera("eye", 1)

    async def test_slow_model_skips_frames(self, shop: Workshop) -> None:
        eye, theirs = shop.still(color=solid(255, 0, 0)), SdkModel()
        vision = await shop.vision(theirs, input_image_mean_value=[0] * 3)
        theirs.held, before = asyncio.Event(), len(theirs.given)
        async with client_of(vision, eye) as client:
            theirs.news.clear()
            calls = [asyncio.ensure_future(client.get_classifications_from_camera("eye", 1))]
            async with asyncio.timeout(60):
                await theirs.news.wait()
                for _ in range(20):
                    eye.show(solid(0, 0, 255))
                    call = client.get_classifications_from_camera("eye", 1)
                    calls.append(asyncio.ensure_future(call))
                await eye.wait_for_requests(21)
                theirs.held.set()
                found = await asyncio.gather(*calls)
        assert {each[0].class_name for each in found} == {"red"}
        assert len(theirs.given) == before + 1


WISHES = ("image", "classifications", "detections", "object_point_clouds", "detections_3d")


class TestCaptureAll:
    @pytest.mark.parametrize("role", ["detector", "classifier"])
    async def test_every_combination_of_results_is_returned(
        self, shop: Workshop, role: str
    ) -> None:
        eye = conveyor_camera(shop)
        made = DEMO if role == "detector" else echo(*LABELS)
        vision = await shop.vision(made, eye, camera_name="belt", default_minimum_confidence=0.3)
        has = {
            "image": True,
            "classifications": role == "classifier",
            "detections": role == "detector",
            "object_point_clouds": role == "detector",
            "detections_3d": role == "detector",
        }
        async with client_of(vision, eye) as client:
            for wanted in itertools.product((False, True), repeat=len(WISHES)):
                wishes = dict(zip(WISHES, wanted, strict=True))
                asked: Any = {f"return_{wish}": each for wish, each in wishes.items()}
                got = await client.capture_all_from_camera("", **asked)
                parts = {
                    "image": got.image,
                    "classifications": got.classifications,
                    "detections": got.detections,
                    "object_point_clouds": got.objects,
                    "detections_3d": got.detections_3d,
                }
                for wish, part in parts.items():
                    if not wishes[wish]:
                        assert part is None
                    else:
                        assert bool(part) == has[wish], wish
                if got.image is not None:
                    assert (got.image.width, got.image.height) == (640, 480)
                    assert got.image.mime_type == JPEG

    async def test_image_alone_runs_no_inference(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision, eye) as client:
            await client.capture_all_from_camera("eye", return_image=True)
            await client.capture_all_from_camera("eye", return_detections=True)
        assert await count_runs(vision) == 0

    async def test_detections_are_returned_without_depth(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(detector([(0, 0.9)], "cat"))
        async with client_of(vision, eye) as client:
            got = await client.capture_all_from_camera(
                "eye", return_detections=True, return_object_point_clouds=True
            )
        assert got.objects == []
        assert [each.class_name for each in got.detections or ()] == ["cat"]

    async def test_capture_all_works_in_process(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS), eye, camera_name="eye")
        got = await vision.capture_all_from_camera("", True, True)
        assert got.image is not None
        assert scores(got.classifications or []) == close_to(**STRONG)
        assert (got.detections, got.objects, got.detections_3d) == (None, None, None)
        nothing = await vision.capture_all_from_camera("eye")
        assert (nothing.image, nothing.classifications) == (None, None)


EXPLAIN = {"explain": True}


def yolo(*rows: tuple[float, float, float], side: int = 32) -> Any:
    """Return a YOLO model whose first cells have a box at this position, with these scores."""
    cells = sum((side // stride) ** 2 for stride in (8, 16, 32))
    output = np.zeros((1, 6, cells), np.float32)
    for cell, (center, *scores) in enumerate(rows):
        output[0, :, cell] = (center, 8, 6, 6, *scores)
    return constant({"output0": output}, "cat", "dog", side=side)


class TestExplanation:
    async def test_filtered_detections_have_a_rule(self, shop: Workshop) -> None:
        eye = shop.still()
        rows = [(0, 0.9), (1, 0.5), (0, 0.25)]
        vision = await shop.vision(
            detector(rows, "cat", "dog"), label_confidences={"cat": 0.4}, max_detections=7
        )
        async with client_of(vision, eye) as client:
            got = await client.capture_all_from_camera("eye", return_detections=True, extra=EXPLAIN)
        told: Any = (got.extra or {})["explain"]
        (kept,) = got.detections or []
        box = {name: getattr(kept, name) for name in ("x_min", "y_min", "x_max", "y_max")}
        assert told["filtered"] == [
            {
                **box,
                "class_name": "dog",
                "confidence": 0.5,
                "rule": "dog is not listed in label_confidences",
            },
            {
                **box,
                "class_name": "cat",
                "confidence": 0.25,
                "rule": "0.25 is below the minimum confidence 0.40 of cat",
            },
        ]
        assert told["filtered_classifications"] == []
        assert not told["minimum_confidence"]  # the SDK reads null as 0
        assert told["minimum_confidence_by_label"] == {"cat": 0.4}
        assert told["captured_at"] == eye.clock.time()
        assert set(told["milliseconds"]) == {"frame", "preprocess", "inference", "decode"}
        assert min(told["milliseconds"].values()) >= 0
        assert told["milliseconds"]["inference"] > 0

    async def test_filtered_classifications_have_a_rule(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS), default_minimum_confidence=0.5)
        async with client_of(vision, eye) as client:
            got = await client.capture_all_from_camera(
                "eye", return_classifications=True, extra=EXPLAIN
            )
        told: Any = (got.extra or {})["explain"]
        (blue,) = told["filtered_classifications"]
        assert scores(got.classifications or []) == close_to(red=1.0, green=0.6)
        assert blue["confidence"] == pytest.approx(0.2, abs=1e-3)
        assert blue["rule"] == "0.20 is below the minimum confidence 0.50"
        assert (told["filtered"], told["minimum_confidence"]) == ([], 0.5)

    @pytest.mark.parametrize(
        "minimum", [{"default_minimum_confidence": 0.5}, {"label_confidences": {"cat": 0.5}}]
    )
    async def test_detections_that_the_decoder_skips_are_explained(
        self, shop: Workshop, minimum: dict[str, Any]
    ) -> None:
        """Only duplicates of other boxes are not listed."""
        eye = shop.still()
        made = yolo((8, 0.9, 0), (8.5, 0.3, 0), (20, 0.4, 0), (28, 0.0, 0.1), (24, 0.0005, 0))
        strict = await shop.vision(made, name="strict", **minimum)
        unlimited = await shop.vision(made, name="unlimited")
        everything: Any = {"return_detections": True, "camera": eye}
        got = await strict.capture_all_from_camera("eye", extra=EXPLAIN, **everything)
        expected = await unlimited.capture_all_from_camera("eye", **everything)
        assert [round(each.confidence, 3) for each in got.detections or ()] == [0.9]
        told: Any = (got.extra or {})["explain"]
        assert [
            (each["class_name"], round(each["confidence"], 3)) for each in told["filtered"]
        ] == [
            ("cat", 0.4),
            ("dog", 0.1),
        ]
        names = ("x_min", "y_min", "x_max", "y_max", "class_name", "confidence")
        kept = [{name: getattr(each, name) for name in names} for each in got.detections or ()]
        filtered = [{name: each[name] for name in names} for each in told["filtered"]]
        assert kept + filtered == [
            {name: getattr(each, name) for name in names} for each in expected.detections or ()
        ]

    @pytest.mark.parametrize("extra", [None, {}, {"explain": False}, {"explain": 1}, {"other": {}}])
    async def test_nothing_is_explained_unless_asked(self, shop: Workshop, extra: Any) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS), default_minimum_confidence=0.5)
        async with client_of(vision, eye) as client:
            got = await client.capture_all_from_camera(
                "eye", return_classifications=True, extra=extra
            )
            assert got.extra == {}
            assert await count_runs(vision) == 1

    async def test_image_alone_is_not_explained(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision, eye) as client:
            got = await client.capture_all_from_camera("eye", return_image=True, extra=EXPLAIN)
        assert (got.extra, await count_runs(vision)) == ({}, 0)

    @pytest.mark.parametrize("explained_first", [False, True])
    async def test_concurrent_calls_get_what_they_asked_for(
        self, shop: Workshop, explained_first: bool
    ) -> None:
        """The image changes in between, but each reply is about one image."""
        eye, theirs = shop.still(color=solid(255, 51, 26)), SdkModel()
        vision = await shop.vision(
            theirs,
            input_image_mean_value=[0] * 3,
            input_image_std_dev=[1] * 3,
            default_minimum_confidence=0.5,
        )
        theirs.held, before = asyncio.Event(), len(theirs.given)

        async def capture(explain: bool) -> CaptureAllResult:
            extra = EXPLAIN if explain else None
            return await client.capture_all_from_camera(
                "eye", return_classifications=True, extra=extra
            )

        order = [explained_first, not explained_first, explained_first, not explained_first]
        async with client_of(vision, eye) as client, asyncio.timeout(60):
            theirs.news.clear()
            calls = [asyncio.ensure_future(capture(order[0]))]
            await theirs.news.wait()
            eye.show(solid(26, 51, 255))
            calls += [asyncio.ensure_future(capture(explain)) for explain in order[1:]]
            await eye.wait_for_requests(len(order))
            theirs.held.set()
            replies = await asyncio.gather(*calls)
        for explain, got in zip(order, replies, strict=True):
            (best,) = got.classifications or []
            assert bool(got.extra) == explain
            if explain:
                told: Any = (got.extra or {})["explain"]
                filtered = {each["class_name"] for each in told["filtered_classifications"]}
                assert filtered == {*LABELS} - {best.class_name}
        assert len(theirs.given) == before + 2

    async def test_explained_image_is_not_analyzed_again(self, shop: Workshop) -> None:
        eye = shop.still()
        vision = await shop.vision(echo(*LABELS), default_minimum_confidence=0.5)
        async with client_of(vision, eye) as client:
            for _ in range(2):
                await client.capture_all_from_camera(
                    "eye", return_classifications=True, extra=EXPLAIN
                )
            got = await client.capture_all_from_camera("eye", return_classifications=True)
            assert scores(await client.get_classifications_from_camera("eye", 1)) == close_to(red=1)
        assert (got.extra, await count_runs(vision)) == ({}, 1)

    async def test_objects_in_depth_are_explained(self, shop: Workshop) -> None:
        eye = conveyor_camera(shop)
        vision = await shop.vision(DEMO, eye, camera_name="belt", default_minimum_confidence=0.3)
        async with client_of(vision, eye) as client:
            got = await client.capture_all_from_camera(
                "", return_detections=True, return_object_point_clouds=True, extra=EXPLAIN
            )
        assert got.objects
        told: Any = (got.extra or {})["explain"]
        assert told["minimum_confidence"] == 0.3


class TestRefusals:
    async def test_unsupported_methods_are_refused_with_the_reason(self, shop: Workshop) -> None:
        eye = shop.still()
        classifier = await shop.vision(echo(*LABELS), name="classifier")
        detects = await shop.vision(detector([(0, 0.9)], "cat"), name="detector")
        async with served(classifier, detects, eye) as channel:
            client = VisionClient("classifier", channel)
            for call, kind in (
                (client.get_detections(PICTURE), "Detector"),
                (client.get_detections_from_camera("eye"), "Detector"),
                (client.get_object_point_clouds("eye"), "3D segmenter"),
                (client.get_detections_3d("eye"), "3D segmenter"),
            ):
                with refused() as told:
                    await call
                assert told.status is Status.UNIMPLEMENTED
                start = f'vision model "classifier" does not implement a {kind}: '
                assert told.words.startswith(start)
                assert len(told.words) > len(start) + 10  # it says why
            client = VisionClient("detector", channel)
            for other in (
                client.get_classifications(PICTURE, 1),
                client.get_classifications_from_camera("eye", 1),
            ):
                with refused() as told:
                    await other
                assert told.status is Status.UNIMPLEMENTED
                assert told.words == (
                    'vision model "detector" does not implement a Classifier: '
                    "its outputs are decoded as boxes"
                )

    async def test_model_that_is_neither_detector_nor_classifier_is_refused(
        self, shop: Workshop
    ) -> None:
        odd = constant({"wave": np.zeros((1, 7, 5, 3), np.float32)})
        with pytest.raises(NoCapability) as error:
            await shop.vision(odd)
        words = str(error.value)
        assert words.startswith('model "model" does not fulfill any method of the vision service')
        assert "wave" in words
        assert error.value.capabilities.to_dict()["roles"] == {}
        assert set(error.value.capabilities.to_dict()["refused"]) == {"detector", "classifier"}

    async def test_invalid_image_is_refused(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS))
        image = ViamImage(b"", CameraMimeType.CUSTOM("image/unknown"))
        image._data, image._width, image._height = b"<html>", 1, 1
        async with client_of(vision) as client:
            with refused() as told:
                await client.get_classifications(image, 1)
        assert told.status is Status.INVALID_ARGUMENT
        assert "text" in told.words

    async def test_camera_without_depth_or_intrinsics_is_refused(self, shop: Workshop) -> None:
        eye = shop.still()
        blind = shop.still("blind", color=solid(1, 2, 3), depth=np.ones((8, 16), np.uint16))
        vision = await shop.vision(detector([(0, 0.9)], "cat"))
        async with client_of(vision, eye, blind) as client:
            for name, words in (
                ("eye", "does not provide depth"),
                ("blind", "intrinsic_parameters"),
            ):
                for call in (client.get_object_point_clouds(name), client.get_detections_3d(name)):
                    with refused() as told:
                        await call
                    assert told.status is Status.FAILED_PRECONDITION
                    assert words in told.words


def conveyor_camera(shop: Workshop, seed: int = 4, seconds: float = 3.0) -> FakeCamera:
    clock = ManualClock(1000.0)
    attributes = FakeCameraAttributes(scene="conveyor", seed=seed, width=640, height=480)
    camera = FakeCamera(ResourceName(CAMERA, "belt"), attributes, clock)
    camera._start -= seconds
    shop.close_later(camera)
    return camera


class TestThreeDimensions:
    """Positions of objects on the conveyor, whose ground truth is known."""

    @pytest.mark.parametrize("seed", [4, 11])
    async def test_objects_are_located_at_the_ground_truth(self, shop: Workshop, seed: int) -> None:
        eye, scene = conveyor_camera(shop, seed), Conveyor(seed)
        vision = await shop.vision(DEMO, eye, camera_name="belt", default_minimum_confidence=0.5)
        truth = [part for part in scene.scene_at(3.0).ground_truth if part.visible_share > 0.99]
        assert len(truth) >= 2
        async with client_of(vision, eye) as client:
            objects = await client.get_object_point_clouds("")
            places = await client.get_detections_3d("belt")
            found = await client.get_detections_from_camera("belt")
        assert len(objects) == len(places) == len(found)
        for part in truth:
            x, y = self.expected_center(scene, part)
            thing = min(
                objects,
                key=lambda each: (
                    abs(each.geometries.geometries[0].center.x - x)
                    + abs(each.geometries.geometries[0].center.y - y)
                ),
            )
            (geometry,) = thing.geometries.geometries
            assert thing.geometries.reference_frame == "belt"
            assert geometry.label == part.kind.value
            assert abs(geometry.center.x - x) < 20
            assert abs(geometry.center.y - y) < 20
            points = _points(thing.point_cloud)
            top = scene.belt_distance_mm - part.height_mm
            assert np.allclose(points[:, 2] * 1000, top, atol=0.5)
            assert abs(geometry.center.z - top) < 1
            assert any(
                abs(each.transforms[0].pose_in_observer_frame.pose.x - x) < 20
                and abs(each.transforms[0].pose_in_observer_frame.pose.y - y) < 20
                and each.classifications[0].class_name == part.kind.value
                and each.transforms[0].pose_in_observer_frame.reference_frame == "belt"
                for each in places
            )

    @staticmethod
    def expected_center(scene: Conveyor, part: Any) -> tuple[float, float]:
        """Return the center of its box in millimeters."""
        lens, away = scene.intrinsics, scene.belt_distance_mm - part.height_mm
        x = (part.box.x_min + part.box.x_max - 1) / 2
        y = (part.box.y_min + part.box.y_max - 1) / 2
        return (
            (x - lens.center_x) / lens.focal_x * away,
            (y - lens.center_y) / lens.focal_y * away,
        )

    async def test_boxes_and_depth_belong_to_the_same_frame(self, shop: Workshop) -> None:
        """This also holds while other calls wait for the boxes of the previous frame."""
        theirs, lens = SlowDetector(), {"width_px": 40, "height_px": 40, "fx": 40, "fy": 40}
        optics = Optics.model_validate({"intrinsic_parameters": {**lens, "ppx": 20, "ppy": 20}})
        eye = shop.still(optics=optics, color=solid(0, 0, 0, 40, 40), depth=_bump(2))
        vision = await shop.vision(theirs, label_confidences={"bump": 0.5})
        theirs.held = asyncio.Event()
        async with client_of(vision, eye) as client:
            theirs.news.clear()
            first = asyncio.ensure_future(client.get_detections_from_camera("eye"))
            async with asyncio.timeout(60):
                await theirs.news.wait()
                eye.show(solid(255, 255, 255, 40, 40))
                eye.show(_bump(24), "depth")
                second = asyncio.ensure_future(client.get_object_point_clouds("eye"))
                await eye.wait_for_requests(2)
                theirs.held.set()
                await first
                (thing,) = await second
        # In the white image, the bump is in the right half.
        assert thing.geometries.geometries[0].center.x > 0

    async def test_flat_scene_says_why_it_has_no_point_clouds(
        self, shop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        lens = {"width_px": 40, "height_px": 40, "fx": 40, "fy": 40, "ppx": 20, "ppy": 20}
        optics = Optics.model_validate({"intrinsic_parameters": lens})
        flat = np.full((40, 40), 1000, np.uint16)
        eye = shop.still(optics=optics, color=solid(0, 0, 0, 40, 40), depth=flat)
        vision = await shop.vision(SlowDetector(), label_confidences={"bump": 0.5})
        async with client_of(vision, eye) as client:
            assert await client.get_object_point_clouds("eye") == []
            eye.show(flat.copy(), "depth")
            assert await client.get_object_point_clouds("eye") == []
            reason = (await client.get_status())["no_point_clouds"]
            assert "not nearer to the camera than the area around" in str(reason)
            assert caplog.messages.count(str(reason)) == 1
            eye.show(np.zeros_like(flat), "depth")
            assert await client.get_object_point_clouds("eye") == []
            assert "no distances there" in str((await client.get_status())["no_point_clouds"])
            eye.show(_bump(2), "depth")
            assert len(await client.get_object_point_clouds("eye")) == 1
            assert "no_point_clouds" not in await client.get_status()


def _bump(left: int) -> NDArray[np.uint16]:
    depth = np.full((40, 40), 1000, np.uint16)
    depth[10:30, left : left + 14] = 900
    return depth


class SlowDetector(SdkModel):
    """Returns a box on the left in dark images, on the right in bright ones."""

    async def infer(self, input_tensors: Any, **options: Any) -> Any:
        await super().infer(input_tensors)
        bright = input_tensors["image"].mean() > 0
        box = (0.2, 0.55, 0.8, 1.0) if bright else (0.2, 0.0, 0.8, 0.45)
        return {
            "location": np.array([[box]], np.float32),
            "category": np.zeros((1, 1), np.float32),
            "score": np.full((1, 1), 0.9, np.float32),
        }

    async def metadata(self, **_: Any) -> Any:
        known = await super().metadata()
        del known.output_info[:]
        for name, shape in (("location", [1, 1, 4]), ("category", [1, 1]), ("score", [1, 1])):
            known.output_info.add(name=name, data_type="float32", shape=shape)
        known.output_info[0].extra.update({"names": ["bump"]})
        return known


def _points(cloud: bytes) -> NDArray[np.float32]:
    header, _, body = cloud.partition(b"DATA binary\n")
    assert b"FIELDS x y z\n" in header
    points = np.frombuffer(body, "<f4").reshape(-1, 3)
    assert f"POINTS {len(points)}\n".encode() in header
    return points


class TestIntrospection:
    async def test_properties_name_the_capabilities(self, shop: Workshop) -> None:
        for made, detects in ((detector([(0, 0.9)], "cat"), True), (echo(*LABELS), False)):
            async with client_of(await shop.vision(made)) as client:
                known = await client.get_properties()
            assert known.detections_supported is detects
            assert known.object_point_clouds_supported is detects
            assert known.detections_3d_supported is detects
            assert known.classifications_supported is not detects

    async def test_inspect_command_describes_the_model(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS), input_image_bgr=True)
        async with client_of(vision) as client:
            told = await client.do_command({"inspect": True})
        assert told["roles"] == {"classifier": {"family": "named", "assumed": []}}
        assert list(told["refused"]) == ["detector"]  # type: ignore[arg-type]
        assert told["labels"] == 3
        plan: Any = told["input"]
        assert (plan["name"], plan["layout"], plan["width"], plan["bgr"]) == (
            "image",
            "NCHW",
            8,
            True,
        )

    async def test_unknown_command_is_refused(self, shop: Workshop) -> None:
        async with client_of(await shop.vision(echo(*LABELS))) as client:
            with refused() as told:
                await client.do_command({"dance": True})
        assert told.status is Status.INVALID_ARGUMENT
        assert '{"inspect": true}' in told.words

    async def test_status_reports_timings_and_refused_roles(self, shop: Workshop) -> None:
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision) as client:
            assert (await client.get_status())["pictures"] == 0
            await client.get_classifications(PICTURE, 1)
            told: Any = await client.get_status()
        assert (told["model"], told["pictures"]) == ("model", 1)
        assert set(told["milliseconds"]) == {"prepare", "infer", "read"}
        assert told["milliseconds"] == pytest.approx(told["last_milliseconds"], abs=1e-3)
        assert all(0 < each < 1000 for each in told["milliseconds"].values())
        assert told["refused"]["detector"]

    async def test_role_lost_at_the_first_run_is_explained(self, shop: Workshop) -> None:
        """The outputs contradict the shapes that the file declares."""
        broken = model(
            [
                _identity_node("image", "location", (1, 2, 4)),
                _identity_node("image", "category", (1, 2)),
                _identity_node("image", "score", (1, 3)),
            ],
            [("image", FLOAT, [1, 3, 8, 8])],
            [
                ("location", FLOAT, [1, "n", 4]),
                ("category", FLOAT, [1, "n"]),
                ("score", FLOAT, [1, "n"]),
            ],
            {
                f"{name}_": np.zeros(shape, np.float32)
                for name, shape in (
                    ("location", (1, 2, 4)),
                    ("category", (1, 2)),
                    ("score", (1, 3)),
                )
            },
        )
        with pytest.raises(NoCapability) as error:
            await shop.vision(broken)
        assert "2" in str(error.value)
        assert "3" in str(error.value)
        assert error.value.capabilities.to_dict()["roles"] == {}


def _identity_node(_: str, name: str, shape: tuple[int, ...]) -> Any:
    from onnx import helper

    return helper.make_node("Identity", [f"{name}_"], [name])


class TestSdkResources:
    """Models, cameras and vision services that others write with the SDK."""

    async def test_sdk_model_can_be_used_and_keeps_its_tensors(self, shop: Workshop) -> None:
        theirs = SdkModel()
        vision = await shop.vision(theirs)
        assert await classify(vision) == close_to(**STRONG)
        assert theirs.given[-1]["image"].dtype == np.float32
        # The tensor belongs to the model: later images do not change it.
        kept = theirs.given[-1]["image"]
        before = kept.copy()
        await classify(vision, png_image(solid(0, 0, 0)))
        assert np.array_equal(kept, before)

    async def test_sdk_model_may_have_a_label_file_and_no_types(
        self, shop: Workshop, tmp_path: Path
    ) -> None:
        theirs = SdkModel()
        theirs.data_type = ""
        (tmp_path / "labels.txt").write_text("a\nb\nc\n")
        theirs.labels = {"labels": str(tmp_path / "labels.txt")}
        assert list(await classify(await shop.vision(theirs))) == ["a", "b", "c"]
        theirs.labels = {"labels": "/there/is/none.txt"}
        assert list(await classify(await shop.vision(theirs))) == ["0", "1", "2"]

    async def test_sdk_model_with_an_unknown_type_is_refused(self, shop: Workshop) -> None:
        theirs = SdkModel()
        theirs.data_type = "colour"
        with pytest.raises(Exception, match="which is not a numeric type"):
            await shop.vision(theirs)

    async def test_sdk_model_that_never_answers_times_out(self, shop: Workshop) -> None:
        """No thread keeps waiting for it."""
        eye, theirs = shop.still(), SdkModel()
        vision = await shop.vision(theirs)
        theirs.held = asyncio.Event()
        async with client_of(vision, eye) as client:
            for call in (
                client.get_classifications_from_camera("eye", 1, timeout=0.2),
                client.get_classifications(PICTURE, 1, timeout=0.2),
            ):
                with pytest.raises(Exception, match=r"(?i)deadline|time"):
                    await call

    async def test_sdk_camera_can_be_used(self, shop: Workshop) -> None:
        camera = ForeignCamera("theirs", 5.0, one=encode_pixels(".png", solid(255, 204, 153)))
        vision = await shop.vision(echo(*LABELS))
        async with client_of(vision, camera) as client:
            for _ in range(2):
                found = await client.get_classifications_from_camera("theirs", 0)
                assert scores(found) == close_to(**STRONG)
            assert await count_runs(vision) == 1
            camera.captured_at = 6.0
            await client.get_classifications_from_camera("theirs", 0)
            assert await count_runs(vision) == 2
            camera.images = [("one", b"<html>")]
            with refused() as told:
                await client.get_classifications_from_camera("theirs", 0)
            assert told.words.startswith('camera "theirs" returned a bad image')
            camera.images = []
            with refused() as told:
                await client.get_classifications_from_camera("theirs", 0)
            assert told.words == 'camera "theirs" does not provide color images'

    async def test_sdk_vision_service_is_served(self) -> None:
        theirs = SdkVision("theirs")
        data = encode_pixels(
            ".png", np.random.default_rng(1).integers(0, 255, (1900, 1900, 3), np.uint8)
        )
        assert len(data) > 10_000_000
        async with client_of(theirs) as client:
            image = ViamImage(data, CameraMimeType.PNG)
            with measure_loop_lag() as worst:
                (found,) = await client.get_detections(image)
                (label,) = await client.get_classifications(image, 7)
                got = await client.capture_all_from_camera("eye", return_image=True)
            assert (found.class_name, found.x_max) == ("1900x1900", len(data) % 1000)
            assert (label.class_name, label.confidence) == ("image/png", 7.0)
            assert got.image is not None
            assert (got.image.data, got.extra) == (b"picture", {"asked": "eye"})
            assert (await client.get_detections_from_camera("eye"))[0].class_name == "eye"
            assert await client.get_object_point_clouds("eye") == []
            assert (await client.get_detections_3d("eye")) == []
            assert (await client.get_properties()).default_camera == "eye"
        # Both ends are in this process.
        assert max(worst) < 0.1


@contextmanager
def measure_loop_lag() -> Iterator[list[float]]:
    """Yield the CPU seconds of each iteration of the loop, which a busy computer may delay."""
    loop, turns = asyncio.get_running_loop(), [0.0]
    handles = list[asyncio.TimerHandle]()

    def turn(before: float) -> None:
        now = time.thread_time()
        turns.append(now - before)
        handles[:] = [loop.call_later(0.005, turn, now)]

    turn(time.thread_time())
    try:
        yield turns
    finally:
        handles[0].cancel()


class SdkVision(Vision):
    async def get_detections(self, image: ViamImage, **_: Any) -> list[Detection]:
        size = f"{image.width}x{image.height}"
        return [Detection(class_name=size, x_max=len(image.data) % 1000, confidence=1)]

    async def get_classifications(
        self, image: ViamImage, count: int, **_: Any
    ) -> list[Classification]:
        return [Classification(class_name=str(image.mime_type), confidence=count)]

    async def get_detections_from_camera(self, camera_name: str, **_: Any) -> list[Detection]:
        return [Detection(class_name=camera_name)]

    async def get_classifications_from_camera(
        self, camera_name: str, count: int, **_: Any
    ) -> list[Classification]:
        return []

    async def get_object_point_clouds(self, camera_name: str, **_: Any) -> list[PointCloudObject]:
        return []

    async def get_detections_3d(self, camera_name: str, **_: Any) -> list[Detection3D]:
        return []

    async def get_properties(self, **_: Any) -> Vision.Properties:
        return Vision.Properties(default_camera="eye")

    async def capture_all_from_camera(self, camera_name: str, *_: Any, **__: Any) -> Any:
        image = ViamImage(b"picture", CameraMimeType.CUSTOM("image/unknown"))
        return CaptureAllResult(image=image, extra={"asked": camera_name})
