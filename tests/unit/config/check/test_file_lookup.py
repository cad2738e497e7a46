from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.config.workshop import HOME, REGISTRY

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.schema.codes import MISSING_FILE

Check = Callable[[str], LoadedConfig]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of the configuration file."""
    (tmp_path / "machine").mkdir()
    return tmp_path / "machine"


@pytest.fixture
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "started").mkdir()
    monkeypatch.chdir(tmp_path / "started")
    return tmp_path / "started"


@pytest.fixture
def check(directory: Path) -> Check:
    context = LoadContext(REGISTRY, HOME, {}).in_directory_of(directory / "machine.json")

    return lambda path: load(config(path), context)


def config(label_path: str) -> str:
    vision = {"name": "v", "api": "rdk:service:vision", "model": "test"}
    return json.dumps({"services": [{**vision, "attributes": {"label_path": label_path}}]})


def used(loaded: LoadedConfig) -> str:
    """Return the path that the driver gets."""
    settings: Any = loaded.result.specs[0].settings
    return str(settings.label_path)


def fault(loaded: LoadedConfig) -> tuple[str, str | None]:
    (found,) = (
        each.diagnostic for each in loaded.diagnostics if each.diagnostic.code is MISSING_FILE
    )
    return found.message, found.hint


def test_relative_path_refers_to_the_directory_of_the_file(
    directory: Path, working_directory: Path, check: Check
) -> None:
    for folder in (directory, working_directory):
        (folder / "labels.txt").touch()
    loaded = check("labels.txt")
    assert (used(loaded), loaded.diagnostics) == (str(directory / "labels.txt"), ())


def test_working_directory_is_the_fallback(working_directory: Path, check: Check) -> None:
    (working_directory / "labels.txt").touch()
    loaded = check("labels.txt")
    assert (used(loaded), loaded.diagnostics) == (str(working_directory / "labels.txt"), ())


def test_missing_file_names_the_paths_tried_and_a_similar_file(
    directory: Path, working_directory: Path, check: Check
) -> None:
    (directory / "labels.txt").touch()
    loaded = check("./label.txt")
    assert fault(loaded) == (
        f'file "./label.txt" does not exist (tried {directory}/label.txt and '
        f"{working_directory}/label.txt)",
        'did you mean "./labels.txt"?',
    )
    # The driver waits for the file where the user expects it.
    assert used(loaded) == f"{directory}/label.txt"


def test_similar_file_is_suggested_for_an_absolute_path(directory: Path, check: Check) -> None:
    (directory / "labels.txt").touch()
    assert fault(check(f"{directory}/label.txt")) == (
        f'file "{directory}/label.txt" does not exist',
        f'did you mean "{directory}/labels.txt"?',
    )


def test_missing_folder_leaves_nothing_to_suggest(directory: Path, check: Check) -> None:
    (directory / "machine.json").touch()
    assert fault(check(f"{directory}/nowhere/labels.txt"))[1] == (
        "correct the path, or put the file there"
    )


NO_MATCH = "correct the path, or put the file there"


@pytest.mark.parametrize("is_absolute", [True, False])
def test_files_in_other_directories_are_not_suggested(
    tmp_path: Path, working_directory: Path, check: Check, *, is_absolute: bool
) -> None:
    for folder in (tmp_path, working_directory):
        (folder / "secret.txt").touch()
    (tmp_path / "machine" / "link").symlink_to(tmp_path)
    for path in ("../secre.txt", "secre.txt", "link/secre.txt", "nothing/../../secre.txt"):
        assert fault(check(f"{tmp_path}/machine/{path}" if is_absolute else path))[1] == NO_MATCH


def test_files_are_suggested_in_folders_beneath_the_file(directory: Path, check: Check) -> None:
    (directory / "models").mkdir()
    (directory / "models" / "labels.txt").touch()
    assert fault(check("models/label.txt"))[1] == 'did you mean "models/labels.txt"?'


def test_folder_is_not_suggested_for_a_file(directory: Path, check: Check) -> None:
    (directory / "labels").mkdir()
    assert fault(check("label"))[1] == NO_MATCH


def test_home_directory_is_filled_in(
    tmp_path: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "labels.txt").touch()
    assert used(check("~/labels.txt")) == str(tmp_path / "labels.txt")


def test_configuration_from_a_cloud_uses_the_working_directory(working_directory: Path) -> None:
    (working_directory / "labels.txt").touch()
    loaded = load(config("labels.txt"), LoadContext(REGISTRY, HOME, {}))
    assert (used(loaded), loaded.diagnostics) == ("labels.txt", ())


def test_certificates_are_found_beside_the_file(directory: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (directory / name).touch()
    context = LoadContext(REGISTRY, HOME, {}).in_directory_of(directory / "machine.json")
    network = {"tls_cert_file": "cert.pem", "tls_key_file": "key.pem"}
    loaded = load(json.dumps({"network": network}), context)
    found = loaded.result.config.network
    assert (found.tls_cert_file, found.tls_key_file, loaded.is_refused) == (
        str(directory / "cert.pem"),
        str(directory / "key.pem"),
        False,
    )


def test_model_may_be_a_folder_beside_the_file(directory: Path) -> None:
    (directory / "saved").mkdir()
    context = LoadContext(REGISTRY, HOME, {}).in_directory_of(directory / "machine.json")
    service = {"name": "m", "api": "rdk:service:mlmodel", "model": "tensorflow_cpu"}

    def load_model(path: str) -> LoadedConfig:
        entry = {**service, "attributes": {"model_path": path}}
        return load(json.dumps({"services": [entry]}), context)

    settings: Any = load_model("saved").result.specs[0].settings
    assert settings.model_path == str(directory / "saved")
    assert fault(load_model("savde"))[1] == 'did you mean "saved"?'
