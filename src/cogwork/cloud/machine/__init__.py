"""The services that machines call: configuration, logs and connection."""
