"""Simulates S-ECN's marker as a block at a socket: python dataplane/rtl/tests/cosim_run.py SOCKET FOLDER, for one run."""

from __future__ import annotations

import sys
from pathlib import Path

from cocotb_tools.runner import get_results, get_runner

RTL = Path(__file__).resolve().parents[1]


def main(path: str, folder: str) -> int:
    """Build and simulate; 1 if the bench failed."""
    sys.path.insert(0, str(RTL / "tests"))
    runner = get_runner("icarus")
    runner.build(
        sources=[RTL / "s_ecn_marker.sv"],
        hdl_toplevel="s_ecn_marker",
        build_dir=folder,
        parameters={"CLOCK_W": 64},
        always=True,
        timescale=("1ns", "1ps"),
    )
    done = runner.test(
        hdl_toplevel="s_ecn_marker",
        test_module="cosim_s_ecn",
        build_dir=folder,
        test_dir=folder,
        results_xml=f"{folder}/results.xml",
        extra_env={"FANIN_SOCKET": str(Path(path).resolve())},
    )
    return int(get_results(done)[1] > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2]))
