"""What can go wrong, as a person should hear it.

CogworkError
├── InvalidName          a name, API or model that cannot be read
├── BuildFailed          a constructor gave up, with its reason
└── DamagedCopy          the last-known-good configuration is not what was written
"""


class CogworkError(Exception):
    """Anything Cogwork can explain to a person."""

    status = "INTERNAL"
    """The gRPC status a client gets with the words."""


class InvalidName(CogworkError, ValueError):
    """The text is not a resource name, an API or a model."""

    status = "INVALID_ARGUMENT"
