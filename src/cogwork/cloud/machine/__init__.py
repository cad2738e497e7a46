"""What machines call: their configuration, their logs, and what concerns their connection."""
