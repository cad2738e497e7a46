"""`cogwork config …` as a person or a program runs it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from cogwork.cli.demo.run import DemoEngine, write_config
from cogwork.cli.main import main

GOOD: JsonValue = {
    "components": [{"name": "a", "api": "rdk:component:sensor", "model": "fake"}],
}
BAD: JsonValue = {
    "componets": [],
    "components": [{"name": "a", "api": "rdk:component:sensor", "model": "fkae"}],
}
REFUSED: JsonValue = {"network": {"bind_address": "nowhere"}}


def write_demo_config(directory: Path) -> Path:
    engine = DemoEngine("onnxruntime", "onnx_cpu", "conveyor.onnx")
    return write_config(directory / "demo", engine, "localhost:8080")


@pytest.fixture
def config_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in (("good", GOOD), ("bad", BAD), ("refused", REFUSED)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    (tmp_path / "machine.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "warned.json").write_text('{"network": {"bind_address": ":8080"}}')
    (tmp_path / "latin.json").write_bytes(b'{"revision": "\xe9"}')
    return tmp_path


@pytest.mark.usefixtures("config_files")
class TestCheck:
    @pytest.mark.parametrize(
        ("file", "code", "said"),
        [
            ("good.json", 0, "good.json is valid: 1 resource\n"),
            ("machine.json", 0, "machine.json is valid: 0 resources\n"),
            (
                "bad.json",
                1,
                "2 errors; 0 of 1 resources would run. For details, run: cogwork explain E103\n",
            ),
            (
                "refused.json",
                1,
                "1 error; a machine rejects this file and keeps its configuration.",
            ),
            ("broken.json", 1, "broken.json:1:1  error  expected } to close the object"),
            ("warned.json", 0, "1 warning. For details, run: cogwork explain W502"),
        ],
    )
    def test_check_reports_the_result(
        self, file: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["config", "check", file]) == code
        out, err = capsys.readouterr()
        assert said in out
        assert err == ""

    @pytest.mark.parametrize(
        ("file", "said"),
        [
            ("nowhere.json", "the file does not exist; check the path"),
            (".", "the path is a directory; name a file in it"),
            ("latin.json", "not UTF-8 text: line 1, byte 14"),
            ("good.json/x", "reading failed: Not a directory"),
            ("x" * 300, "reading failed: File name too long"),
        ],
    )
    def test_check_reports_unreadable_files(
        self, file: str, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["config", "check", file]) == 2
        assert capsys.readouterr().out.startswith(f"{file}  error  {said}  [E002]\n")
        assert main(["config", "check", file, "--json"]) == 2
        report = json.loads(capsys.readouterr().out)
        (found,) = report["diagnostics"]
        assert (report["refused"], found["code"], found["message"]) == (True, "E002", said)

    def test_check_reads_standard_input_with_a_dash(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"debug": 5}')))
        assert main(["config", "check", "-"]) == 1
        assert capsys.readouterr().out.startswith("-:1:11  error  expected true or false")

    def test_check_does_not_wait_for_a_pipe(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        assert main(["config", "check", str(pipe)]) == 2
        assert "not a regular file" in capsys.readouterr().out

    def test_check_reads_machine_json_by_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "check"]) == 0
        assert capsys.readouterr().out.startswith("machine.json is valid")

    @pytest.mark.parametrize("file", ["good.json", "bad.json", "refused.json", "broken.json"])
    def test_check_json_lists_diagnostics(
        self, file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code = main(["config", "check", "--json", file])
        report = json.loads(capsys.readouterr().out)
        assert report["file"] == file
        assert report["refused"] == (file in ("refused.json", "broken.json"))
        assert code == (1 if report["diagnostics"] else 0)
        for diagnostic in report["diagnostics"]:
            assert {"code", "severity", "message", "effect", "pointer", "line"} <= diagnostic.keys()

    def test_check_uses_environment_and_home(
        self,
        config_files: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("COGWORK_HOME", str(config_files))
        monkeypatch.setenv("NAME", "a")
        run = config_files / "packages" / "data" / "ml_model" / "acme-x-1" / "run"
        run.parent.mkdir(parents=True)
        run.write_text("")
        text = {
            "packages": [{"name": "x", "package": "acme/x", "version": "1"}],
            "modules": [{"name": "$NAME", "executable_path": "${packages.x}/run"}],
        }
        (config_files / "env.json").write_text(json.dumps(text))
        assert main(["config", "check", "env.json"]) == 0
        assert "is valid" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("programs", "would_run"), [([True], "2"), ([False], "1"), ([True, False], "1 to 2")]
    )
    def test_check_counts_missing_modules_against_their_resources(
        self,
        programs: list[bool],
        would_run: str,
        config_files: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        (config_files / "run").write_text("")
        modules = [
            {"name": f"m{number}", "executable_path": str(config_files / ("run" if here else "no"))}
            for number, here in enumerate(programs)
        ]
        arm = {"name": "arm", "api": "rdk:component:arm", "model": "acme:arms:one"}
        sensor = {"name": "a", "api": "rdk:component:sensor", "model": "fake"}
        config = {"enable_web_profile": True, "modules": modules, "components": [arm, sensor]}
        (config_files / "modules.json").write_text(json.dumps(config))
        assert main(["config", "check", "modules.json"]) == (0 if all(programs) else 1)
        assert f"; {would_run} of 2 resources would run." in capsys.readouterr().out

    def test_check_counts_missing_files_against_resources_and_dependents(
        self, config_files: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        camera = {
            "name": "film",
            "api": "rdk:component:camera",
            "model": "image_file",
            "attributes": {"color_image_file_path": str(config_files / "gone.png")},
        }
        turned = {
            "name": "turned",
            "api": "rdk:component:camera",
            "model": "transform",
            "attributes": {"source": "film", "pipeline": [{"type": "rotate"}]},
        }
        sensor = {"name": "a", "api": "rdk:component:sensor", "model": "fake"}
        config = {"components": [camera, turned, sensor]}
        (config_files / "gone.json").write_text(json.dumps(config))
        assert main(["config", "check", "gone.json"]) == 1
        assert "1 error; 1 of 3 resources would run." in capsys.readouterr().out

    def test_check_finds_files_beside_the_configuration_file(
        self,
        config_files: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        camera = {
            "name": "film",
            "api": "rdk:component:camera",
            "model": "image_file",
            "attributes": {"color_image_file_path": "belt.png"},
        }
        (config_files / "film.json").write_text(json.dumps({"components": [camera]}))
        (config_files / "belt.png").touch()
        (config_files / "elsewhere").mkdir()
        monkeypatch.chdir(config_files / "elsewhere")
        assert main(["config", "check", "../film.json"]) == 0
        (config_files / "belt.png").rename(config_files / "belts.png")
        assert main(["config", "check", "../film.json"]) == 1
        assert 'did you mean "belts.png"?' in capsys.readouterr().out

    def test_check_counts_missing_libraries_against_resources_and_dependents(
        self,
        config_files: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        file = write_demo_config(config_files)
        capsys.readouterr()
        assert main(["config", "check", str(file)]) == 0
        assert capsys.readouterr().out == (
            "rdk:service:mlmodel/parts cannot run on this computer: onnxruntime is not installed; "
            "install it with `pip install 'cogwork[onnx]'`\n"
            f"{file} is valid; 1 of 4 resources would run on this computer\n"
        )
        assert main(["config", "check", str(file), "--json"]) == 0
        (missing,) = json.loads(capsys.readouterr().out)["missing_libraries"]
        assert missing["resource"] == "rdk:service:mlmodel/parts"
        assert "onnxruntime is not installed" in missing["message"]

    def test_check_prints_no_escape_codes_without_a_terminal(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main(["config", "check", "bad.json"])
        assert "\x1b" not in capsys.readouterr().out


@pytest.mark.usefixtures("config_files")
class TestDiff:
    def test_diff_lists_changes(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "diff", "machine.json", "good.json"]) == 0
        assert capsys.readouterr().out == (
            "build\n  rdk:component:sensor/a: build, because it is not running yet\n1 built\n"
        )

    def test_diff_resolves_relative_paths_of_both_texts_alike(
        self, config_files: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        camera = {
            "name": "film",
            "api": "rdk:component:camera",
            "model": "image_file",
            "attributes": {"color_image_file_path": "belt.png"},
        }
        (config_files / "belt.png").touch()
        (config_files / "drafts").mkdir()
        for name in ("film.json", "drafts/film.json"):
            (config_files / name).write_text(json.dumps({"components": [camera]}))
        assert main(["config", "diff", "film.json", "drafts/film.json"]) == 0
        assert capsys.readouterr().out == "nothing would change\n"

    def test_diff_of_equal_files_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "diff", "good.json", "good.json"]) == 0
        assert capsys.readouterr().out == "nothing would change\n"

    def test_diff_mentions_errors_of_the_new_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["config", "diff", "good.json", "bad.json"]) == 1
        assert (
            "bad.json has 2 errors; run: cogwork config check bad.json" in capsys.readouterr().out
        )

    def test_diff_json_lists_changes_and_diagnostics(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["config", "diff", "--json", "machine.json", "good.json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["new"] == {"file": "good.json", "refused": False, "diagnostics": []}
        assert report["change"].keys() == {"close", "build", "cannot_run", "untouched", "settings"}
        assert main(["config", "diff", "--json", "good.json", "refused.json"]) == 1
        report = json.loads(capsys.readouterr().out)
        assert report["change"] is None
        assert report["new"]["refused"]
        assert report["new"]["diagnostics"]

    @pytest.mark.parametrize("files", [("good.json", "refused.json"), ("broken.json", "good.json")])
    def test_diff_refuses_a_rejected_file(
        self, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["config", "diff", *files]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert "would be rejected; fix it first" in err

    @pytest.mark.parametrize("files", [("good.json", "nowhere"), ("nowhere", "good.json")])
    def test_diff_reports_a_missing_file(
        self, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["config", "diff", *files]) == 2
        assert "nowhere  error  the file does not exist" in capsys.readouterr().err


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Cogwork machine"


@pytest.mark.parametrize("arguments", [[], ["config"], ["config", "chek"], ["config", "diff", "a"]])
def test_invalid_usage_exits_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "for help, run: cogwork" in capsys.readouterr().err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith("cogwork ")


# Tests that run the command as a process

COGWORK = [sys.executable, "-m", "cogwork.cli.main"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COGWORK, *arguments],
        capture_output=True,
        timeout=30,
        env={**os.environ, **environment},
        check=False,
    )


def test_help_imports_almost_nothing() -> None:
    code = (
        "import sys\n"
        "from cogwork.cli.main import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'pydantic', 'asyncio', 'logging', 'json'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("count", [10, 5000], ids=["a little", "more than a pipe holds"])
def test_closed_pipe_ends_the_command_silently(tmp_path: Path, count: int) -> None:
    file = tmp_path / "many.json"
    file.write_text(json.dumps({f"key{n}": n for n in range(count)}, indent=1))
    with subprocess.Popen(
        [*COGWORK, "config", "check", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) in (0, 1)


def test_pipe_without_a_reader_is_tolerated(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text('{"x": 1}')
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COGWORK, "config", "check", str(file)],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def run_on_terminal(*arguments: str, **environment: str) -> bytes:
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [*COGWORK, *arguments],
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=30,
            env={**os.environ, **environment},
            check=False,
        )
    finally:
        os.close(theirs)
    shown = b""
    with os.fdopen(ours, "rb", 0) as screen, contextlib.suppress(OSError):  # EIO: all is read
        while part := screen.read(65536):
            shown += part
    return shown


def test_color_is_used_only_on_a_terminal_without_no_color(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(BAD))
    assert b"\x1b[31merror\x1b[0m" in run_on_terminal("config", "check", str(file), NO_COLOR="")
    assert b"\x1b" not in run_on_terminal("config", "check", str(file), NO_COLOR="1")
    assert b"\x1b" not in run("config", "check", str(file)).stdout


def test_unencodable_characters_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "wide.json"
    file.write_text('{"日本": "é"}', encoding="utf-8")
    done = run("config", "check", str(file), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (1, b"")
    assert rb"\u65e5\u672c" in done.stdout
