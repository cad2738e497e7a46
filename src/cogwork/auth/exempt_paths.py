"""The paths that clients may call without a login, for all transports."""

from __future__ import annotations

from typing import Final

LOGIN_PATH: Final = "/rpc/v1/authenticate"
"""The HTTP path of the login."""
EXEMPT_METHODS: Final = frozenset({"/proto.rpc.v1.AuthService/Authenticate"})
"""gRPC methods without a login: the login itself."""
EXEMPT_PAGES: Final = frozenset({LOGIN_PATH, "/restart_status"})
"""HTTP paths without a login. /restart_status answers only clients on the same computer. The files
of the control page (`control/static_site.py`) need no login either, because they are the same on
every machine."""
