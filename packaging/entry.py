"""Entry point of the executable, equivalent to the wheel's `cogwork-server`."""

from cogwork.server.main import run

run()
