"""The systemd unit file of the server."""

from __future__ import annotations

from pathlib import PurePosixPath

from cogwork.server.install.service_paths import CONFIG, DATA

_TEMPLATE = """\
# {origin}
# Change it with: systemctl edit cogwork-server
[Unit]
Description=Cogwork machine server
Documentation=https://OWNER.github.io/cogwork/guides/install-on-a-machine.html
# Not network-online.target: a machine starts without a network.
After=network.target
# Start again without end: nobody may be near the machine to do it.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
# Modules and shells expect HOME and USER, which systemd sets with User= only.
User=root
Environment=COGWORK_HOME={data}
# Variables that the configuration refers to, such as ${{API_KEY}}.
EnvironmentFile=-/etc/default/cogwork-server
ExecStart={executable} -config {config}
Restart=always
RestartSec=5
# The one-file executable unpacks itself at its first start, which takes minutes on a slow SD card.
TimeoutStartSec=10min
# The server gives itself 60 s to close everything.
TimeoutStopSec=75
# The server ends itself after its event loop hung for 10 s; this is for a server that cannot.
WatchdogSec=30
# The server ends its modules in order. What is left when it has ended is killed.
KillMode=mixed
StateDirectory={state_directory}
StateDirectoryMode=0700
# Lets the server limit memory and processor time of modules. Releases of systemd before 254 ignore
# the second line.
Delegate=yes
DelegateSubgroup=server
# A module that runs out of memory does not end the machine.
OOMPolicy=continue

# Modules use cameras, GPIO in /sys, serial ports, real-time priorities, JIT compilers, sudo, apt.
# Options that take these away are not here; the guide shows a stricter set.
LockPersonality=yes
CapabilityBoundingSet=~CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_BLOCK_SUSPEND CAP_LINUX_IMMUTABLE
CapabilityBoundingSet=~CAP_SYS_PACCT CAP_WAKE_ALARM
RestrictAddressFamilies=~AF_APPLETALK AF_ATMPVC AF_AX25 AF_IPX AF_RDS AF_ROSE AF_TIPC AF_X25
SystemCallFilter=~@cpu-emulation @obsolete @swap
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


def format_unit(
    executable: PurePosixPath,
    origin: str,
    config: PurePosixPath = CONFIG,
    data: PurePosixPath = DATA,
) -> str:
    """Return the unit file. `origin` is a sentence that names the program that wrote the file."""
    return _TEMPLATE.format(
        origin=origin,
        executable=executable,
        config=config,
        data=data,
        state_directory=data.relative_to("/var/lib"),
    )
