"""The commands of docs/sweeps.md for Slurm and Kubernetes, run as they stand there with stand-ins for what a cluster has."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import fanin
from sweeping import TOML

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
TASKS = 3
"""Instead of the page's numbers of tasks."""

SWEEP = TOML + '[sweep]\nseeds = 4\n[sweep.grid]\n"switch.marking.k" = ["2 packets", "5 packets"]\n'

SBATCH = """#!/bin/bash
# What sbatch does with an array: the command of --wrap once for each number, which it finds in its environment.
while [ $# -gt 0 ]; do
  case "$1" in
    --array=*) array="${1#--array=}" ;;
    --wrap) shift; wrap="$1" ;;
    --cpus-per-task=*|--time=*|--requeue) ;;
    *) echo "sbatch: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
for task in $(seq "${array%-*}" "${array#*-}"); do
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$(( ${array#*-} - ${array%-*} + 1 )) bash -c "$wrap" || exit 1
done
"""

SRUN = """#!/bin/bash
# What srun does: the command as many times as -n says, at the same time.
[ "$1" = -n ] && [ "$3" = -c ] || { echo "srun: unknown options $*" >&2; exit 2; }
tasks=$2; shift 4
for task in $(seq "$tasks"); do "$@" --local-directory "$HOME/worker-$task" & done
wait
"""


def block(head: str, number: int = 0) -> str:
    """Return a block of commands under a heading of the page."""
    section = PAGE.split(f"\n## {head}\n")[1].split("\n## ")[0]
    return section.split("```")[2 * number + 1].removeprefix("sh\n").strip("\n")


def environment(folder: Path, **scripts: str) -> dict[str, str]:
    """An environment with `fanin`, `python` and `dask` of these tests, and scripts."""
    tools = folder / "bin"
    tools.mkdir()
    plain = {
        "fanin": f'#!/bin/sh\nexec {sys.executable} -c "from fanin.cli import app; app()" "$@"\n',
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        "dask": f'#!/bin/sh\nexec {sys.executable} -m dask "$@"\n',
    }
    for name, text in {**plain, **scripts}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    paths = [str(Path(fanin.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    made = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return {**os.environ, **made, "HOME": str(folder), "USER": "me"}


def shell(text: str, folder: Path, variables: dict[str, str]) -> None:
    """Run commands, and end what they leave in the background."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-e", "-c", text], cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(timeout=120)
        finally:
            with suppress(ProcessLookupError):  # nothing was left
                os.killpg(process.pid, signal.SIGKILL)
    assert status == 0, (folder / "log").read_text()


def complete(where: Path) -> None:
    sweep = fanin.Sweep(where)
    assert (sweep.complete, sweep.failed.height, sweep.runs.height, sweep.all_runs.height) == (True, 0, 8, 8)


def test_an_array_of_slurm_does_each_run_once(tmp_path: Path) -> None:
    text = block("Slurm")
    (tasks,) = re.findall(r"--array=1-(\d+)", text)
    assert f"--shard $SLURM_ARRAY_TASK_ID/{tasks} " in text, "as many shards as tasks"
    text = text.replace(f"1-{tasks}", f"1-{TASKS}").replace(f"/{tasks} ", f"/{TASKS} ").replace("/scratch/", f"{tmp_path}/scratch/")
    (tmp_path / "sweep.toml").write_text(SWEEP)
    shell(text, tmp_path, environment(tmp_path, sbatch=SBATCH))
    complete(tmp_path / "scratch" / "me" / "marking")
    segments = {path.name.split("-")[0] for path in (tmp_path / "scratch" / "me" / "marking" / "runs").iterdir()}
    assert segments == {f"{task}of{TASKS}" for task in range(1, TASKS + 1)}


@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed: make test")
def test_a_dask_cluster_in_slurm_does_each_run_once(tmp_path: Path) -> None:
    text = block("Slurm", 1)
    (tasks,) = re.findall(r"srun -n (\d+) ", text)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    text = text.replace(f"-n {tasks} ", "-n 2 ").replace("dask scheduler ", "dask scheduler --port 0 --no-dashboard ")
    shell(text, tmp_path, environment(tmp_path, srun=SRUN))
    complete(tmp_path / "out" / "marking")


def job() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make test")
    text = re.fullmatch(r"kubectl apply -f - <<'END'\n(.*)\nEND", block("Kubernetes"), re.DOTALL)
    assert text is not None
    found: dict[str, Any] = yaml.safe_load(text[1])
    return found


def test_the_job_of_kubernetes_is_sound() -> None:
    """By the rules of the API batch/v1: fields of an indexed Job, and names that must agree."""
    made = job()
    assert (made["apiVersion"], made["kind"]) == ("batch/v1", "Job")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", made["metadata"]["name"])
    spec = made["spec"]
    assert set(spec) == {"completionMode", "completions", "parallelism", "backoffLimitPerIndex", "template"}
    assert spec["completionMode"] == "Indexed"
    assert 1 <= spec["parallelism"] <= spec["completions"]
    pod = spec["template"]["spec"]
    assert set(pod) == {"restartPolicy", "containers", "volumes"}
    assert pod["restartPolicy"] == "Never", "backoffLimitPerIndex asks for it"
    (container,) = pod["containers"]
    assert set(container) == {"name", "image", "envFrom", "command", "resources", "volumeMounts"}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    (mount,) = container["volumeMounts"]
    assert f" {mount['mountPath']}/" in container["command"][2]
    assert f"/{spec['completions']} " in container["command"][2], "as many shards as completions"


def test_the_indexes_of_a_job_do_each_run_once(tmp_path: Path) -> None:
    spec = job()["spec"]
    program, option, text = spec["template"]["spec"]["containers"][0]["command"]
    text = text.replace(f"/{spec['completions']} ", f"/{TASKS} ").replace("/sweeps/", f"{tmp_path}/")
    text = text.replace("s3://results/", f"{tmp_path}/results/")  # buckets have tests of their own
    (tmp_path / "marking.toml").write_text(SWEEP)
    variables = environment(tmp_path)
    for index in range(TASKS):
        subprocess.run([program, option, text], env={**variables, "JOB_COMPLETION_INDEX": str(index)}, check=True, timeout=60)
    complete(tmp_path / "results" / "marking")
