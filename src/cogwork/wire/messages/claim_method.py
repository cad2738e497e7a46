"""The method that gives an owner a short code with which a machine can join the cloud.

`Create` takes the ID of a part and returns a claim code (both google.protobuf.StringValue). The
machine sends the code to `CLAIM_PATH` by HTTP, as JSON `{"code": "…"}`, and gets the configuration
file with which it joins. A code works once, and expires after `CLAIM_LIFETIME`.
"""

from __future__ import annotations

from typing import Final

CLAIM_SERVICE: Final = "cogwork.cloud.v1.ClaimService"
CREATE_CLAIM: Final = f"/{CLAIM_SERVICE}/Create"
CLAIM_PATH: Final = "/api/cogwork/claim"
CLAIM_LIFETIME: Final = 15 * 60
"""Lifetime of a claim code in seconds."""
