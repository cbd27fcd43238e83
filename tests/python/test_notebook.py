"""Figures in Jupyter show, and stay when a notebook is converted, without a network; and the notebook of the examples is true."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# What Plotly needs of IPython to show HTML, in a process that is no notebook: pieces of HTML are collected.
INSIDE = """
import importlib.machinery, sys, types
def module(name, **content):
    made = types.ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(made).update(content)
    sys.modules[name] = made
    return made
shown = []
display = module("IPython.display", display_html=lambda text, raw: shown.append(text), display=print)
module("IPython", display=display, get_ipython=lambda: None, __path__=[])
module("ipykernel")
import plotly.io as pio
"""
EXAMPLES = Path(__file__).parents[2] / "examples"
AUTOMATIC = 'pio.renderers.default = "plotly_mimetype"'
"""What Plotly chooses in a kernel of Jupyter."""


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_figure_is_html_beside_plotlys_own_format(folder: Path) -> None:
    code = f"""{INSIDE}
{AUTOMATIC}
import fanin, json
result = fanin.load({str(folder)!r})
bundles = [figure._repr_mimebundle_() for figure in (result.plot_queue(), result.plot_fct_cdf())]
print(json.dumps([bundles, shown]))
"""
    bundles, shown = json.loads(run(code))
    assert [set(bundle) for bundle in bundles] == [{"application/vnd.plotly.v1+json", "text/html"}] * 2
    assert all("Plotly.newPlot(" in bundle["text/html"] and len(bundle["text/html"]) < 1_000_000 for bundle in bundles)
    assert "plotly.js v" in shown[0], "in the notebook itself"
    assert "<script src" not in shown[0]


@pytest.mark.parametrize(
    ("code", "environment", "expected"),
    [
        (f"{INSIDE}{AUTOMATIC}\nimport fanin.figures", {}, "plotly_mimetype+notebook"),
        (f'{INSIDE}pio.renderers.default = "svg"\nimport fanin.figures', {}, "svg"),
        (f'{INSIDE}{AUTOMATIC}\nimport fanin.figures\npio.renderers.default = "plotly_mimetype"', {}, "plotly_mimetype"),
        (f"{INSIDE}import fanin.figures", {"PLOTLY_RENDERER": "plotly_mimetype"}, "plotly_mimetype"),
        (f"import plotly.io as pio\n{AUTOMATIC}\nimport fanin.figures", {}, "plotly_mimetype"),
    ],
    ids=["automatic", "chosen before", "chosen after", "chosen by the environment", "no notebook"],
)
def test_a_renderer_that_was_chosen_stays(code: str, environment: dict[str, str], expected: str) -> None:
    assert run(f"{code}\nprint(pio.renderers.default)", **environment).strip() == expected


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("nbconvert", "ipykernel"))),
    reason="nbconvert and ipykernel are not installed: pip install nbconvert ipykernel",
)
def test_a_converted_notebook_holds_its_figures(tmp_path: Path, folder: Path) -> None:
    cells = [f"import fanin\nresult = fanin.load({str(folder)!r})\nresult", "result.plot_queue()", "result.plot_fct_cdf().show()"]
    code: dict[str, Any] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [{**code, "source": cell} for cell in cells]}
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))
    call = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", str(tmp_path / "n.ipynb")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "n.html").read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot(") >= 2
    assert page.count("* plotly.js v") == 1


def test_the_notebook_of_the_examples_finds_every_verdict_again(tmp_path: Path) -> None:
    """Its cells one after the other, as Jupyter runs them; they assert that SciPy alone gives what `fanin compare` says."""
    notebook = json.loads((EXAMPLES / "verdicts.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code"), "committed without outputs"
    code = "\n".join(cells)
    assert "fanin.statistics" not in code and "import fanin" not in code
    assert sum(line.lstrip().startswith("assert ") for line in code.splitlines()) >= 8
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=EXAMPLES,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Queues, to hosts p99 +0\.\d{4}  mostly worse$", done.stdout, re.MULTILINE)
    assert re.search(r"^13 verdicts, 10 of them judged together: the same as fanin's$", done.stdout, re.MULTILINE)
