"""Resources of the RTL by yosys: LUTs, flip-flops, multipliers and memories of each block, for two families of FPGAs.

`python dataplane/rtl/synth.py` prints the table of docs/dataplanes.md and says how far it is from resources.json;
`--write` writes both. `--only NAME` synthesises some of them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

RTL: Final = Path(__file__).parent
PAGE: Final = RTL.parents[1] / "docs" / "dataplanes.md"
STORED: Final = RTL / "resources.json"
FAMILIES: Final = ("xc2vp", "xc7")
MARKS: Final = ("<!-- resources: python dataplane/rtl/synth.py --write -->", "<!-- end of resources -->")
TOLERANCE: Final = 0.05
"""Share by which another version of yosys may differ, in either direction."""


@dataclass(frozen=True)
class Design:
    """What is synthesised."""

    name: str
    about: str
    top: str
    files: tuple[str, ...]
    parameters: dict[str, int] = field(default_factory=dict)


DESIGNS: Final = (
    Design("s-ecn", "S-ECN, any rate", "s_ecn_port", ("s_ecn_marker.sv", "tests/s_ecn_port.sv")),
    Design(
        "s-ecn-1g",
        "S-ECN, 1 Gb/s at 8 ns: R is 1 B",
        "s_ecn_port",
        ("s_ecn_marker.sv", "tests/s_ecn_port.sv"),
        {"FRACTION": 0, "RATE_W": 1, "INTERVAL_W": 18, "FIXED_RATE": 1},
    ),
    Design(
        "s-ecn-1g-4",
        "the same, shared by four ports",
        "s_ecn_port",
        ("s_ecn_marker.sv", "tests/s_ecn_port.sv"),
        {"PORTS": 4, "FRACTION": 0, "RATE_W": 1, "INTERVAL_W": 18, "FIXED_RATE": 1},
    ),
    Design("ce", "CE with the header checksum", "ce_marker", ("ce_marker.sv", "checksum_update.sv")),
    Design(
        "stamp",
        "telemetry stamp with the checksum",
        "telemetry_stamper",
        ("telemetry_stamper.sv", "checksum_update.sv"),
        {"QUEUE_W": 20},
    ),
    Design("trailer-64", "end of frames, 64 bits wide", "trailer_writer", ("trailer_writer.sv",), {"DATA_W": 64}),
    Design("trailer-512", "end of frames, 512 bits wide", "trailer_writer", ("trailer_writer.sv",), {"DATA_W": 512}),
    Design("pdn", "PDN, IPv4, 32 notifications", "pdn_attacher", ("pdn_attacher.sv",), {"DEPTH": 32}),
    Design("rcm-detector", "RCM: detector", "rcm_detector", ("rcm_detector.sv", "divider.sv")),
    Design("rcm-window", "RCM: window", "rcm_window", ("rcm_window.sv", "divider.sv")),
    Design("rimm", "RIMM, four ports, 4,096 pairs (a switch)", "rimm_sequencer", ("rimm_sequencer.sv",)),
)

Cells = dict[str, int]


def resources(design: Design, family: str) -> Cells:
    """Synthesise a design without pads; inverters and shift registers are counted as LUTs."""
    files = " ".join(str(RTL / name) for name in design.files)
    set_ = " ".join(f"-set {name} {value}" for name, value in design.parameters.items())
    script = [f"read_verilog -sv {files}"]
    script += [f"chparam {set_} {design.top}"] if set_ else []
    script += [f"synth_xilinx -family {family} -flatten -noiopad -noclkbuf -top {design.top}", "stat"]
    done = subprocess.run(["yosys", "-p", "; ".join(script)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"yosys: {design.name} for {family}: {done.stdout[-300:]}{done.stderr[-2000:]}")
    last = done.stdout.rsplit("Printing statistics", 1)[1]
    cells = {name: int(count) for name, count in re.findall(r"^ +([A-Z][A-Z0-9_]+) +(\d+)$", last, re.MULTILINE)}
    kinds = {"lut": r"LUT\d|INV|SRL.*|RAM\d+.*", "ff": r"FD.*", "mult": r"DSP.*|MULT.*", "bram": r"RAMB.*"}
    return {kind: sum(count for name, count in cells.items() if re.fullmatch(pattern, name)) for kind, pattern in kinds.items()}


def table(found: dict[str, dict[str, Cells]]) -> str:
    """The table of the page."""
    head = ["| block, at one port | " + " | ".join(f"{f} LUT | FF | mult. | block RAM" for f in FAMILIES) + " |"]
    head.append("|---|" + "---:|" * 4 * len(FAMILIES))
    for design in DESIGNS:
        cells = [str(found[design.name][f][kind]) for f in FAMILIES for kind in ("lut", "ff", "mult", "bram")]
        head.append(f"| {design.about} | {' | '.join(cells)} |")
    return "\n".join(head)


def differences(found: dict[str, dict[str, Cells]], stored: dict[str, dict[str, Cells]]) -> list[str]:
    """What differs by more than the tolerance, more or less."""
    return [
        f"{name} for {family}: {kind} {count}, stored {stored[name][family][kind]}"
        for name, families in found.items()
        for family, cells in families.items()
        for kind, count in cells.items()
        if abs(count - stored[name][family][kind]) > TOLERANCE * stored[name][family][kind]
    ]


def main() -> int:
    """Synthesise, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write resources.json and the table of docs/dataplanes.md")
    parser.add_argument("--only", action="append", choices=[design.name for design in DESIGNS], help="this design; may be repeated")
    asked = parser.parse_args()
    if shutil.which("yosys") is None:
        print("yosys is not installed; Debian 12, as root: make install-yosys", file=sys.stderr)
        return 1
    if asked.write and asked.only:
        parser.error("--write takes all designs")
    chosen = [design for design in DESIGNS if not asked.only or design.name in asked.only]
    found = {design.name: {family: resources(design, family) for family in FAMILIES} for design in chosen}
    if asked.write:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(MARKS[0])[0], page.split(MARKS[1])[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n{table(found)}\n{MARKS[1]}{after}", encoding="utf-8")
    if not asked.only:
        print(table(found))
    wrong = differences(found, json.loads(STORED.read_text(encoding="utf-8")))
    for line in wrong:
        print(f"differs by more than {TOLERANCE:.0%}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
