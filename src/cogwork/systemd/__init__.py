"""systemd: `systemctl`, and the notify protocol of services."""
