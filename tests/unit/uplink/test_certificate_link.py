"""The certificate that a cloud issues: stored, renewed in time, and kept when the cloud fails."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trustme
from tests.support.cloud.scripted_cloud import ScriptedCloud
from viam.gen.app.v1.robot_pb2 import CertificateResponse

from cogwork.core.clock import ManualClock
from cogwork.serving.certificate import read_certificate
from cogwork.uplink.certificate_link import CertificateLink
from cogwork.uplink.errors import CloudUnavailable

NAME = "press.hall.fleet.test"
AUTHORITY = trustme.CA()


def issue(name: str = NAME) -> CertificateResponse:
    issued = AUTHORITY.issue_cert(name)
    return CertificateResponse(
        tls_certificate=issued.cert_chain_pems[0].bytes().decode(),
        tls_private_key=issued.private_key_pem.bytes().decode(),
    )


class Keeping:
    def __init__(self, file: Path) -> None:
        self.file, self.cloud, self.used = file, ScriptedCloud(), list[Path]()
        self.cloud.answer = issue()
        self.clock = ManualClock()
        self.link = CertificateLink(file, self.cloud.client, "part", self.clock, self.used.append)

    async def set_life_left(self, part: float) -> None:
        """Move the clock to where this part of the certificate's lifetime is left."""
        found = read_certificate(self.file, self.file)
        at = found.valid_until - part * (found.valid_until - found.valid_from)
        await self.clock.advance(at - self.clock.time())

    async def renew(self, name: str = NAME) -> int:
        """Return how often the cloud was asked."""
        before = len(self.cloud.requests)
        await self.link.renew(name, 1)
        return len(self.cloud.requests) - before


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    return Keeping(tmp_path / "certificate.pem")


async def test_first_certificate_is_used_and_private(keeping: Keeping) -> None:
    await keeping.link.use_stored()
    assert keeping.used == []
    assert await keeping.renew() == 1
    assert keeping.used == [keeping.file]
    assert keeping.file.stat().st_mode & 0o777 == 0o600
    assert NAME in read_certificate(keeping.file, keeping.file).names


async def test_certificate_of_an_earlier_start_is_used(keeping: Keeping) -> None:
    await keeping.renew()
    keeping.used.clear()
    await keeping.link.use_stored()
    assert keeping.used == [keeping.file]


@pytest.mark.parametrize(("left", "asked"), [(0.9, 0), (0.34, 0), (0.33, 1), (-0.1, 1)])
async def test_certificate_is_renewed_in_the_last_third_of_its_life(
    keeping: Keeping, left: float, asked: int
) -> None:
    await keeping.renew()
    await keeping.set_life_left(left)
    assert await keeping.renew() == asked


async def test_renamed_machine_gets_another_one(keeping: Keeping) -> None:
    await keeping.renew()
    await keeping.set_life_left(0.9)
    keeping.cloud.answer = issue("saw.hall.fleet.test")
    assert await keeping.renew("saw.hall.fleet.test") == 1


@pytest.mark.parametrize(
    "answer", [CloudUnavailable("it is away"), CertificateResponse()], ids=["away", "none yet"]
)
async def test_certificate_stays_while_there_is_no_new_one(
    keeping: Keeping,
    answer: CertificateResponse | CloudUnavailable,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await keeping.renew()
    kept = keeping.file.read_bytes()
    await keeping.set_life_left(0.1)
    keeping.cloud.answer = answer
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await keeping.renew()
    assert keeping.file.read_bytes() == kept
    (warning,) = caplog.messages  # once, until it is solved
    assert "no new TLS certificate" in warning
