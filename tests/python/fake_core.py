"""A core that knows four keys and fails as it is told: for tests of what Python makes of what the core says."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fake_result import write_result
from fanin._core import ScenarioError


class PanicException(BaseException):
    """As PyO3 names a panic of the core."""


def problem(path: str, message: str, **more: Any) -> dict[str, Any]:
    return {
        "severity": "error",
        "path": path,
        "line": None,
        "value": None,
        "message": message,
        "accepted": None,
        "suggestion": None,
        **more,
    }


def check(text: str, format: str, base_dir: str) -> dict[str, Any]:
    """Know four keys; a seed above 1000 is refused, a seed of 0 is warned of."""
    assert Path(base_dir).is_dir()
    problems = []
    try:
        document = tomllib.loads(text) if format == "toml" else json.loads(text)
    except ValueError as error:
        return {"problems": [problem("", f"is not {format}: {error}", line=1)], "resolved": None, "hash": None, "rendered": "x"}
    for key in document:
        if key not in ("name", "seed", "switch", "traffic"):
            problems.append(
                problem(
                    key, "is not a known key", value="3", accepted="name, seed, switch, traffic", suggestion="did you mean 'seed'?"
                )
            )
    if document.get("seed", 1) > 1000:
        problems.append(problem("seed", "is out of range", value=str(document["seed"]), accepted="from 0 to 1000"))
    warned = [problem("seed", "is zero", severity="warning")] if document.get("seed") == 0 else []
    if problems:
        return {
            "problems": problems + warned,
            "resolved": None,
            "hash": None,
            "rendered": "\n".join(p["message"] for p in problems),
        }
    resolved = json.dumps({"name": "fake", "seed": 1, **document}, sort_keys=True)
    return {"problems": warned, "resolved": resolved, "hash": hashlib.sha256(resolved.encode()).hexdigest(), "rendered": ""}


def run(
    text: str,
    format: str,
    base_dir: str,
    out_dir: str,
    progress: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    """Write a made-up result; some names of scenarios make it fail as the core can."""
    found = check(text, format, base_dir)
    if found["resolved"] is None:
        error = ScenarioError(found["rendered"])
        error.problems = found["problems"]
        raise error
    resolved = json.loads(found["resolved"])
    out = Path(out_dir)
    for step in range(1, 4):
        if progress is not None:
            progress(
                {
                    "sim_ps": step * 10**9,
                    "end_ps": 3 * 10**9,
                    "events": step * 1000,
                    "packet_hops": step * 900,
                    "flows_done": step,
                    "flows_total": 3,
                    "wall_s": 11.0 * step,
                }
            )
    failure = {
        "interrupted": KeyboardInterrupt(),
        "panic": PanicException("index out of bounds; seed 3, event 17"),
        "stuck": RuntimeError("no progress since 3 ms: flow 7 waits for an ACK"),
        "full": OSError(28, "No space left on device"),
    }.get(resolved["name"])
    write_result(
        out,
        seed=resolved["seed"],
        bursts=2,
        status="partial" if failure else "complete",
        manifest={"scenario": resolved, "scenario_hash": found["hash"]},
    )
    if failure is not None:
        raise failure
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary
