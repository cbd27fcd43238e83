"""The pages for those who know another simulator: their scenarios run, and give the numbers that the pages state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fanin

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("coming-from-*.md"))
BLOCK = re.compile(r"<!-- (scenario|file): (\S+) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def stated(page: str, name: str) -> str:
    """The number of a row that a comment names."""
    found = re.findall(rf"\| ([0-9.,]+)[^|]*<!-- {name} -->", page)
    assert len(found) == 1, name
    return str(found[0]).replace(",", "")


def test_there_is_a_page_for_each() -> None:
    assert [page.stem for page in PAGES] == ["coming-from-hpcc", "coming-from-htsim", "coming-from-ns3", "coming-from-omnetpp"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_scenario_gives_what_the_page_states(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    for _, name, content in blocks:
        (tmp_path / name).write_text(content, encoding="utf-8")
    (name,) = [name for kind, name, _ in blocks if kind == "scenario"]
    scenario = fanin.Scenario.from_file(tmp_path / name)
    check = scenario.check()
    assert check.ok and not check.warnings, str(check)
    result = fanin.run(scenario, tmp_path / "out", progress=False)
    flows = result.flows
    assert set(flows["status"]) == {"complete"}
    last = flows["finish_ps"].to_numpy().max() / 1e6  # all start after time 0
    assert f"{last:.1f}" == stated(text, "last")
    assert str(result.summary["marks"]) == stated(text, "marks")
    assert str(result.summary["drops"]) == stated(text, "drops")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_maps_words_and_defaults(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for heading in ("## In Fanin", "## What is called how", "## What differs by default"):
        assert heading in text
    for what in ("initial window", "RTO", "delayed ACKs", "marks" if "htsim" in page.stem or "ns3" in page.stem else "RED"):
        assert what in text
