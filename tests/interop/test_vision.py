"""The SDK's own vision client, unmodified, with the real executable and real models."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.machine.running import Config, Server, run_server
from tests.support.machine.served import refused
from tests.support.media.pictures import encode_pixels
from tests.support.models.real_models import golden_outputs, model_path, photo_path, photo_paths

from cogwork.drivers.camera import conveyor
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402
from viam.proto.service.vision import Classification, Detection  # noqa: E402
from viam.services.vision import VisionClient  # noqa: E402

DEMO = Path(conveyor.__file__).parents[1] / "mlmodel" / "demo"
YOLO = ("nms", "v8layout", "v5layout")
SCORE, EDGE = 0.08, 0.02
"""How far a score, and an edge as a part of the picture, may be from what others find."""
STEP = 0.083
"""The same for an image that is given: it is decoded no finer than the model looks at it, and the
scores of the SSD go in steps of this."""
HESITANT = 0.5
"""A classifier that is less sure of its best label: each way to make a picture smaller has its own
favourite, and even the exact mean of areas is 0.12 away."""
SURE = {"ssd": 0.4, "yolo": 0.3}
"""From where on the others tell."""


class FoundObject(NamedTuple):
    label: str
    score: float
    box: tuple[float, ...]
    """Left, upper, right and lower edge, as parts of the picture."""


def service(name: str, kind: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": f"rdk:service:{kind}",
        "model": model,
        "attributes": attributes,
    }


def vision_with_model(
    name: str, engine: str, file: Path, labels: Path | None = None, **attributes: Any
) -> list[dict[str, Any]]:
    """Return a model and a vision service that uses it."""
    given = {"label_path": str(labels)} if labels is not None else {}
    return [
        service(f"{name}-model", "mlmodel", engine, model_path=str(file), **given),
        service(name, "vision", "mlmodel", mlmodel_name=f"{name}-model", **attributes),
    ]


def camera(name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": "rdk:component:camera",
        "model": model,
        "attributes": attributes,
    }


def demo_machine() -> Config:
    drawing = {"type": "detections", "attributes": {"detector_name": "demo"}}
    return {
        "components": [
            camera(
                "belt", "fake", scene="conveyor", seed=4, width=640, height=480, ground_truth=True
            ),
            camera("drawn", "transform", source="belt", pipeline=[drawing]),
            camera("turned", "transform", source="drawn", pipeline=[{"type": "rotate"}]),
        ],
        "services": vision_with_model(
            "demo",
            "onnx_cpu",
            DEMO / "conveyor.onnx",
            camera_name="belt",
            default_minimum_confidence=0.5,
        ),
    }


def explained_machine(directory: Path) -> Config:
    """Return a machine whose vision services use one model on one still image."""
    belt = conveyor.Conveyor(seed=4, width=640, height=480)
    photo = directory / "belt.png"
    photo.write_bytes(encode_pixels(".png", belt.render(belt.scene_at(22.0))[0]))
    model, *_ = vision_with_model("demo", "onnx_cpu", DEMO / "conveyor.onnx")
    minimums: dict[str, dict[str, Any]] = {
        "unlimited": {},
        "default": {"default_minimum_confidence": 0.5},
        "by-label": {"label_confidences": {"gear": 0.9, "nut": 0.5}},
        "few": {"max_detections": 1},
    }
    return {
        "components": [camera("still", "image_file", color_image_file_path=str(photo))],
        "services": [
            model,
            service("fake", "vision", "fake"),
            *(
                service(name, "vision", "mlmodel", mlmodel_name="demo-model", **attributes)
                for name, attributes in minimums.items()
            ),
        ],
    }


EXPECTED_RULES = {
    "default": r"^0\.\d+ is below the minimum confidence 0\.50$",
    "by-label": r"^bolt is not listed|is below the minimum confidence 0\.[59]0 of (gear|nut)$",
    "few": r"^it is not among the 1 most confident detections \(max_detections\)$",
}


def real_machine() -> Config:
    numbered = model_path("coco_labels_numbered.txt")
    ssd = model_path("ssd_mobilenet_v2_coco_quant_postprocess.tflite")
    imagenet = model_path("imagenet_labels_1000.txt")
    services = [
        vision_with_model("ssd", "tflite_cpu", ssd, numbered, camera_name="chelsea"),
        vision_with_model(
            "effnet-tflite", "tflite_cpu", model_path("efficientnet_lite0_uint8.tflite")
        ),
        vision_with_model(
            "effnet-onnx", "onnx_cpu", model_path("efficientnet_lite0_logits.onnx"), imagenet
        ),
        *(
            vision_with_model(
                f"yolo-{kind}",
                "onnx_cpu",
                model_path(f"yolov2tiny_{kind}_w8.onnx"),
                letterbox=False,
                default_minimum_confidence=SURE["yolo"] - SCORE,
            )
            for kind in YOLO
        ),
        vision_with_model("face", "tflite_cpu", model_path("face_detection_short_range.tflite")),
    ]
    return {
        "components": [
            camera(each.stem, "image_file", color_image_file_path=str(each))
            for each in photo_paths()
        ],
        "services": [each for pair in services for each in pair],
    }


class Machine:
    def __init__(self, channel: Channel, server: Server) -> None:
        self.channel = channel
        self.server = server

    def vision(self, name: str) -> VisionClient:
        return VisionClient(name, self.channel)

    async def reason(self, name: str) -> str:
        """Return why it is not ready."""
        for each in (await self.server.status())["resources"]:
            if each["name"] == f"rdk:service:vision/{name}":
                return str(each["reason"])
        raise AssertionError(f"there is no {name}")


@contextlib.asynccontextmanager
async def run_machine(config: Config, directory: Path, **options: Any) -> AsyncIterator[Machine]:
    async with run_server(config, directory, **options) as server:
        await server.wait_for_status(state="running")
        channel = Channel("localhost", server.port)
        try:
            yield Machine(channel, server)
        finally:
            channel.close()


async def test_demo_model_supports_all_operations(tmp_path: Path) -> None:
    async with run_machine(demo_machine(), tmp_path) as there:
        await check_demo(there)
        await check_refused_cameras(there)


async def test_explained_detections_are_those_of_a_service_without_minimums(tmp_path: Path) -> None:
    async with run_machine(explained_machine(tmp_path), tmp_path) as there:
        found = await there.vision("unlimited").get_detections_from_camera("still")
        complete = [each for each in found if each.confidence >= 0.001]  # others are empty rows
        for name, rules in EXPECTED_RULES.items():
            client = there.vision(name)
            got = await client.capture_all_from_camera(
                "still", return_image=True, return_detections=True, extra={"explain": True}
            )
            told: Any = (got.extra or {})["explain"]
            assert got.detections
            assert told["filtered"]
            both = [*map(_box_values, got.detections), *map(_filtered_values, told["filtered"])]
            assert sorted(both) == sorted(map(_box_values, complete))
            assert all(re.search(rules, each["rule"]) for each in told["filtered"])
            assert told["captured_at"] > 0
            assert told["milliseconds"]["inference"] > 0
            plain = await client.capture_all_from_camera("still", return_detections=True)
            assert (plain.detections, plain.extra) == (got.detections, {})
        fake = await there.vision("fake").capture_all_from_camera(
            "still", return_detections=True, extra={"explain": True}
        )
        assert fake.detections
        assert fake.extra == {}


async def test_real_models_match_reference_results(tmp_path: Path) -> None:
    """All models run in one machine, because starting it takes longest."""
    async with run_machine(real_machine(), tmp_path) as there:
        for name, part in PARTS.items():
            await part(there, name)


async def check_demo(there: Machine) -> None:
    client = there.vision("demo")
    known = await client.get_properties()
    assert (known.detections_supported, known.classifications_supported) == (True, False)
    assert (known.object_point_clouds_supported, known.detections_3d_supported) == (True, True)
    assert known.default_camera == "belt"
    await check_detections_match_the_returned_image(there)
    for camera_name in ("", "belt"):
        found = await client.get_detections_from_camera(camera_name)
        assert found
        assert {each.class_name for each in found} <= {"gear", "bolt", "nut"}
        assert min(each.confidence for each in found) >= 0.5
    for thing in await client.get_object_point_clouds(""):
        assert thing.point_cloud.startswith(b"VERSION .7")
        assert thing.geometries.geometries[0].label in ("gear", "bolt", "nut")
        assert thing.geometries.reference_frame == "belt"
    for place in await client.get_detections_3d("belt"):
        assert place.classifications[0].confidence >= 0.5
        assert 800 < place.transforms[0].pose_in_observer_frame.pose.z < 1000
    told: Any = await client.do_command({"inspect": True})
    assert told["roles"]["detector"]["family"] == "named"
    status: Any = await client.get_status()
    assert status["pictures"] >= 3
    with refused() as refusal:
        await client.get_classifications_from_camera("belt", 3)
    assert refusal.status is Status.UNIMPLEMENTED
    assert 'vision model "demo" does not implement a Classifier' in refusal.words


async def check_detections_match_the_returned_image(there: Machine) -> None:
    """Detections of the returned image agree with those returned with it."""
    client = there.vision("demo")
    got = await client.capture_all_from_camera(
        "", return_image=True, return_detections=True, return_object_point_clouds=True
    )
    assert got.image is not None
    assert got.detections
    assert (got.image.width, got.image.height) == (640, 480)
    assert len(got.objects or ()) == len(got.detections)
    again = await client.get_detections(got.image)
    first, second = ([_from_detection(each) for each in those] for those in (got.detections, again))
    # The image was compressed as JPEG in between.
    compare(second, first, 0.5, SCORE, is_truth=False)


async def check_refused_cameras(there: Machine) -> None:
    client = there.vision("demo")
    for name in ("drawn", "turned"):
        with refused() as told:
            await client.get_detections_from_camera(name)
        assert told.status is Status.FAILED_PRECONDITION
        assert '"demo"' in told.words
    images, _ = await CameraClient("drawn", there.channel).get_images()
    assert {each.name for each in images} == {"color", "depth"}
    with refused() as told:
        await client.get_detections_from_camera("blet")
    assert told.status is Status.NOT_FOUND
    assert "belt" in told.words  # it guesses what was meant


async def check_detections_in_photos(there: Machine, name: str) -> None:
    client = there.vision(name)
    yolo = name.startswith("yolo")
    golden, sure = (
        golden_outputs("yolov2tiny_nms_stretch" if yolo else "ssd_tflite"),
        SURE[name[:4]],
    )
    assert (await client.get_properties()).detections_supported
    worst = {"camera": (0.0, 0.0), "image": (0.0, 0.0)}
    for photo, expected in golden.items():
        wanted = [_from_golden(each) for each in expected]
        found = await client.get_detections_from_camera(Path(photo).stem)
        given = await client.get_detections(_load_image(photo))
        for way, each, most in (("camera", found, SCORE), ("image", given, STEP)):
            seen = [_from_detection(one) for one in each]
            score, edge = compare(seen, wanted, sure, most, f"{name} {photo}, by {way}")
            worst[way] = max(worst[way][0], score), max(worst[way][1], edge)
        got = await client.capture_all_from_camera(
            Path(photo).stem, return_detections=True, return_classifications=True
        )
        assert (got.detections, got.classifications) == (found, [])
    for way, (score, edge) in worst.items():
        print(f"{name}, by {way}: scores within {score:.3f}, edges within {edge:.4f}")


async def check_classifications_of_photos(there: Machine, name: str) -> None:
    client, golden = there.vision(name), golden_outputs(name.replace("-", "_"))
    known = await client.get_properties()
    assert (known.detections_supported, known.classifications_supported) == (False, True)
    worst = {"camera": 0.0, "image": 0.0}
    for photo, expected in golden.items():
        found = await client.get_classifications_from_camera(Path(photo).stem, 3)
        assert len(found) == 3
        got = await client.capture_all_from_camera(Path(photo).stem, return_classifications=True)
        assert (got.classifications or [])[:3] == found
        given = await client.get_classifications(_load_image(photo), 0)
        for way, everything, most in (
            ("camera", got.classifications or [], SCORE),
            ("image", given, STEP),
        ):
            assert len(everything) == 1000
            scores = {each.class_name: each.confidence for each in everything}
            far = max(abs(scores[label] - score) for label, score in expected)
            words = (
                f"{name} {photo}, by {way}: {_format_classifications(everything[:3])}, "
                f"not {expected}"
            )
            if expected[0][1] < HESITANT:
                assert expected[0][0] in {each.class_name for each in everything[:3]}, words
                print(f"{name} hesitates at {photo}, by {way}: scores within {far:.3f}")
                continue
            worst[way] = max(worst[way], far)
            assert far <= most, words
            assert everything[0].class_name == expected[0][0], words
    print(f"{name}: scores within {worst['camera']:.3f}, of given images {worst['image']:.3f}")
    with refused() as told:
        await client.get_detections(_load_image("chelsea.jpg"))
    assert told.status is Status.UNIMPLEMENTED
    assert "does not implement a Detector" in told.words


async def check_model_without_a_role(there: Machine, name: str) -> None:
    with refused() as told:
        await there.vision(name).get_detections(_load_image("chelsea.jpg"))
    assert told.status is Status.UNAVAILABLE
    reason = await there.reason(name)
    print(reason)
    for words in ("neither a detector", "regressors", "classificators"):
        assert words in reason
        assert words in told.words


PARTS = {
    "ssd": check_detections_in_photos,
    **dict.fromkeys((f"yolo-{kind}" for kind in YOLO), check_detections_in_photos),
    "effnet-tflite": check_classifications_of_photos,
    "effnet-onnx": check_classifications_of_photos,
    "face": check_model_without_a_role,
}


def compare(
    found: Sequence[FoundObject],
    wanted: Sequence[FoundObject],
    sure: float,
    score: float,
    where: str = "",
    *,
    is_truth: bool = True,
) -> tuple[float, float]:
    """Each finds what the other is sure of. The largest differences. `is_truth`: whether all that
    is wanted must be found."""
    worst = [0.0, 0.0]
    for one, others in ((wanted, found), (found, wanted)):
        for each in one:
            same = [other for other in others if _is_same(each, other, score)]
            if same:
                nearest = min(_distance(each, other)[::-1] for other in same)
                worst = [*map(max, worst, nearest[::-1])]
            else:
                # An object about as confident as the threshold may be missing there.
                missing = (one is found or not is_truth) and each.score < sure + score
                assert missing, f"{where}: {each} is not among {others}"
    return worst[0], worst[1]


def _is_same(one: FoundObject, other: FoundObject, most: float) -> bool:
    score, edge = _distance(one, other)
    return one.label == other.label and score <= most and edge <= EDGE


def _distance(one: FoundObject, other: FoundObject) -> tuple[float, float]:
    edges = np.abs(np.subtract(one.box, other.box))
    return abs(one.score - other.score), float(edges.max())


def _from_golden(each: dict[str, Any]) -> FoundObject:
    """In the golden outputs, boxes may exceed the image."""
    if "xyxy_416" in each:
        box = [edge / 416 for edge in each["xyxy_416"]]
    else:
        y_min, x_min, y_max, x_max = each["ymin_xmin_ymax_xmax"]
        box = [x_min, y_min, x_max, y_max]
    return FoundObject(each["label"], each["score"], tuple(np.clip(box, 0, 1).tolist()))


def _from_detection(each: Detection) -> FoundObject:
    return FoundObject(
        each.class_name,
        each.confidence,
        (
            each.x_min_normalized,
            each.y_min_normalized,
            each.x_max_normalized,
            each.y_max_normalized,
        ),
    )


def _box_values(each: Detection) -> tuple[Any, ...]:
    return each.class_name, each.confidence, each.x_min, each.y_min, each.x_max, each.y_max


def _filtered_values(each: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("class_name", "confidence", "x_min", "y_min", "x_max", "y_max")
    return tuple(each[name] for name in names)


def _format_classifications(found: Sequence[Classification]) -> list[tuple[str, float]]:
    return [(each.class_name, round(each.confidence, 3)) for each in found]


def _load_image(photo: str) -> ViamImage:
    return ViamImage(photo_path(photo).read_bytes(), CameraMimeType.JPEG)
