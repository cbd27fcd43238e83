"""Setting up: what is missing is said, all of it at once, with the way to get it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import fanin

ROOT = Path(__file__).parents[2]


def tools(folder: Path, *names: str, **scripts: str) -> dict[str, str]:
    """An environment whose PATH holds these tools of the machine and these scripts, and nothing else."""
    folder.mkdir()
    for name in ("sh", "sed", "id", *names):
        (folder / name).symlink_to(shutil.which(name) or "/absent")
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def doctor(environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run([str(ROOT / ".ci" / "doctor")], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_everything_missing_is_reported_at_once(tmp_path: Path) -> None:
    status, said = doctor(tools(tmp_path / "bin"))
    assert status == 1
    for name in ("Python 3.11 or newer", "a Rust toolchain (cargo)", "a C compiler (cc)"):
        assert f"missing: {name}" in said
    assert said.count("apt-get install") == 2


@pytest.mark.parametrize(
    ("scripts", "message"),
    [
        ({"python3": 'test "$1" = -V && echo Python 3.9.2; exit 1'}, "Python 3.11 or newer (python3 is Python 3.9.2)"),
        ({"python3": 'case "$2" in *ensurepip*) exit 1;; esac'}, "Python's venv module"),
        ({"rustc": "echo 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'"}, "rustc 1.85 or newer (this is rustc 1.63.0"),
    ],
)
def test_what_is_too_old_is_reported(tmp_path: Path, scripts: dict[str, str], message: str) -> None:
    present = {"python3": "exit 0", "cargo": "exit 0", "cc": "exit 0", "rustc": "echo 'rustc 1.95.0 (abc)'"}
    status, said = doctor(tools(tmp_path / "bin", **{**present, **scripts}))
    assert status == 1
    assert said.count("missing:") == 1
    assert message in said


def test_a_machine_with_everything_is_fine(tmp_path: Path) -> None:
    present = {"python3": "exit 0", "cargo": "exit 0", "cc": "exit 0", "rustc": "echo 'rustc 1.85.0 (abc)'"}
    assert doctor(tools(tmp_path / "bin", **present)) == (0, "")


def optional(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / ".ci" / "optional"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_tools_that_some_tests_need_are_reported_and_no_failure(tmp_path: Path) -> None:
    machine = tools(tmp_path / "bin")
    done = optional(machine)
    assert done.returncode == 0
    assert done.stdout.count("SKIPPED: ") == 8
    assert "tests of the report in a browser: chromium is not installed" in done.stdout
    assert "make install-chromium   (apt-get install chromium chromium-driver)" in done.stdout
    names = ["chromium", "tshark", "valgrind", "node", "iverilog", "verilator", "yosys", "bpf"]
    assert optional(machine, "absent").stdout.split() == names


def test_tools_that_are_there_are_not_reported(tmp_path: Path) -> None:
    others = dict.fromkeys(("tshark", "valgrind", "node", "iverilog", "vvp", "verilator", "yosys", "clang", "bpftool"), "")
    scripts = {"chromium": "", **others}
    assert optional(tools(tmp_path / "no driver", **scripts), "absent").stdout == "chromium\n"
    either = {"google-chrome": "", "chromedriver": "", **others}
    assert optional(tools(tmp_path / "all", **either)).stdout == ""


def test_a_tool_is_installed_from_its_packages(tmp_path: Path) -> None:
    machine = tools(tmp_path / "bin", **{"apt-get": 'echo "$@"'})
    assert optional(machine, "install", "chromium").stdout.endswith(" chromium chromium-driver\n")
    wrong = optional(machine, "install", "chrome")
    assert (wrong.returncode, wrong.stderr) == (1, "nothing is called chrome here\n")


def test_what_a_part_took_is_noted_and_its_failure_not_hidden(tmp_path: Path) -> None:
    timed, environment = str(ROOT / ".ci" / "timed"), {**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([timed, *arguments], env=environment, capture_output=True, text=True, check=False)

    assert run().stdout == ""
    failed = run("a part", "sh", "-c", "echo said; echo wrong >&2; exit 3")
    assert (failed.returncode, failed.stdout, failed.stderr) == (3, "said\n", "wrong\n")
    assert run("another", sys.executable, "-c", "x = sum(range(10**7))").returncode == 0
    notes = tmp_path / "timed"
    notes.write_text(notes.read_text() + "beside it|2000.0|0.1|0.1|" + notes.read_text().splitlines()[0].split("|")[4] + "\n")
    _, a_part, another, _, together = run().stdout.splitlines()
    assert 2000 <= float(together.split()[-2]) < 2001, "what overlaps is not added"
    assert a_part.startswith("a part  ")
    assert another.startswith("another  ")
    assert float(another.split()[-1]) > 0
    assert float(together.split()[-1]) >= float(another.split()[-1])


def test_requirements_are_those_of_the_project() -> None:
    def listed(kind: str) -> list[str]:
        command = [sys.executable, str(ROOT / ".ci" / "requirements.py"), kind]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert any(line.startswith("maturin==") for line in listed("build"))
    assert any(line.startswith("polars>=") for line in listed("build"))
    assert any(line.startswith("pytest>=") for line in listed("dev"))


def test_make_lists_its_targets() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    done = subprocess.run(
        [make, "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "MAKEFLAGS": ""}
    )
    for target in ("demo", "test", "bench", "bench-htsim", "reproduce", "ns3-test", "schema", "clean"):
        assert f"make {target} " in done.stdout


def test_what_the_source_needs_is_part_of_what_is_shipped(tmp_path: Path) -> None:
    """And little else. Papers' scenarios lie behind a link of the package; crates embed files of other folders."""
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent))
    if maturin is None or shutil.which("cargo") is None:
        pytest.skip("maturin or cargo is not installed")
    subprocess.run([maturin, "sdist", "-o", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    assert 1_000_000 < archive.stat().st_size < 4_000_000
    with tarfile.open(archive) as opened:
        shipped = {name.partition("/")[2] for name in opened.getnames() if opened.getmember(name).isfile()}
        opened.extractall(tmp_path, filter="data")
    at_top = {"Cargo.lock", "Cargo.toml", "LICENSE", "NOTICE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert {name.partition("/")[0] for name in shipped} == at_top | {"crates", "python", "scenarios", "workloads"}
    assert [name for name in shipped if name.endswith((".so", ".pyc", ".rlib")) or "/target/" in name] == []
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    manifest = ["--manifest-path", str(folder / "crates" / "py" / "Cargo.toml")]
    built_of = ["cargo", "metadata", "--offline", "--locked", "--no-deps", "--format-version=1", *manifest]
    read = subprocess.run(built_of, cwd=folder, capture_output=True, text=True, check=True)
    targets = [target["src_path"] for package in json.loads(read.stdout)["packages"] for target in package["targets"]]
    assert len(targets) > 10
    assert [path for path in targets if not Path(path).is_file()] == [], "manifests name what is not shipped"
    papers = ROOT / "scenarios" / "papers"
    expected = {str(path.relative_to(papers)) for path in papers.rglob("*") if path.is_file()}
    assert expected
    assert {f"python/fanin/reproduce/scenarios/{name}" for name in expected} <= shipped
    package = {"starters/incast.toml", "pages/base.html", "pages/page.html", "pages/style.css", "pages/script.js", "py.typed"}
    assert {f"python/fanin/{name}" for name in package} <= shipped
    starters = {f"python/fanin/starters/{path.name}" for path in (ROOT / "scenarios").glob("*.toml")}
    assert starters and starters <= shipped
    embedded = {
        str((source.parent / path).resolve().relative_to(ROOT))
        for source in (ROOT / "crates").glob("*/src/**/*.rs")
        for path in re.findall(r'include_str!\("([^"]+)"\)', source.read_text(encoding="utf-8"))
    }
    assert {"workloads/web-search.csv", "scenarios/demo.toml"} <= embedded
    assert embedded - {"docs/results.md"} <= shipped, "the page is read by a test alone"


def test_what_the_package_reads_is_part_of_its_wheel() -> None:
    """Files that lie behind links come into a wheel only if they are listed; all others of the package do by themselves."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["maturin"]["include"]
    globs = {entry["path"] for entry in listed if "wheel" in entry["format"]}
    package = ROOT / "python" / "fanin"
    links = [path for path in package.rglob("*") if path.is_symlink() and "__pycache__" not in path.parts]
    assert {link.name for link in links} == {"scenarios", "starters"}
    shipped = {path for glob in globs for path in ROOT.glob(glob)}
    assert set((package / "starters").glob("*.toml")) <= shipped
    papers = package / "reproduce" / "scenarios"
    assert {
        papers / path.relative_to(ROOT / "scenarios" / "papers") for path in (ROOT / "scenarios" / "papers").rglob("*.toml")
    } <= shipped


def test_what_a_new_user_types_works_in_an_empty_folder(tmp_path: Path) -> None:
    """The short form of `make wheel`: the same commands with the package that is installed here, from another folder."""
    package = Path(fanin.__file__).parents[1]
    (tmp_path / "fanin").write_text(
        f'#!/bin/sh\nPYTHONPATH={package} exec {sys.executable} -c "from fanin.cli import app; app()" "$@"\n', encoding="utf-8"
    )
    (tmp_path / "fanin").chmod(0o755)
    command = [str(ROOT / ".ci" / "try-installed"), str(tmp_path / "fanin")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(("fanin best ", "fanin plot "))]
    (tmp_path / "broken").write_text(
        "#!/bin/sh\n[ $1 != show ] || { echo no starters >&2; exit 2; }\ntouch mine.toml; echo x > own.toml\necho x > mine.toml\n"
    )
    (tmp_path / "broken").chmod(0o755)
    broken = subprocess.run([command[0], str(tmp_path / "broken")], capture_output=True, text=True, check=False)
    assert (broken.returncode, broken.stderr) == (2, "no starters\nfailed: fanin show mine.toml\n")


def test_workflows_pin_what_they_use() -> None:
    """Nothing here runs them: that they name released versions, this project's maturin, and files that are there, can be told."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
    assert list(texts) == ["mutants.yml", "site.yml", "test.yml", "wheels.yml"]
    used = [name for text in texts.values() for name in re.findall(r"uses: (\S+)", text)]
    assert len(used) >= 12
    assert [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", name)] == []
    (asked,) = re.findall(r"maturin==(\d+\.\d+)\.\*", (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project]")[0])
    assert set(re.findall(r"maturin-version: v(\d+\.\d+)", texts["wheels.yml"])) == {asked}
    assert all((ROOT / name).is_file() for text in texts.values() for name in re.findall(r"(?<![\w/])\.ci/[\w-]+", text))
    assert all("Untried" in text for text in texts.values())
