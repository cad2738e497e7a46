"""`cogwork module new` as an author runs it: the project works as a module and in-process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from tests.support.machine.running import DEADLINE

from cogwork.cli.main import main
from cogwork.cli.module.new import TEMPLATES, CannotCreateModule, plan_scaffold, render_files
from cogwork.graph.public_apis import PUBLIC_APIS
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.component.motor.v1 import motor_pb2 as motor  # noqa: E402
from viam.proto import module as pb  # noqa: E402
from viam.proto.app.robot import ComponentConfig  # noqa: E402

APIS = [
    str(api)
    for api in PUBLIC_APIS
    if api.subtype not in ("base_remote_control", "data_manager", "shell", "video")
]


def run_pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.long
@pytest.mark.parametrize("api", ["motor", "sensor"])
def test_new_project_passes_its_own_tests(
    api: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my-demo"
    assert main(["module", "new", "my-demo", "--directory", str(folder), "--api", api]) == 0
    first, *commands = capsys.readouterr().out.splitlines()
    assert first == f"created {folder} with acme:my-demo:{api}, a {api}. Next steps:"
    assert [line.split("  ")[1] for line in commands] == [
        f"cogwork module run {folder}",
        "cogwork call "
        + ("motor set_power '{\"power_pct\": 0.5}'", "sensor get_readings")[api == "sensor"],
        f"python -m pytest {folder}",
    ]
    done = run_pytest_in(folder)
    assert done.returncode == 0, done.stdout
    assert main(["config", "check", str(folder / "machine.json")]) == 0


def test_new_project_describes_module_and_entry_point(tmp_path: Path) -> None:
    arguments = ["--directory", str(tmp_path / "it"), "--model", "corp:wheels:left"]
    assert main(["module", "new", "cart", *arguments]) == 0
    folder = tmp_path / "it"
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["module_id"] == "corp:cart"
    assert meta["models"] == [{"api": "rdk:component:motor", "model": "corp:wheels:left"}]
    assert os.access(folder / meta["entrypoint"], os.X_OK)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["cogwork.models"] == {"cart": "cart.motor:WheelsLeft"}
    as_module = json.loads((folder / "machine.json").read_text())
    in_process = json.loads((folder / "machine-in-process.json").read_text())
    components = [{"name": "motor", "api": "rdk:component:motor", "model": "corp:wheels:left"}]
    assert as_module == {
        "modules": [{"name": "cart", "executable_path": str(folder / "run.sh")}],
        "components": components,
    }
    assert in_process == {
        "network": {"bind_address": "localhost:8081"},
        "components": components,
    }


@contextlib.contextmanager
def start_module(folder: Path, socket: Path) -> Iterator[grpc.Channel]:
    """Start it as a server does, but without a machine to call back."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with (
        subprocess.Popen(
            [folder / "run.sh", str(socket)],
            env={**os.environ, "PATH": path, "VIAM_NO_MODULE_PARENT": "true"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
        grpc.insecure_channel(f"unix:{socket}") as channel,
    ):
        try:
            yield channel
        finally:
            process.terminate()
            try:
                process.wait(1)
            except subprocess.TimeoutExpired:
                # With Python 3.12, the SDK waits for its clients and obeys only the second signal.
                process.terminate()
                process.wait(DEADLINE)


def call(channel: grpc.Channel, method: str, request: Any, reply: Any) -> Any:
    call = channel.unary_unary(
        method,
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return call(request, timeout=DEADLINE, wait_for_ready=True)


def test_new_module_can_be_called(tmp_path: Path) -> None:
    assert main(["module", "new", "cart", "--directory", str(tmp_path / "cart")]) == 0
    service = "/viam.module.v1.ModuleService"
    full = ComponentConfig(
        name="m", api="rdk:component:motor", model="acme:cart:motor", attributes=Struct()
    )
    wrong = ComponentConfig()
    wrong.CopyFrom(full)
    wrong.attributes["max_rpm"] = -1
    with start_module(tmp_path / "cart", tmp_path / "s") as channel:
        ready = call(channel, f"{service}/Ready", pb.ReadyRequest(), pb.ReadyResponse)
        assert ready.ready
        assert [[*each.models] for each in ready.handlermap.handlers] == [["acme:cart:motor"]]
        request: Any = pb.ValidateConfigRequest(config=wrong)
        with pytest.raises(grpc.RpcError) as refused:
            call(channel, f"{service}/ValidateConfig", request, pb.ValidateConfigResponse)
        assert '"max_rpm" must be a number greater than 0, not -1.0' in str(refused.value)
        request = pb.AddResourceRequest(config=full)
        call(channel, f"{service}/AddResource", request, pb.AddResourceResponse)
        motors = "/viam.component.motor.v1.MotorService"
        power = motor.SetPowerRequest(name="m", power_pct=0.5)
        call(channel, f"{motors}/SetPower", power, motor.SetPowerResponse)
        answer = call(
            channel,
            f"{motors}/IsPowered",
            motor.IsPoweredRequest(name="m"),
            motor.IsPoweredResponse,
        )
        assert (answer.is_on, answer.power_pct) == (True, 0.5)
        power = motor.SetPowerRequest(name="m", power_pct=5)
        with pytest.raises(grpc.RpcError) as refused:
            call(channel, f"{motors}/SetPower", power, motor.SetPowerResponse)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert refused.value.details() == "power must be between -1 and 1, not 5"


@pytest.mark.long
def test_installed_project_provides_its_model(tmp_path: Path) -> None:
    assert main(["module", "new", "cart", "--directory", str(tmp_path / "cart")]) == 0
    install = ("pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation")
    target = ("-t", str(tmp_path / "installed"))
    subprocess.run(
        [sys.executable, "-m", *install, *target, str(tmp_path / "cart")], check=True, timeout=50
    )
    checked = subprocess.run(
        [sys.executable, "-m", "cogwork.cli.main", "config", "check", "machine-in-process.json"],
        cwd=tmp_path / "cart",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout == "machine-in-process.json is valid: 1 resource\n", checked.stderr


_EVERY_METHOD = """
import json, sys, types
from cogwork.resource.sdk import clean_import as sdk
from viam.proto.app.robot import ComponentConfig

for api, module, source, kind, test in json.load(sys.stdin):
    space = {"__name__": module}
    exec(source, space)
    made = space[kind]
    assert not made.__abstractmethods__, (api, made.__abstractmethods__)
    assert made.new(ComponentConfig(name="it"), {}).name == "it"
    sys.modules[module] = types.ModuleType(module)
    vars(sys.modules[module]).update(space)
    exec(test, space)
    assert space[f"Test{kind}"].api == api, api
"""


def test_scaffolds_of_all_apis_have_every_method_and_a_contract_test() -> None:
    """Run it in a child process: the SDK remembers every class."""
    told = []
    for api in APIS:
        plan = plan_scaffold("thing", api, None)
        files = render_files(plan, Path("/nowhere"))
        source, test = files[f"thing/{plan.file}.py"], files[f"tests/test_{plan.file}.py"]
        told.append((api, f"thing.{plan.file}", source, plan.class_name, test))
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_METHOD],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr


def test_unimplemented_methods_raise_not_implemented() -> None:
    source = render_files(plan_scaffold("eye", "camera", None), Path("/nowhere"))["eye/camera.py"]
    assert "    async def get_images(self, *, filter_source_names=None, **_):\n" in source
    assert '        """Get the next point cloud from the camera."""\n' in source
    assert '        raise not_implemented("get_point_cloud")\n' in source


@pytest.mark.parametrize("api", ["power_sensor", "movement_sensor", "sensor"])
def test_get_readings_is_generated_once(api: str) -> None:
    """Some classes of the SDK have a `get_readings` that returns nothing."""
    files = render_files(plan_scaffold("it", api, None), Path("/nowhere"))
    assert files[f"it/{api}.py"].count("    async def get_readings(self, ") == 1


def test_missing_library_of_the_sdk_is_named(tmp_path: Path) -> None:
    program = """
import sys
from cogwork.cli.main import main

sys.modules["numpy"] = None
sys.exit(main(["module", "new", "it", "--api", "mlmodel"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("the SDK requires numpy for this API; run: pip install numpy\n")
    assert "Traceback" not in done.stderr


def test_existing_files_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(["module", "new", "demo", "--directory", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path} already exists; choose another name or set --directory\n"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]
    assert main(["module", "new", "demo", "--directory", str(tmp_path / "thesis.txt" / "x")]) == 2
    assert ": Not a directory" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["module", "new", "demo", "--directory", str(tmp_path / "empty")]) == 0


@pytest.mark.parametrize(
    ("name", "api", "model", "words"),
    [
        ("2nd", "motor", None, 'invalid package name "2nd"'),
        ("a/b", "motor", None, 'invalid package name "a/b"'),
        ("class", "motor", None, 'the name "class" is reserved in Python'),
        ("json", "motor", None, 'the name "json" is reserved in Python'),
        ("Tests", "motor", None, 'the name "Tests" is reserved in Python'),
        ("demo", "moter", None, 'no class for the API "moter"; did you mean "motor"?'),
        ("demo", "shell", None, 'no class for the API "shell"'),
        ("demo", "motor", "mine", '"mine" is the name of a built-in model'),
    ],
)
def test_invalid_names_apis_and_models_are_refused(
    name: str, api: str, model: str | None, words: str
) -> None:
    with pytest.raises(CannotCreateModule) as told:
        plan_scaffold(name, api, model)
    assert words in str(told.value)


def test_invalid_model_is_refused_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "new", "demo", "--model", "a:b"]) == 2
    assert capsys.readouterr().err == (
        '"a:b" is not a model; write it like fake or acme:arms:gripper\n'
    )


def test_templates_are_filled_completely() -> None:
    for api in ("motor", "sensor", "arm"):
        for text in render_files(plan_scaffold("demo", api, None), Path("/nowhere")).values():
            assert "@" not in text.replace("@classmethod", "").replace('"$@"', "")
    assert {each.suffix for each in TEMPLATES.iterdir()} == {".txt"}
