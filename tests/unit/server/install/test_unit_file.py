"""The unit file, checked by systemd itself."""

from __future__ import annotations

import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path, PurePosixPath

import pytest

from cogwork.server.install.service_paths import EXECUTABLE
from cogwork.server.install.unit_file import format_unit
from cogwork.serving.shutdown import EXIT_TIMEOUT, SHUTDOWN_TIMEOUT

UNIT = format_unit(EXECUTABLE, "Written by a test.")
NEWER = "Unknown key 'DelegateSubgroup' in section [Service], ignoring."
"""Releases of systemd before 254 say so."""


def read(section: str, key: str) -> str:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT)
    return parser[section][key]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_every_line(tmp_path: Path) -> None:
    # It checks that the program exists, too.
    unit = tmp_path / "cogwork-server.service"
    unit.write_text(format_unit(PurePosixPath("/bin/true"), "Written by a test."))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if not line.endswith(NEWER)]
    # Units of this computer are none of ours.
    assert [line for line in complaints if "cogwork" in line] == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("Unit", "StartLimitIntervalSec", "0"),
        ("Service", "Type", "notify"),
        ("Service", "Restart", "always"),
        ("Service", "RestartSec", "5"),
        ("Service", "KillMode", "mixed"),
        ("Service", "Environment", "COGWORK_HOME=/var/lib/cogwork"),
        ("Service", "StateDirectory", "cogwork"),
        ("Service", "ExecStart", "/usr/local/bin/cogwork-server -config /etc/cogwork.json"),
        ("Install", "WantedBy", "multi-user.target"),
    ],
)
def test_service_runs_for_good(section: str, key: str, value: str) -> None:
    assert read(section, key) == value


def test_server_has_the_time_to_stop_that_it_gives_itself() -> None:
    assert int(read("Service", "TimeoutStopSec")) > SHUTDOWN_TIMEOUT + EXIT_TIMEOUT


@pytest.mark.parametrize(
    "option",
    [
        "DeviceAllow",  # cameras, serial ports and /dev/gpiochip
        "DevicePolicy",
        "MemoryDenyWriteExecute",  # engines compile at run time
        "NoNewPrivileges",  # sudo in the setup of modules
        "PrivateDevices",
        "ProtectClock",  # closes all devices but the clock
        "ProtectHome",  # modules under /home
        "ProtectKernelTunables",  # GPIO and PWM in /sys
        "ProtectSystem",  # apt in the setup of modules; saving the configuration in /etc
        "RestrictRealtime",  # control loops
    ],
)
def test_options_that_break_devices_or_modules_are_not_set(option: str) -> None:
    assert f"\n{option}=" not in UNIT
