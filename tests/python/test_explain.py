"""Where the time of a flow went: the command, the frames, the figure, the errors, and the page's example."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fanin
from fanin import explain, report
from fanin.cli import EXIT_BAD_INPUT, app

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"


def scenario(text: str, folder: Path) -> fanin.Scenario:
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return fanin.Scenario.from_file(path)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, page: str) -> fanin.Result:
    folder = tmp_path_factory.mktemp("explain")
    toml = re.search(r"```toml\n(.*?)```", page, re.S)
    assert toml
    return fanin.run(scenario(toml[1], folder), folder / "out", progress=False)


def test_parts_and_steps_of_all_flows_add_up(result: fanin.Result) -> None:
    for row in result.flows.iter_rows(named=True):
        found = result.explain(row["flow"])
        took = row["finish_ps"] - row["start_ps"]
        assert found.total_ps == took
        assert found.parts["time_ps"].sum() == took
        assert found.parts["share"].sum() == pytest.approx(1.0)
        steps = found.steps
        assert (steps["from_ps"][0], steps["to_ps"][-1]) == (row["start_ps"], row["finish_ps"])
        assert (steps["from_ps"][1:] == steps["to_ps"][:-1]).all()
        assert set(found.parts["kind"]) <= set(explain.KINDS) - {"unknown"}


def test_a_timeout_names_the_loss_that_it_repaired(result: fanin.Result) -> None:
    late = result.flows.filter(pl.col("finish_ps") > 200_000_000_000)
    assert late.height > 10
    for flow in late["flow"]:
        found = result.explain(flow)
        waited = max(found.document["waited"], key=lambda entry: entry["to_ps"] - entry["from_ps"])
        drops = result.drops.filter(pl.col("flow") == flow, pl.col("time_ps") == waited["dropped_ps"])
        assert drops["port"].to_list() == ["switch0->h40"]
        assert re.search(r"retransmission timeout.*after the loss of ", found.text)
        assert "at switch0->h40 at " in found.text


def test_json_and_steps(result: fanin.Result) -> None:
    printed = CliRunner().invoke(app, ["explain", str(result.path), "12", "--json"])
    document = json.loads(printed.stdout)
    assert sum(part["time_ps"] for part in document["parts"]) == document["end_ps"] - document["start_ps"]
    printed = CliRunner().invoke(app, ["explain", str(result.path), "12", "--steps"])
    assert "Step by step" in printed.stdout
    assert len(printed.stdout.splitlines()) > len(document["steps"]) + len(document["parts"])


def flow_12(result: fanin.Result) -> dict[str, Any]:
    return result.flows.filter(pl.col("flow") == 12).row(0, named=True)


def test_hosts_has_the_senders_state(result: fanin.Result) -> None:
    states = result.hosts.filter(pl.col("flow") == 12)
    assert states["event"].to_list().count("timeout") == flow_12(result)["timeouts"]
    assert states["time_ps"].is_sorted()
    timeout = states.filter(pl.col("event") == "timeout").row(0, named=True)
    assert (timeout["phase"], timeout["cwnd_bytes"]) == ("loss", 1448)
    assert (states["pipe_bytes"] <= states["in_flight_bytes"]).all()
    assert states["acked_bytes"].max() == 30_001  # the FIN
    sent = result.segments.filter(pl.col("flow") == 12, pl.col("host") == "h12")
    assert sent.filter(pl.col("again") > 0).height == flow_12(result)["retransmits"]
    assert sent.filter(pl.col("kind") == "data").height == flow_12(result)["packets_sent"]
    hops = result.hops.filter(pl.col("flow") == 12)
    assert (hops["arrived_ps"] <= hops["sent_ps"]).all()
    assert (hops["left_ps"] - hops["sent_ps"]).max() == 1538 * 800


def test_the_figure_shows_packets_and_phases(result: fanin.Result) -> None:
    figure = result.plot_sequence(12)
    names = [trace.name for trace in figure.data]
    assert names == ["acknowledged + cwnd", "acknowledged", "sent", "sent again", "was dropped", "recovery", "loss"]
    again = next(trace for trace in figure.data if trace.name == "sent again")
    assert len(again.x) == flow_12(result)["retransmits"]
    assert figure.layout.shapes
    assert all(shape.x1 > shape.x0 for shape in figure.layout.shapes)
    assert result.plot_sequence().layout.title.text.startswith("Flow ")


def test_the_report_explains_followed_flows(result: fanin.Result) -> None:
    text = result.report().read_text(encoding="utf-8")
    assert 'id="flows"' in text
    assert 'id="flow-0"' in text
    assert text.count("<span>Where its time went</span>") == 4
    assert re.search(r"retransmission timeout.*after the loss of ", text)


def test_converted_tables(result: fanin.Result, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["convert", str(result.path), "--table", "hosts", "--table", "hops", "-o", str(tmp_path)])
    assert done.exit_code == 0
    assert pl.read_csv(tmp_path / "hosts.csv").height == result.hosts.height


def test_what_cannot_be_explained_says_why(result: fanin.Result, tmp_path: Path, page: str) -> None:
    def error(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["explain", *arguments])
        assert done.exit_code == EXIT_BAD_INPUT
        return " ".join(done.stderr.split())

    assert error(str(result.path), "99") == "error: flow '99': there is none; numbers are 0 to 39"
    flows = """
        [topology]
        kind = "single_switch"
        hosts = 3
        link = { rate = "10Gbps", delay = "5us" }
        [[traffic]]
        kind = "flows"
        flows = [{ id = "mice", src = "h0", dst = "h1", size = "1KB" }, { id = "elephant", src = "h2", dst = "h1", size = "1MB" }]
        [telemetry]
        hosts = HOSTS
        """
    none = fanin.run(scenario(flows.replace("HOSTS", "[]"), tmp_path), tmp_path / "none", progress=False)
    key = 'this run followed no flow; set telemetry.hosts = ["mice"] and run it again'
    assert error(str(none.path), "mice") == f"error: flow 'mice': {key}"
    some = fanin.run(scenario(flows.replace("HOSTS", '["eleph*"]'), tmp_path), tmp_path / "some", progress=False)
    wanted = 'was not followed: telemetry.hosts is ["eleph*"]; set telemetry.hosts = ["mice"] and run it again'
    assert error(str(some.path), "mice") == f"error: flow 'mice' {wanted}"
    assert "did you mean 'elephant'?" in error(str(some.path), "elefant")
    assert some.explain("elephant").total_ps == some.explain(1).total_ps
    assert some.fingerprint == none.fingerprint
    refused = scenario(flows.replace("HOSTS", '["elefant"]'), tmp_path).check().errors
    assert [(problem.path, problem.suggestion) for problem in refused] == [("telemetry.hosts[0]", "did you mean 'elephant'?")]


def test_a_flow_that_did_not_end_is_explained_so_far(tmp_path: Path) -> None:
    text = """
        duration = "100us"
        [topology]
        kind = "single_switch"
        hosts = 2
        link = { rate = "10Gbps", delay = "5us" }
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "10MB" }]
        [telemetry]
        hosts = ["*"]
        """
    result = fanin.run(scenario(text, tmp_path), tmp_path / "out", progress=False)
    found = result.explain(0)
    assert not found.document["complete"]
    assert 0 < found.total_ps <= 100_000_000
    assert "was not completed" in found.text
    assert found.parts["time_ps"].sum() == found.total_ps


@pytest.mark.parametrize(("handshake", "why"), [("true", "its connection never opened"), ("false", "none of its data arrived")])
def test_a_flow_of_which_nothing_arrived_says_so_and_has_no_figure(tmp_path: Path, handshake: str, why: str) -> None:
    text = """
        [topology]
        kind = "single_switch"
        hosts = 2
        [switch]
        marking = { kind = "front_drop", limit = "70B" }
        [transport]
        kind = "tcp"
        max_retries = 1
        """
    more = "syn_retries = 1\n" if handshake == "true" else "handshake = false\n"
    rest = '[[traffic]]\nkind = "flows"\nflows = [{ src = "h0", dst = "h1", size = "10KB" }]\n[telemetry]\nhosts = ["*"]\n'
    result = fanin.run(scenario(text + more + rest, tmp_path), tmp_path / "out", progress=False)
    assert f"was aborted: {why}, after 2 timeouts." in result.explain(0).text
    assert why in report.render(result)
    if handshake == "true":
        with pytest.raises(ValueError, match="sent no data: its connection never opened"):
            result.plot_sequence(0)
