"""Figures in Jupyter: they show there, and are still there when the notebook has been converted, without a network."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.native

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
