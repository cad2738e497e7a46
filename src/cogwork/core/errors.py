"""What can go wrong, as a person should hear it.

CogworkError
├── InvalidName     a name, API or model that cannot be read
├── Unreadable      a configuration file that is not there, or not text (config/file.py)
└── DamagedCopy     a last-known-good copy that is not what was written (config/last_good.py)
"""


class CogworkError(Exception):
    """Anything Cogwork can explain to a person."""

    status = "INTERNAL"
    """The gRPC status a client gets with the words."""


class InvalidName(CogworkError, ValueError):
    """The text is not a resource name, an API or a model."""

    status = "INVALID_ARGUMENT"
