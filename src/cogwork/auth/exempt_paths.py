"""What clients may call without a login: the one list for all transports."""

from __future__ import annotations

from typing import Final

LOGIN_PATH: Final = "/rpc/v1/authenticate"
"""The login over HTTP."""
EXEMPT_METHODS: Final = frozenset({"/proto.rpc.v1.AuthService/Authenticate"})
"""Methods: the login over gRPC."""
EXEMPT_PAGES: Final = frozenset({LOGIN_PATH, "/restart_status"})
"""HTTP paths. The second is answered on the machine's own computer only. The files of the control
page (`control/static_site.py`) need no login either: they are the same on every machine."""
