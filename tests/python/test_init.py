"""``fanin init``: whatever is chosen, what is written checks without a word, or is refused with the reason."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin.cli import app, starter
from fanin.cli.starter import LOADS, TOPOLOGIES, TRAFFIC, Choices, make

ROOT = Path(__file__).parents[2]


ALL = bool(os.environ.get("FANIN_ALL"))
"""Whether every combination of three choices is made, in minutes; otherwise every pair is, in seconds."""


def call(*args: Any) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def written(want: Choices) -> dict[str, Any]:
    """The scenario that is made; it checks without errors, warnings and notes, and says all that was asked for."""
    made = make(want)
    assert made.check.ok and not made.check.problems and not made.check.notes, f"{want}: {made.check}"
    document = tomllib.loads(made.text)
    assert document["topology"]["kind"] == want.topology
    assert document["transport"]["congestion_control"]["kind"] == want.transport
    assert document["seed"] == want.seed
    return document


def short(want: dict[str, Any]) -> Choices:
    """With little traffic: a check looks at the first flows."""
    return Choices(**want | ({"duration": "4ms"} if want.get("traffic") in LOADS else {}))


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_traffic_with_every_topology_and_control(traffic: str) -> None:
    topologies = list(TOPOLOGIES)
    for at, control in enumerate(starter.controls()):
        for topology in topologies if ALL else [topologies[at % len(topologies)]]:
            written(short({"topology": topology, "traffic": traffic, "transport": control}))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_topology_with_every_control(topology: str) -> None:
    for control in starter.controls():
        written(Choices(topology=topology, traffic="permutation", transport=control))


TCP = ("newreno", "reno", "cubic", "dctcp")
MECHANISMS = ["pdn", "pfc", "rimm", "pabo", "dibs", "vertigo", "trimming", "int", "rcm"]

NOT_WITH: dict[str, Callable[[str], bool]] = {
    "nothing to write into": lambda control: True,
    "no neighbour is a switch": lambda control: True,
    "unlimited buffer": lambda control: control not in TCP,
    "without PFC what is held takes nobody's memory": lambda control: control in TCP,
    "a frame has one at most": lambda control: control not in TCP,
    # Queue pairs come with PFC, and lossless detours may block themselves: all 24 flows of an incast do.
    "may block itself for ever: detours go around in a circle": lambda control: control not in TCP,
}
"""Why a mechanism may be refused, and with which controls."""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_with_every_control_and_topology(mechanism: str) -> None:
    made = 0
    everywhere = list(itertools.product(TOPOLOGIES, starter.controls()))
    chosen = everywhere if ALL else [pair for pair in everywhere if pair[0] == "leaf_spine" or pair[1] in ("dctcp", "hpcc")]
    for topology, control in chosen:
        want = Choices(topology=topology, traffic="permutation", transport=control, mechanism=mechanism)
        try:
            document = written(want)
        except ValueError as error:
            assert str(error).startswith(f"--mechanism {mechanism}: does not go with the rest: ")
            reasons = [fits for reason, fits in NOT_WITH.items() if reason in str(error)]
            assert reasons and all(fits(control) for fits in reasons), f"{want}: {error}"
        else:
            assert mechanism in document["switch"]["mechanisms"]
            made += 1
    assert made >= 2, "it goes with something"


def test_all_mechanisms_are_tested() -> None:
    assert sorted(MECHANISMS) == sorted(starter.mechanisms())


def test_numbers_reach_the_file() -> None:
    want = Choices(
        traffic="query",
        hosts=64,
        rate="100Gbps",
        delay="500ns",
        senders=40,
        size="32KB",
        load=0.2,
        buffer="2MB",
        duration="1ms",
        seed=7,
    )
    document = written(want)
    assert document["topology"] | {} == {
        "kind": "leaf_spine",
        "leaves": 4,
        "hosts_per_leaf": 16,
        "spines": 2,
        "host_link": {"rate": "100Gbps", "delay": "500ns"},
        "uplink": {"rate": "800Gbps", "delay": "500ns"},
    }
    assert document["switch"]["buffer"]["per_port"] == "2MB"
    assert document["switch"]["marking"] == {"kind": "threshold", "k": "650 packets"}
    (entry,) = document["traffic"]
    assert (entry["fanout"], entry["size"], entry["load"], entry["stop"]) == (40, "32KB", 0.2, "1ms")


@pytest.mark.parametrize("control", ["dctcp", "cubic"])
def test_rimm_acts_in_what_is_written(control: str, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    made = call("init", file, "--mechanism", "rimm", "--transport", control)
    assert made.exit_code == 0
    assert "alpha" not in made.stderr, "no warning"
    assert call("run", file, "-o", tmp_path / "out", "-q").exit_code == 0
    counted = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))["mechanisms"]["rimm"]
    assert counted["detoured"] > 5
    assert counted["released"] > counted["late"]


def test_an_incast_is_watched_and_what_is_small_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    assert call("init", file, "--hosts", 8, "--senders", 6).exit_code == 0
    assert call("run", file, "-o", tmp_path / "out", "-q").exit_code == 0
    explained = call("explain", tmp_path / "out", 0)
    assert explained.exit_code == 0, explained.output
    found = fanin.analyze(tmp_path / "out", port="leaf3->h7", above="20KB")
    assert set(found.bursts["flows"].drop_nulls()) == {6}, "packets were recorded, and whose they are"
    assert "hosts" not in written(Choices(size="100MB"))["telemetry"]
    assert written(Choices(size="100MB"))["telemetry"]["queues"] == ["*->h31"]
    assert "queues" not in written(Choices(traffic="permutation"))["telemetry"]


def test_more_hosts_than_were_asked_for_are_a_note(tmp_path: Path) -> None:
    for topology, asked, there in (("leaf_spine", 30, 32), ("racks", 17, 20), ("fat_tree", 17, 54)):
        found = call("init", tmp_path / f"{topology}.toml", "--topology", topology, "--hosts", asked, "--traffic", "permutation")
        assert found.exit_code == 0, found.output
        assert f"note: --hosts {asked}: there are {there}, since {topology} means " in found.stderr
    assert make(Choices(hosts=32)).notes == make(Choices(topology="single_switch", hosts=31)).notes == make(Choices()).notes == ()
    with pytest.raises(ValueError, match="--hosts 65537: is too many for a fat tree; accepted: up to 65536"):
        make(Choices(topology="fat_tree", hosts=65_537))


def test_every_key_has_a_comment_or_explains_itself() -> None:
    lines = make(Choices(mechanism="pdn")).text.splitlines()
    keys = [at for at, line in enumerate(lines) if " = " in line and not line.startswith("#")]
    told = [at for at in keys if "#" in lines[at] or lines[at - 1].startswith("#")]
    assert len(told) >= 0.8 * len(keys), [lines[at] for at in keys if at not in told]


def test_what_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    found = call("init", file, "--topology", "leafspine", "--transport", "dcctp", "--traffic", "poisson", "--senders", 3)
    assert found.exit_code == 2
    for text in ("did you mean leaf_spine?", "did you mean dctcp?", "--senders: has no effect with --traffic poisson"):
        assert text in found.stderr
    assert not file.exists()
    lossless = call("init", file, "--transport", "hpcc", "--buffer", "1MB")
    assert lossless.exit_code == 2
    assert "--buffer 1MB: has no effect" in lossless.stderr
    many = call("init", file, "--hosts", 8, "--senders", 8)
    assert "--senders 8: there are 8 hosts" in many.stderr


def test_numbers_that_may_surprise_are_written_and_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    found = call("init", file, "--traffic", "poisson", "--load", "1.3")
    assert found.exit_code == 0
    assert "is more than the network can carry" in found.stderr
    assert tomllib.loads(file.read_text())["traffic"][0]["load"] == 1.3


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("mine")
    refused = call("init", file)
    assert refused.exit_code == 2
    assert "is there already; --force replaces it" in refused.stderr
    assert file.read_text() == "mine"
    assert call("init", file, "--force").exit_code == 0
    assert "[topology]" in file.read_text()


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    found = CliRunner().invoke(app, ["init", str(file)], input="")
    assert found.exit_code == 0
    assert fanin.Scenario.from_file(file).check().ok


def test_questions_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin.cli import init as _init

    monkeypatch.setattr(_init, "_has_terminal", lambda: True)
    file = tmp_path / "x.toml"
    answers = "\n".join(["single_switch", "32", "25Gbps", "incast", "24", "20", "40", "nonsense", "dcqcn", ""]) + "\n"
    found = CliRunner().invoke(app, ["init", str(file)], input=answers)
    assert found.exit_code == 0, found.output
    assert "--rate 32: is no rate; accepted: a number with a unit such as 10Gbps" in found.output
    assert "--senders 24: there are 20 hosts" in found.output
    assert "--transport nonsense: is none of " in found.output
    assert "hosts [25]" in found.output, "what the senders need"
    document = tomllib.loads(file.read_text())
    assert document["topology"] == {"kind": "single_switch", "hosts": 40, "link": {"rate": "25Gbps", "delay": "1us"}}
    assert document["traffic"][0]["count"] == 24
    assert document["transport"] == {"kind": "roce", "congestion_control": {"kind": "dcqcn"}}


def test_starters_are_those_of_the_repository(tmp_path: Path) -> None:
    files = {path.stem: path for path in (ROOT / "scenarios").glob("*.toml")}
    assert set(starter.shipped()) == set(files)
    for name, path in files.items():
        file = tmp_path / f"{name}.toml"
        assert call("init", file, "--starter", name).exit_code == 0
        assert file.read_bytes() == path.read_bytes()
        assert fanin.Scenario.from_file(file).check().ok
    assert "did you mean demo?" in call("init", tmp_path / "y.toml", "--starter", "dem").stderr
    assert "takes no other choices" in call("init", tmp_path / "y.toml", "--starter", "demo", "--seed", 2).stderr


def test_a_wheel_holds_the_starters_and_the_reference() -> None:
    maturin = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["maturin"]
    wheel = [entry["path"] for entry in maturin["include"] if "wheel" in entry["format"]]
    shipped = {path.name for pattern in wheel for path in ROOT.glob(pattern) if path.parent.name == "starters"}
    assert shipped == {path.name for path in (ROOT / "scenarios").glob("*.toml")}
    reference = call("schema", "--reference").stdout
    assert reference == (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")


def test_list_names_what_there_is() -> None:
    text = call("init", "--list").stdout
    for name in (*TOPOLOGIES, *TRAFFIC, *starter.controls(), *starter.mechanisms(), *starter.shipped()):
        assert name in text
