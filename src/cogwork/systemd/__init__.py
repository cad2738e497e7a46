"""systemd: its commands, and the protocol by which services report to it."""
