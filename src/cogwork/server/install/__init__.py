"""Options `-aix-install` and `-aix-uninstall`: install the server as a systemd service."""
