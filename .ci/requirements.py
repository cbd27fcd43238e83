"""Print what pyproject.toml asks for, one requirement a line: ``build`` (to build and run) or ``dev`` (to test as well)."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
kinds = {
    "build": project["build-system"]["requires"] + project["project"]["dependencies"],
    "dev": project["project"]["optional-dependencies"]["dev"],
}
if len(sys.argv) != 2 or sys.argv[1] not in kinds:
    sys.exit(f"usage: requirements.py {'|'.join(kinds)}")
print("\n".join(kinds[sys.argv[1]]))  # noqa: T201
