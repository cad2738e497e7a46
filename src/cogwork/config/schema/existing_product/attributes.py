"""The attributes of built-in models of viam-server that are different here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cogwork.config.schema.existing_product.difference import Difference, Treatment

_NO_WIRING = "the fake has no wiring"
_PID = Difference(
    "control_parameters",
    Treatment.NOT_TAKEN_OVER,
    "the speed is not controlled in a closed loop",
    'set "max_rpm", from which the power for a speed is computed',
)

ATTRIBUTES: Mapping[tuple[str, str], tuple[Difference, ...]] = MappingProxyType(
    {
        ("arm", "fake"): (
            Difference(
                "arm-model",
                Treatment.NOT_TAKEN_OVER,
                "the kinematics of other makes are not included, so the arm is a desk arm with six "
                "joints",
                'write the path of a kinematics file as "kinematics_file"',
            ),
            Difference(
                "model-path",
                Treatment.RENAMED,
                "one name says what the file is for",
                new_key="kinematics_file",
            ),
        ),
        ("base", "wheeled"): (_PID,),
        ("board", "fake"): (
            Difference(
                "fail_new",
                Treatment.NOT_TAKEN_OVER,
                "a fake board does not fail on purpose",
                'use a fake sensor with "start", which injects faults',
            ),
        ),
        ("camera", "fake"): (
            Difference(
                "rtp_passthrough",
                Treatment.NO_EFFECT,
                "the machine encodes the video of every camera for its viewers",
            ),
            Difference(
                "model",
                Treatment.NO_EFFECT,
                "the fake camera computes its lens parameters from its size",
            ),
        ),
        ("camera", "ffmpeg"): (
            Difference(
                "output_kw_args",
                Treatment.NO_EFFECT,
                "the machine decodes the images itself, so there is no output of FFmpeg to "
                "configure",
                'change the images with "filters"',
            ),
        ),
        ("camera", "image_file"): (
            Difference(
                "preloaded_image",
                Treatment.NOT_TAKEN_OVER,
                "the images of viam-server are not included",
                'write the path of an image as "color_image_file_path"',
            ),
        ),
        ("camera", "webcam"): (
            Difference(
                "debug",
                Treatment.NO_EFFECT,
                "the log level decides how much a camera logs",
                'write "log_configuration": {"level": "debug"} beside "attributes"',
            ),
        ),
        ("encoder", "fake"): (
            Difference(
                "update_rate_msec",
                Treatment.NO_EFFECT,
                "the position is computed for every call",
            ),
        ),
        ("input_controller", "gamepad"): (
            Difference(
                "dev_file",
                Treatment.RENAMED,
                "it names a device, not a file",
                new_key="device",
            ),
            Difference(
                "auto_reconnect",
                Treatment.NO_EFFECT,
                "a gamepad that returns is always used again",
            ),
        ),
        ("motor", "fake"): (
            Difference("board", Treatment.NO_EFFECT, _NO_WIRING),
            Difference("pins", Treatment.NO_EFFECT, _NO_WIRING),
            Difference("pwm_freq", Treatment.NO_EFFECT, _NO_WIRING),
            Difference("dir_flip", Treatment.NO_EFFECT, _NO_WIRING),
            Difference("direction_flip", Treatment.NO_EFFECT, _NO_WIRING),
            Difference("min_power_pct", Treatment.NO_EFFECT, _NO_WIRING),
            Difference("max_power_pct", Treatment.NO_EFFECT, _NO_WIRING),
            Difference(
                "encoder",
                Treatment.NOT_TAKEN_OVER,
                "the fake motor knows its position without an encoder",
                'let the encoder follow the motor: write "motor" in the attributes of the fake '
                "encoder",
            ),
            Difference(
                "ticks_per_rotation",
                Treatment.NO_EFFECT,
                "the fake motor knows its position without an encoder",
            ),
        ),
        ("motor", "gpio"): (
            _PID,
            Difference(
                "max_acceleration_rpm_per_sec",
                Treatment.NOT_TAKEN_OVER,
                "the motor changes its power at once",
            ),
        ),
        ("motion", "builtin"): (
            Difference(
                "log_file_path",
                Treatment.NO_EFFECT,
                "the planner writes to the log of the machine",
            ),
            Difference(
                "num_threads",
                Treatment.NO_EFFECT,
                "the planner uses one thread",
            ),
        ),
        ("navigation", "builtin"): (
            Difference(
                "store",
                Treatment.NOT_TAKEN_OVER,
                "locations, routes and zones are kept in memory until the service is built again",
                "let a client save them, and add them again",
            ),
            Difference(
                "obstacle_detectors",
                Treatment.REQUIRED,
                "the machine does not stop for obstacles that a vision service sees, so it does "
                "not drive at all with this setting",
                "remove it only if the machine may drive without",
            ),
            Difference(
                "obstacles",
                Treatment.REQUIRED,
                "obstacles are not read from the configuration, so the machine does not drive at "
                "all with this setting",
                "add them as keepout zones with the service, and then remove them here",
            ),
            Difference(
                "bounding_regions",
                Treatment.REQUIRED,
                "limits of the area are not read from the configuration, so the machine does not "
                "drive at all with this setting",
                "add what lies outside as keepout zones with the service, and then remove them "
                "here",
            ),
            Difference(
                "obstacle_polling_frequency_hz",
                Treatment.NO_EFFECT,
                "there are no obstacle detectors",
            ),
            Difference(
                "replan_cost_factor",
                Treatment.NO_EFFECT,
                'another path is planned as soon as the machine is "plan_deviation_m" off its path',
            ),
        ),
        ("servo", "gpio"): (
            Difference(
                "pwm_resolution",
                Treatment.NO_EFFECT,
                "the resolution is the highest that the board has",
            ),
        ),
    }
)
"""The attributes by the subtype of the API and the name of the model."""
