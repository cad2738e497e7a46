"""The commands that use a resource of a machine: `call`, `job` and `camera`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, add_address_option
from cogwork.core.command_line import argument, command, group, option, switch

_CAMERA = argument("NAME", "camera name, e.g. belt")
_SOURCE = option("--source", "SOURCE", "image source (default: the first color image)")

CALL = command(
    "call",
    "Call a method of a resource and print the reply as JSON",
    "cogwork.cli.machine.call:call",
    argument("RESOURCE", "resource name, e.g. belt"),
    argument(
        "METHOD",
        "method, e.g. GetReadings or get_readings; without it, the error lists the methods",
        nargs="?",
    ),
    argument(
        "JSON",
        "request, or - for standard input (default: {})",
        dest="request",
        nargs="?",
        default="{}",
    ),
    option("--timeout", "SECONDS", "deadline of the call (default: 60)", parse=float, default=60.0),
    switch(
        "--detach",
        "leave what the call moves moving; by default the command stays while it moves, and it "
        "stops with the command",
    ),
    add_address_option,
    epilog="Exit status: 0 if the call succeeds, 1 if it fails, 2 if it cannot be made.",
)
JOB = group(
    "job",
    "Run a machine's jobs",
    command(
        "run",
        "Run a job once now, and wait for its end",
        "cogwork.cli.machine.job:run",
        argument("JOB", "job name, e.g. greet", dest="job"),
        JSON,
        add_address_option,
        epilog="It runs as by its schedule: it goes on without this command, and StopAll ends what "
        "it moves. Exit status: 0 if the run succeeds, 1 if it fails, 2 if it cannot be started, "
        "such as while the job is running.",
    ),
)
CAMERA = group(
    "camera",
    "Show and save a camera's images",
    command(
        "snap",
        "Save an image to a file",
        "cogwork.cli.machine.camera:snap",
        _CAMERA,
        option(
            "-o, --output",
            "FILE",
            "write to FILE; .jpg, .png, .rgba and .dep set the type (default: NAME.jpg, or "
            "NAME.png for depth)",
        ),
        _SOURCE,
        JSON,
        add_address_option,
        epilog="Exit status: 0 if the image was saved, 1 if the camera has no image, 2 if the "
        "camera cannot be reached or the file cannot be written.",
    ),
    command(
        "watch",
        "Show a camera's images in the terminal until Ctrl-C",
        "cogwork.cli.machine.camera_watch:watch",
        _CAMERA,
        _SOURCE,
        option("--seconds", "N", "stop after N seconds", parse=float),
        add_address_option,
        epilog="Keeps trying while the camera has no images or the machine is down. Exit status: "
        "0 after --seconds, 2 if the camera does not exist or the machine cannot be reached at the "
        "start, 130 after Ctrl-C.",
    ),
)
