from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from cogwork.modules.environment import (
    CloudIds,
    module_argv,
    module_data_directory,
    module_environment,
)
from cogwork.modules.orphans import MARK_VARIABLE


def environment(
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


TOLD = {
    "VIAM_HOME": "/home/me/.cogwork",
    "VIAM_MODULE_DATA": "/data/acme",
    "VIAM_MODULE_NAME": "acme",
    "VIAM_MODULE_ROOT": "/opt/acme",
    "VIAM_MODULE_ADDRESS": "/run/acme.sock",
}


def test_a_local_module_is_told_who_it_is() -> None:
    assert environment() == TOLD


def test_a_registry_module_is_told_its_id() -> None:
    assert environment(module_id="acme:arm") == {**TOLD, "VIAM_MODULE_ID": "acme:arm"}


def test_what_is_configured_wins_over_what_is_told_and_that_over_what_is_inherited() -> None:
    got = environment(
        {"PATH": "/bin", "VIAM_HOME": "old", "A": "1"}, {"A": "2", "VIAM_MODULE_ROOT": "/x"}
    )

    assert got == {**TOLD, "PATH": "/bin", "A": "2", "VIAM_MODULE_ROOT": "/x"}


def test_in_a_cloud_it_is_told_of_the_machine_as_far_as_that_is_known() -> None:
    ids = CloudIds("org", "location", "a.b.c", "machine", "part", "key-id", "key")

    assert environment(cloud=ids, tracing=True) == {
        **TOLD,
        "VIAM_PRIMARY_ORG_ID": "org",
        "VIAM_LOCATION_ID": "location",
        "VIAM_MACHINE_FQDN": "a.b.c",
        "VIAM_MACHINE_ID": "machine",
        "VIAM_MACHINE_PART_ID": "part",
        "VIAM_API_KEY_ID": "key-id",
        "VIAM_API_KEY": "key",
        "VIAM_MODULE_TRACING": "1",
    }
    assert environment(cloud=CloudIds(machine_id="m")) == {**TOLD, "VIAM_MACHINE_ID": "m"}


def test_what_is_meant_for_the_server_alone_is_not_handed_on() -> None:
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

    assert environment(base) == {**TOLD, "LD_LIBRARY_PATH": "/opt/so"}


def test_what_a_person_set_is_handed_on() -> None:
    base = {"PYTHONPATH": "/mine", "GRPC_VERBOSITY": "DEBUG", "VIRTUAL_ENV": "/venv"}

    assert environment(base) == {**TOLD, **base}
    assert environment({}, {"PYTHONHOME": "/theirs"})["PYTHONHOME"] == "/theirs"


def test_arguments() -> None:
    assert module_argv("/a", "/s") == ("/a", "/s")
    assert module_argv("/a", "/s", "debug") == ("/a", "/s", "--log-level=debug")
    assert module_argv("/a", "127.0.0.1:5", "info", tcp=True) == (
        "/a",
        "127.0.0.1:5",
        "--log-level=info",
        "--tcp-mode",
    )


def test_where_its_data_is() -> None:
    assert module_data_directory(Path("/h"), "", "acme") == Path("/h/module-data/local/acme")
    assert module_data_directory(Path("/h"), "part", "acme") == Path("/h/module-data/part/acme")


def test_variables_that_are_put_into_secrets_are_withheld() -> None:
    base = {"DB_PASSWORD": "hunter2", "OTHER": "1", "HOME": "/home/me"}
    assert environment(base, withheld={"DB_PASSWORD", "HOME"}) == {
        **TOLD,
        "OTHER": "1",
        "HOME": "/home/me",
    }


def test_one_that_the_module_itself_is_given_is_not() -> None:
    got = environment({"KEY": "a"}, {"KEY": "a"}, withheld={"KEY"}, clean=True)
    assert got == {**TOLD, "KEY": "a"}


def test_the_credentials_of_the_server_are_withheld() -> None:
    base = {
        "COGWORK_API_KEY": "a",
        "COGWORK_CLOUD_SECRET": "b",
        "CREDENTIALS_DIRECTORY": "/run/credentials",
        "COGWORK_HOME": "/home",
        "ACME_API_KEY": "c",
    }
    assert environment(base) == {**TOLD, "COGWORK_HOME": "/home", "ACME_API_KEY": "c"}


def test_a_clean_one_has_what_every_program_needs() -> None:
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
    got = environment({**base, "DISPLAY": ":0", "PYTHONPATH": "/x"}, {"A": "1"}, clean=True)
    assert got == {**TOLD, **base, "A": "1"}
