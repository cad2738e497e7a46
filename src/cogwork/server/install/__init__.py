"""`-aix-install` and `-aix-uninstall`: the server as a service of systemd."""
