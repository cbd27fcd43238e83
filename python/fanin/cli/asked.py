"""Parts that commands share: scenarios with changed values, and signals that end a run as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from fanin.files.system import ENDS
from fanin.scenario import Scenario


def overridden(file: Path, settings: list[str]) -> Scenario:
    """Return the scenario of a file with values changed as ``--set`` says."""
    scenario = Scenario.from_file(file)
    for setting in settings:
        scenario = scenario.replace(dict([as_setting(setting)]))
    return scenario


def as_setting(setting: str) -> tuple[str, Any]:
    """Return path and value of ``KEY=VALUE``."""
    import tomllib

    path, equals, text = setting.partition("=")
    if not equals or not path.strip():
        raise ValueError(f"--set {setting}: is not of the form KEY=VALUE")
    try:
        return path.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return path.strip(), text  # the shell has eaten the quotes of a string
    except RecursionError:
        raise ValueError(f"--set {path.strip()}: nests too deep") from None


def as_nested(values: dict[str, Any]) -> dict[str, Any]:
    """Return values by path, such as `registers.credit`, as tables in one another."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *tables, key = path.split(".")
        target = nested
        for table in tables:
            target = target.setdefault(table, {})
            if not isinstance(target, dict):
                raise ValueError(f"--set {path}: {table} has been given a value of its own")
        target[key] = value
    return nested


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def end_like_ctrl_c() -> None:
    """Let `ENDS` keep the result folder as Ctrl-C does; what is ignored, as SIGHUP is after nohup, stays ignored."""
    if threading.current_thread() is threading.main_thread():
        for end in ENDS:
            if signal.getsignal(end) != signal.SIG_IGN:
                signal.signal(end, _interrupted)
