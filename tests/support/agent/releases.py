"""Small releases of a server and an agent, which behave well or badly as a test wants."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import zipfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cogwork.agent.release.archive import write_archive
from cogwork.agent.release.manifest import FileEntry, ReleaseManifest
from cogwork.agent.slots.installer import REQUIREMENTS
from cogwork.agent.slots.interpreter import PYTHON
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product

GOOD_SERVER = """
import http.server, json, os, sys, threading

if "-version" in sys.argv:
    print("cogwork-server", VERSION)
    raise SystemExit(BROKEN_VERSION)
exec(AT_START)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        exec(AT_REQUEST)
        allowed = {"restart_allowed": True, "reason": "no sensor"}
        try:
            allowed |= json.loads(open(os.environ["ALLOWED_FILE"]).read())
        except (KeyError, OSError):
            pass
        body = json.dumps({"version": VERSION, **allowed}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
path = os.environ["COGWORK_SERVING_FILE"]
with open(path + ".new", "w") as file:
    json.dump({"pid": os.getpid(), "url": "http://127.0.0.1:%d" % server.server_port}, file)
os.replace(path + ".new", path)
server.serve_forever()
"""


QUICK_PIP = """
import os, pathlib, sys, sysconfig, zipfile

assert {"install", "--no-index", "--no-deps", "--require-hashes"} <= {*sys.argv}, sys.argv
assert "SECRET" not in os.environ
links = pathlib.Path(sys.argv[sys.argv.index("--find-links") + 1])
for wheel in links.glob("cogwork-*.whl"):
    zipfile.ZipFile(wheel).extractall(sysconfig.get_path("purelib"))
"""


class ReleaseMaker:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pip = PIP
        directory.mkdir(parents=True, exist_ok=True)
        self.key = Ed25519PrivateKey.generate()

    def use_quick_pip(self, source: str = QUICK_PIP) -> None:
        """Make releases whose pip is this program: the real one takes seconds."""
        self.pip = self.directory / "pip-1.0-py3-none-any.whl"
        with zipfile.ZipFile(self.pip, "w") as wheel:
            wheel.writestr("pip/__main__.py", source)

    def public_key(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def make_server(
        self,
        version: str,
        *,
        at_start: str = "",
        at_request: str = "",
        exit_code: int = 0,
        minimum_version: str | None = None,
    ) -> Path:
        """`at_start` and `at_request` are run by the server."""
        constants = (
            f"VERSION, AT_START, AT_REQUEST = {version!r}, {at_start!r}, {at_request!r}\n"
            f"BROKEN_VERSION = {exit_code}\n"
        )
        source = constants + GOOD_SERVER
        return self.make(Product.SERVER, version, source, minimum_version=minimum_version)

    def make(
        self,
        product: Product,
        version: str,
        source: str,
        *,
        platform: str = PLATFORM,
        python: str = PYTHON,
        key: Ed25519PrivateKey | None = None,
        minimum_version: str | None = None,
    ) -> Path:
        work = self.directory / f".{product}-{version}"
        work.mkdir(parents=True, exist_ok=True)
        wheel = make_wheel(work, product, version, source)
        requirements = work / REQUIREMENTS
        requirements.write_text(f"cogwork=={version} --hash=sha256:{_sha256(wheel)}\n")
        files = {
            REQUIREMENTS: requirements,
            f"wheels/{wheel.name}": wheel,
            f"wheels/{self.pip.name}": self.pip,
        }
        entries = {
            name: FileEntry(path.stat().st_size, _sha256(path)) for name, path in files.items()
        }
        manifest = ReleaseManifest(
            product, version, platform, python, 10_000_000, entries, minimum_version
        )
        archive = self.directory / manifest.archive_name
        signature = (key or self.key).sign(manifest.encode())
        write_archive(archive, manifest, signature, files, 0)
        return archive


def make_wheel(directory: Path, product: Product, version: str, source: str) -> Path:
    info = f"cogwork-{version}.dist-info"
    contents = {
        "cogwork/__init__.py": "",
        f"cogwork/{product}/__init__.py": "",
        f"cogwork/{product}/main.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: cogwork\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={_record_hash(text)},{len(text.encode())}\n"
        for name, text in contents.items()
    )
    wheel = directory / f"cogwork-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**contents, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            archive.writestr(name, text)
    return wheel


def _find_pip() -> Path:
    """Return the wheel of pip that comes with Python."""
    found = [*Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")]
    found += Path("/usr/share/python-wheels").glob("pip-*.whl")  # Debian keeps it there
    return found[0]


PIP = _find_pip()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _record_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
