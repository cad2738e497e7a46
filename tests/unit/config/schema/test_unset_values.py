"""Zeros and empty values count as not set where existing files contain them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.schema import codes
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.spec import Spec
from cogwork.resource.registry import Registry

REGISTRY = Registry(builtin_models())
CONTEXT = LoadContext(REGISTRY, Path("/home"), {}, lambda _: True, lambda _: True)
NO_LENS = dict.fromkeys(("width_px", "height_px", "fx", "fy", "ppx", "ppy"), 0)
GPIO_MOTOR = {"board": "b", "pins": {"a": "1", "b": "2"}}
SERVO = {"board": "b", "pin": "1"}
ROVER = {"base": "x", "movement_sensor": "y"}


def load_resource(kind: str, api: str, model: str, attributes: dict[str, Any]) -> LoadedConfig:
    resource = {"name": "r", "type": api, "model": model, "attributes": attributes}
    needed: list[dict[str, Any]] = [
        {"name": name, "type": type_, "model": "fake"}
        for name, type_ in (
            ("b", "board"), ("x", "base"), ("y", "movement_sensor"), ("c", "camera"),
            ("e", "encoder"), ("m", "motor"), ("n", "motor"),
        )
    ]  # fmt: skip
    model_service: dict[str, Any] = {"name": "ml", "type": "mlmodel", "model": "onnx_cpu",
                     "attributes": {"model_path": "/m"}}  # fmt: skip
    components, services = needed, [model_service]
    (components if kind == "component" else services).append(resource)
    return load(json.dumps({"components": components, "services": services}), CONTEXT)


def spec_of(loaded: LoadedConfig) -> Spec:
    return next(spec for spec in loaded.result.specs if spec.name.name == "r")


@pytest.mark.parametrize(
    ("kind", "api", "model", "required", "zeros"),
    [
        ("component", "camera", "webcam", {}, {
            "video_path": "", "format": "", "width_px": 0, "height_px": 0, "frame_rate": 0,
            "intrinsic_parameters": NO_LENS}),
        ("component", "camera", "fake", {}, {"width": 0, "height": 0}),
        ("component", "camera", "image_file", {"color_image_file_path": "/a"}, {
            "depth_image_file_path": "", "pointcloud_file_path": ""}),
        ("component", "camera", "ffmpeg", {"video_path": "/v"}, {"filters": None}),
        ("component", "motor", "gpio", GPIO_MOTOR, {
            "encoder": "", "ticks_per_rotation": 0, "pwm_freq": 0,
            "min_power_pct": 0, "max_rpm": 0}),
        ("component", "motor", "fake", {}, {"max_rpm": 0}),
        ("component", "servo", "gpio", SERVO, {
            "frequency_hz": 0, "min_width_us": 0, "max_width_us": 0}),
        ("component", "base", "wheeled", {
            "left": ["m"], "right": ["n"], "width_mm": 1, "wheel_circumference_mm": 1},
            {"spin_slip_factor": 0}),
        ("component", "movement_sensor", "wheeled-odometry", {
            "base": "x", "left_motors": ["m"], "right_motors": ["n"]}, {"time_interval_msec": 0}),
        ("component", "arm", "fake", {}, {"kinematics_file": ""}),
        ("service", "navigation", "builtin", ROVER, {
            "meters_per_sec": 0, "degs_per_sec": 0, "plan_deviation_m": 0, "map_type": "",
            "position_polling_frequency_hz": 0}),
        ("service", "mlmodel", "onnx_cpu", {"model_path": "/m"}, {
            "label_path": "", "num_threads": 0}),
        ("service", "vision", "mlmodel", {"mlmodel_name": "ml"}, {
            "camera_name": "", "label_path": "", "label_confidences": {}, "remap_input_names": {},
            "remap_output_names": None, "input_image_mean_value": [], "input_image_std_dev": [],
            "xmin_ymin_xmax_ymax_order": []}),
    ],
)  # fmt: skip
def test_zero_counts_as_unset(
    kind: str, api: str, model: str, required: dict[str, Any], zeros: dict[str, Any]
) -> None:
    unset = load_resource(kind, api, model, required)
    zero = load_resource(kind, api, model, {**required, **zeros})
    assert unset.diagnostics == zero.diagnostics == ()
    assert spec_of(zero).settings == spec_of(unset).settings


def test_zero_section_counts_as_unset() -> None:
    sensor = {"name": "s", "type": "sensor", "model": "fake"}
    plain: dict[str, Any] = {
        "components": [sensor],
        "modules": [{"name": "m", "executable_path": "/m"}],
        "remotes": [{"name": "r", "address": "a:1"}],
        "processes": [{"id": "p", "name": "/p"}],
        "packages": [{"name": "k", "package": "o/k", "url": "/k"}],
    }
    zeros = {
        "components": [{**sensor, "frame": None}],
        "modules": [{**plain["modules"][0], "type": "", "log_level": "", "first_run_timeout": ""}],
        "remotes": [{**plain["remotes"][0], "reconnect_interval": "", "frame": None}],
        "processes": [{**plain["processes"][0], "stop_timeout": ""}],
        "packages": [{**plain["packages"][0], "type": "", "version": ""}],
    }
    first, second = (load(json.dumps(each), CONTEXT) for each in (plain, zeros))
    assert first.diagnostics == second.diagnostics == ()
    assert first.result.config == second.result.config


@pytest.mark.parametrize(
    ("api", "required", "limit"),
    [("motor", GPIO_MOTOR, "max_power_pct"), ("servo", SERVO, "max_angle_deg")],
)
def test_limit_of_zero_is_a_warning(api: str, required: dict[str, Any], limit: str) -> None:
    """The author may have meant that nothing moves."""
    loaded = load_resource("component", api, "gpio", {**required, limit: 0})
    (found,) = loaded.diagnostics
    assert found.diagnostic.code is codes.IGNORED_VALUE
    assert "counts as not set" in found.diagnostic.message


def test_encoder_without_ticks_is_a_warning() -> None:
    loaded = load_resource("component", "motor", "gpio", {**GPIO_MOTOR, "encoder": "e"})
    (found,) = loaded.diagnostics
    assert found.diagnostic.code is codes.IGNORED_VALUE
    assert spec_of(loaded).fault is None


def test_surplus_channel_is_a_warning_with_a_fix() -> None:
    means = {"mlmodel_name": "ml", "input_image_mean_value": [0.1, 0.2, 0.3, 0.4]}
    (found,) = load_resource("service", "vision", "mlmodel", means).diagnostics
    assert found.diagnostic.code is codes.IGNORED_VALUE
    at = ("services", 1, "attributes", "input_image_mean_value")
    assert found.diagnostic.fix == Fix(FixKind.REPLACE, at, "[0.1, 0.2, 0.3]")


def test_too_few_channels_are_an_error() -> None:
    means = {"mlmodel_name": "ml", "input_image_mean_value": [0.1, 0.2]}
    assert load_resource("service", "vision", "mlmodel", means).has_errors


def test_value_without_effect_changes_nothing() -> None:
    """Its fix removes it, so the same must run without it."""
    for api, model, used, ignored in (
        ("motor", "gpio", GPIO_MOTOR, {"ticks_per_rotation": 600}),
        ("camera", "image_file", {"color_image_file_path": "/a"}, {"preloaded_image": "dog"}),
    ):
        plain = load_resource("component", api, model, used)
        loaded = load_resource("component", api, model, {**used, **ignored})
        (found,) = loaded.diagnostics
        assert found.diagnostic.fix is not None
        assert found.diagnostic.fix.kind is FixKind.REMOVE
        assert spec_of(loaded).settings == spec_of(plain).settings


def test_preloaded_image_alone_says_what_to_do() -> None:
    loaded = load_resource("component", "camera", "image_file", {"preloaded_image": "dog"})
    assert not loaded.has_errors
    fault = spec_of(loaded).fault
    assert fault is not None
    assert 'write the path of an image as "color_image_file_path"' in fault
