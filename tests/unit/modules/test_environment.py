from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from cogwork.modules.environment import (
    CloudIds,
    module_argv,
    module_data_directory,
    module_environment,
)
from cogwork.subprocesses.orphans import MARK_VARIABLE


def make_environment(
    base: Mapping[str, str] | None = None,
    configured: Mapping[str, str] | None = None,
    module_id: str = "",
    cloud: CloudIds | None = None,
    tracing: bool = False,
    withheld: Collection[str] = (),
    clean: bool = False,
) -> dict[str, str]:
    return module_environment(
        base or {},
        name="acme",
        module_id=module_id,
        home=Path("/home/me/.cogwork"),
        data=Path("/data/acme"),
        root=Path("/opt/acme"),
        address="/run/acme.sock",
        configured=configured or {},
        cloud=cloud,
        tracing=tracing,
        withheld=withheld,
        clean=clean,
    )


BASE_VARIABLES = {
    "VIAM_HOME": "/home/me/.cogwork",
    "VIAM_MODULE_DATA": "/data/acme",
    "VIAM_MODULE_NAME": "acme",
    "VIAM_MODULE_ROOT": "/opt/acme",
    "VIAM_MODULE_ADDRESS": "/run/acme.sock",
}


def test_local_module_gets_the_base_variables() -> None:
    assert make_environment() == BASE_VARIABLES


def test_registry_module_gets_its_id() -> None:
    assert make_environment(module_id="acme:arm") == {
        **BASE_VARIABLES,
        "VIAM_MODULE_ID": "acme:arm",
    }


def test_configured_variables_override_ours_and_inherited_ones() -> None:
    variables = make_environment(
        {"PATH": "/bin", "VIAM_HOME": "old", "A": "1"}, {"A": "2", "VIAM_MODULE_ROOT": "/x"}
    )

    assert variables == {**BASE_VARIABLES, "PATH": "/bin", "A": "2", "VIAM_MODULE_ROOT": "/x"}


def test_cloud_machine_passes_its_known_ids() -> None:
    ids = CloudIds("org", "location", "a.b.c", "machine", "part", "key-id", "key")

    assert make_environment(cloud=ids, tracing=True) == {
        **BASE_VARIABLES,
        "VIAM_PRIMARY_ORG_ID": "org",
        "VIAM_LOCATION_ID": "location",
        "VIAM_MACHINE_FQDN": "a.b.c",
        "VIAM_MACHINE_ID": "machine",
        "VIAM_MACHINE_PART_ID": "part",
        "VIAM_API_KEY_ID": "key-id",
        "VIAM_API_KEY": "key",
        "VIAM_MODULE_TRACING": "1",
    }
    assert make_environment(cloud=CloudIds(machine_id="m")) == {
        **BASE_VARIABLES,
        "VIAM_MACHINE_ID": "m",
    }


def test_variables_of_the_server_are_not_inherited() -> None:
    base = {
        "PYTHONHOME": "/bundle",
        "PYTHONPATH": "/bundle/lib",
        "LD_LIBRARY_PATH": "/bundle/so",
        "LD_LIBRARY_PATH_ORIG": "/opt/so",
        "NOTIFY_SOCKET": "/run/systemd/notify",
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        "GRPC_VERBOSITY": "NONE",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
    }

    assert make_environment(base) == {**BASE_VARIABLES, "LD_LIBRARY_PATH": "/opt/so"}


def test_variables_of_the_user_are_inherited() -> None:
    base = {"PYTHONPATH": "/mine", "GRPC_VERBOSITY": "DEBUG", "VIRTUAL_ENV": "/venv"}

    assert make_environment(base) == {**BASE_VARIABLES, **base}
    assert make_environment({}, {"PYTHONHOME": "/theirs"})["PYTHONHOME"] == "/theirs"


def test_module_argv() -> None:
    assert module_argv("/a", "/s") == ("/a", "/s")
    assert module_argv("/a", "/s", "debug") == ("/a", "/s", "--log-level=debug")
    assert module_argv("/a", "127.0.0.1:5", "info", tcp=True) == (
        "/a",
        "127.0.0.1:5",
        "--log-level=info",
        "--tcp-mode",
    )


def test_module_data_directory() -> None:
    assert module_data_directory(Path("/h"), "", "acme") == Path("/h/module-data/local/acme")
    assert module_data_directory(Path("/h"), "part", "acme") == Path("/h/module-data/part/acme")


def test_secret_variables_are_withheld() -> None:
    base = {"DB_PASSWORD": "hunter2", "OTHER": "1", "HOME": "/home/me"}
    assert make_environment(base, withheld={"DB_PASSWORD", "HOME"}) == {
        **BASE_VARIABLES,
        "OTHER": "1",
        "HOME": "/home/me",
    }


def test_configured_secret_variable_is_not_withheld() -> None:
    variables = make_environment({"KEY": "a"}, {"KEY": "a"}, withheld={"KEY"}, clean=True)
    assert variables == {**BASE_VARIABLES, "KEY": "a"}


def test_credentials_of_the_server_are_withheld() -> None:
    base = {
        "COGWORK_API_KEY": "a",
        "COGWORK_CLOUD_SECRET": "b",
        "CREDENTIALS_DIRECTORY": "/run/credentials",
        "COGWORK_HOME": "/home",
        "ACME_API_KEY": "c",
    }
    assert make_environment(base) == {
        **BASE_VARIABLES,
        "COGWORK_HOME": "/home",
        "ACME_API_KEY": "c",
    }


def test_clean_environment_has_the_basic_variables() -> None:
    base = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LANG": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
        "TMPDIR": "/tmp",
        "USER": "me",
        MARK_VARIABLE: "1.2.3",
    }
    variables = make_environment(
        {**base, "DISPLAY": ":0", "PYTHONPATH": "/x"}, {"A": "1"}, clean=True
    )
    assert variables == {**BASE_VARIABLES, **base, "A": "1"}
