"""The lite server stands on `core` and `graph`, where nothing is installed beside Python."""

import subprocess
import sys

PROBE = """
import importlib, pkgutil, sys

FORBIDDEN = {"pydantic", "pydantic_core", "grpc", "grpclib", "numpy", "viam"}

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in FORBIDDEN:
            raise ImportError(f"{name} is not in the standard library")

sys.meta_path.insert(0, Refuse())
try:
    import pydantic
except ImportError:
    pass
else:
    raise SystemExit("the import hook does not work")

for package in ("cogwork.core", "cogwork.net", "cogwork.graph", "cogwork.spatial"):
    home = importlib.import_module(package)
    for module in pkgutil.walk_packages(home.__path__, package + "."):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_core_and_graph_import_without_third_party_packages() -> None:
    probe = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=30, check=False
    )
    assert probe.returncode == 0, probe.stderr
    assert {"cogwork.core.clock", "cogwork.graph.reconciler"} <= set(probe.stdout.split())
