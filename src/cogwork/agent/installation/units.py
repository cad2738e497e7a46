"""The systemd units of the agent and of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cogwork.agent.slots.layout import Layout
from cogwork.agent.supervision.systemd_server import SERVING_FILE
from cogwork.core.versions.product import Product
from cogwork.core.versions.update_progress import PROGRESS_VARIABLE

AGENT_SERVICE: Final = "cogwork-agent.service"
DATA: Final = Path("/var/lib/cogwork")
ORIGIN: Final = "Written by `cogwork-agent install`"

_AGENT: Final = """\
# {origin}, which replaces it when it is run again.
# Change it with: systemctl edit cogwork-agent
[Unit]
Description=Cogwork agent, which keeps the machine server current
After=network.target
StartLimitIntervalSec=0

[Service]
# The launcher is the main process. It is ready when the agent shows that it is alive.
Type=notify
NotifyAccess=main
ExecStart={python} -I {root}/launcher.pyz {root}
Restart=always
RestartSec=5
# A version that does not start is tried three times before its predecessor is.
TimeoutStartSec=10min
TimeoutStopSec=45
# The launcher ends an agent that hangs; this is for a launcher that does.
WatchdogSec=60
# The server is a service of its own, and goes on while the agent is replaced.
KillMode=mixed
LockPersonality=yes
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
"""

_SERVER: Final = """\
# {origin}, which replaces it when it is run again.
# Change it with: systemctl edit cogwork-server
[Unit]
Description=Cogwork machine server
After=network.target
# The agent decides how often it starts the server.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
User={user}
{capabilities}Environment=COGWORK_HOME={data}
Environment=COGWORK_SERVING_FILE={serving}
Environment={progress_variable}={progress}
EnvironmentFile=-/etc/default/cogwork-server
ExecStart={root}/run-server
# The agent starts it again, with the version that works.
Restart=no
TimeoutStartSec=10min
TimeoutStopSec=75
WatchdogSec=30
KillMode=mixed
RuntimeDirectory=cogwork
StateDirectory=cogwork
StateDirectoryMode=0700
Delegate=yes
OOMPolicy=continue
LockPersonality=yes
"""
_SCRIPT: Final = """\
#!/bin/sh
# Not through the link: after an update, the old version would import modules of the new one.
exec "$(readlink -f {root}/current-server)/bin/python" -I -m {module} -config {config}
"""
_CAPABILITIES: Final = """\
# Instead of root: low ports, raw sockets, and priorities for motors and cameras.
AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_NET_RAW CAP_SYS_NICE
"""


def format_agent_unit(python: Path, root: Path) -> str:
    return _AGENT.format(origin=ORIGIN, python=python, root=root)


def format_server_script(root: Path, config: Path) -> str:
    """Return the script that starts the current version of the server."""
    return _SCRIPT.format(root=root, config=config, module=Product.SERVER.module)


def read_user(server_unit: str) -> str | None:
    """Return the user in the text of a unit; None if the agent has not written the unit."""
    lines = server_unit.splitlines() if ORIGIN in server_unit else []
    return next((each.removeprefix("User=") for each in lines if each.startswith("User=")), None)


def format_server_unit(root: Path, data: Path, user: str) -> str:
    capabilities = "" if user == "root" else _CAPABILITIES
    return _SERVER.format(
        origin=ORIGIN,
        root=root,
        data=data,
        user=user,
        capabilities=capabilities,
        serving=SERVING_FILE,
        progress_variable=PROGRESS_VARIABLE,
        progress=Layout(root).progress,
    )
