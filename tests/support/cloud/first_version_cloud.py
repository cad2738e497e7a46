"""The directory of a cloud as version 0.1 wrote it, for tests of the upgrade."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.cloud.old_records import create_old_records

from cogwork.auth.certificate_authority import create_authority
from cogwork.auth.signing_key import SigningKey
from cogwork.auth.tokens import TokenIssuer
from cogwork.cloud.keys.machine_tokens import PartTokenKey, create_part_token_key

NOW = datetime.datetime(2026, 11, 17, tzinfo=datetime.UTC)


@dataclass
class FirstVersionCloud:
    path: Path
    key: SigningKey = field(default_factory=lambda: SigningKey(Ed25519PrivateKey.generate()))
    part_token_key: PartTokenKey = field(
        default_factory=lambda: PartTokenKey(create_part_token_key())
    )

    def write(self, secrets: int = 1) -> None:
        """Write an organization with a key `k` and a part `p`, each of which has its secret."""
        self.path.mkdir(mode=0o700)
        authority = create_authority(NOW, "Cogwork cloud authority").pem
        pem = self.key.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        files = {
            "signing-key.pem": pem,
            "machine-token-key.pem": self.part_token_key.pem,
            "ca.pem": authority.certificate,
            "ca-key.pem": authority.key,
            "cloud.json": json.dumps({"domain": "fleet.test"}).encode(),
        }
        for name, content in files.items():
            (self.path / name).write_bytes(content)
        with create_old_records(self.path / "records.db") as records:
            records.execute("PRAGMA journal_mode = WAL")
            records.execute("INSERT INTO organization VALUES ('o', 'Acme', NULL, 0)")
            records.execute("INSERT INTO location VALUES ('l', 'o', NULL, 'Hall', 0)")
            records.execute("INSERT INTO machine VALUES ('m', 'o', 'l', 'press', 0, NULL, NULL)")
            records.execute(
                "INSERT INTO part VALUES ('p', 'o', 'm', 'press', 1, '{}', 0, 0, 0, NULL, NULL, "
                "NULL)"
            )
            records.execute(
                "INSERT INTO api_key VALUES ('k', 'o', 'owner', ?, ?, 0)", self._store("key of k")
            )
            records.execute(
                "INSERT INTO role_grant VALUES ('k', 'o', 'organization', 'o', 'owner')"
            )
            for number in range(secrets):
                records.execute(
                    "INSERT INTO secret VALUES (?, 'part', ?, ?, ?, 0)",
                    (
                        f"s{number}",
                        "p" if number == 0 else f"p{number}",
                        *self._store(f"secret {number}"),
                    ),
                )
            records.execute(
                "INSERT INTO secret VALUES ('sl', 'location', 'l', ?, ?, 0)", self._store("hall")
            )
            records.execute("INSERT INTO claim_code VALUES ('digest', 'p', 9000000000000000)")

    def token(self, entity: str, kind: str, secret: str) -> str:
        """Return a token of this cloud."""
        digest = self.key.digest(secret).hex()
        fingerprint = hashlib.sha256(digest.encode()).hexdigest()[:16]
        return TokenIssuer(self.key, "cogwork-cloud").issue(entity, kind, fingerprint, 0)

    def _store(self, text: str) -> tuple[str, str]:
        """Return the digest of a secret, and the sealed secret."""
        derived = HKDF(SHA256(), 32, salt=None, info=b"sealed secrets")
        cipher, nonce = AESGCM(derived.derive(self.key.private.private_bytes_raw())), os.urandom(12)
        sealed = base64.b64encode(nonce + cipher.encrypt(nonce, text.encode(), None)).decode()
        return self.key.digest(text).hex(), sealed
