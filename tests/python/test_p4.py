"""P4 of dataplane/p4: compiled where there is a compiler, and what can be read off the text anywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
P4 = ROOT / "dataplane" / "p4"
PAGE = (ROOT / "docs" / "dev" / "rtl.md").read_text(encoding="utf-8")
PROGRAMS = sorted(path.stem for path in P4.glob("*.p4") if "V1Switch(" in path.read_text(encoding="utf-8"))


def test_every_program_is_on_the_page() -> None:
    assert PROGRAMS == ["rcm_detector", "rimm", "s_ecn"]
    assert [name for name in PROGRAMS if f"`{name}.p4`" not in PAGE] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_register_is_read_once_and_written_once(program: str) -> None:
    """In the text, where nothing loops: so by each packet once at most; and always both in one block that nothing divides."""
    text = re.sub(r"/\*.*?\*/", "", (P4 / f"{program}.p4").read_text(encoding="utf-8"), flags=re.DOTALL)
    registers = re.findall(r"register<[^;]*>\(\w+\)\s+(\w+);", text)
    assert len(registers) == {"s_ecn": 3, "rcm_detector": 1, "rimm": 4}[program]
    for name in registers:
        assert [len(re.findall(rf"\b{name}\.{access}\(", text)) for access in ("read", "write")] == [1, 1], name
        read, write = (text.index(f"{name}.{access}(") for access in ("read", "write"))
        begins = text.rindex("@atomic", 0, read)
        block = text[begins:write]
        assert read < write and block.count("{") > block.count("}"), f"{name} is written in the block in which it was read"


@pytest.mark.skipif(
    shutil.which("p4c-bm2-ss") is None, reason="P4 is not compiled: p4c-bm2-ss is not installed (no registry has it)"
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_compiler_takes_it_without_a_warning(program: str, tmp_path: Path) -> None:
    command = ["p4c-bm2-ss", "--std", "p4-16", "-o", str(tmp_path / "out.json"), str(P4 / f"{program}.p4")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
