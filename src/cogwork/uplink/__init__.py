"""A machine's side of a cloud: its configuration, certificate, logs and keys."""
