"""Scenario documents: made, changed, written, checked."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

import fanin
from fanin import Problem, Scenario, ScenarioError, _core
from fanin.cli import app

TOML = """
name = "demo"
seed = 4 # a comment

[switch]
marking = { kind = "threshold", k = "65 packets" }

[[traffic]]
kind = "incast"
load = 0.5

[[traffic]]
kind = "poisson"
"""


def test_a_file_keeps_its_text_and_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text(TOML)
    scenario = Scenario.from_file(path)
    assert scenario.to_toml() == TOML
    assert scenario.base_dir == tmp_path
    assert scenario.source() == (TOML, "toml")
    assert scenario.to_dict()["traffic"][0]["load"] == 0.5


def test_a_json_file_is_read_by_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    path.write_text('{"seed": 4}')
    assert Scenario.from_file(path).to_dict() == {"seed": 4}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("a.json", b"[1]", "holds no JSON object"), ("a.json", b"{", "is not JSON"), ("a.toml", b"\xff", "is not UTF-8 text")],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        Scenario.from_file(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.toml"):
        Scenario.from_file(tmp_path / "absent.toml")


def test_keywords_win_over_the_document_and_none_is_left_out() -> None:
    scenario = Scenario({"seed": 1, "name": "a", "switch": {"x": None, "y": 1}}, seed=2, name=None)
    assert scenario.to_dict() == {"seed": 2, "switch": {"y": 1}}
    assert tomllib.loads(scenario.to_toml()) == scenario.to_dict()


@dataclass
class Marking:
    k: str

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "threshold", "k": self.k, "none": None}


def test_typed_classes_become_tables() -> None:
    scenario = Scenario(switch={"marking": Marking("5 packets")}, traffic=(Marking("1 packet"),))
    assert scenario.to_dict() == {
        "switch": {"marking": {"kind": "threshold", "k": "5 packets"}},
        "traffic": [{"kind": "threshold", "k": "1 packet"}],
    }


def test_what_no_document_can_hold_is_refused_with_its_path() -> None:
    with pytest.raises(TypeError, match=r"switch\.marks\[1\]: a set cannot be part"):
        Scenario(switch={"marks": [1, {2}]})
    with pytest.raises(ValueError, match="load: nan is not a finite number"):
        Scenario(load=float("nan"))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("seed", 9, {"seed": 9}),
        ("traffic[0].load", 0.9, {"traffic": [{"kind": "incast", "load": 0.9}, {"kind": "poisson"}]}),
        ("traffic.1.load", 0.9, {"traffic": [{"kind": "incast", "load": 0.5}, {"kind": "poisson", "load": 0.9}]}),
        ("traffic[0]", None, {"traffic": [{"kind": "poisson"}]}),
        (
            "switch.buffer.kind",
            "shared",
            {"switch": {"marking": {"kind": "threshold", "k": "65 packets"}, "buffer": {"kind": "shared"}}},
        ),
        ("switch", {"marking": {"k": "1 packets"}}, {"switch": {"marking": {"kind": "threshold", "k": "1 packets"}}}),
        ("switch.marking", {"kind": "red", "min": 1}, {"switch": {"marking": {"kind": "red", "min": 1}}}),
        ("switch.marking", "none", {"switch": {"marking": "none"}}),
        ("switch.marking", None, {"switch": {}}),
    ],
)
def test_replace_changes_one_value_and_nothing_else(path: str, value: Any, expected: dict[str, Any]) -> None:
    base = Scenario.from_toml(TOML)
    changed = base.replace({path: value})
    assert changed.to_dict() == {**tomllib.loads(TOML), **expected}
    assert base.to_dict() == tomllib.loads(TOML)


def test_a_bare_kind_becomes_a_table_when_one_of_its_keys_is_given() -> None:
    changed = Scenario(switch={"marking": "threshold"}).replace(**{"switch.marking.k": "9 packets"})
    assert changed.to_dict()["switch"]["marking"] == {"kind": "threshold", "k": "9 packets"}


def test_a_table_made_on_the_way_has_the_default_kind(core: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = {
        "switch": {"latency": "0ps", "buffer": {"kind": "static", "per_port": "512KB"}},
        "traffic": [{"at": {"kind": "once"}}],
    }
    found = {"problems": [], "resolved": json.dumps(resolved), "hash": "x"}
    monkeypatch.setattr(_core, "check", lambda *_: found)
    base = Scenario(traffic=[{}])
    changed = base.replace(**{"switch.buffer.per_port": "1MB", "traffic[0].at.time": "1s", "switch.latency": "1us"})
    assert changed.to_dict() == {
        "switch": {"latency": "1us", "buffer": {"per_port": "1MB", "kind": "static"}},
        "traffic": [{"at": {"time": "1s", "kind": "once"}}],
    }
    assert base.replace(**{"switch.buffer.kind": "dynamic"}).to_dict()["switch"] == {"buffer": {"kind": "dynamic"}}
    monkeypatch.setattr(_core, "check", lambda *_: {**found, "resolved": None})
    assert base.replace(**{"switch.buffer.per_port": "1MB"}).to_dict()["switch"] == {"buffer": {"per_port": "1MB"}}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("traffic[2].load", "there is no entry 2; the list has 2"),
        ("traffic.first", "'traffic' is a list, there is no 'first' in it"),
        ("seed.x", "'seed' is the value 4"),
        ("switch[0]", "'switch' is a table"),
        ("", "is not the path of a value"),
        (".seed", "is not the path of a value"),
        ("a..b", "is not the path of a value"),
        ("a[x]", "is not the path of a value"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Scenario.from_toml(TOML).replace({path: 1})
    assert message in str(caught.value)
    assert f"'{path}'" in str(caught.value)


def test_check_returns_all_problems_and_never_raises(core: ModuleType) -> None:
    check = Scenario({"sed": 1, "seed": 5000}).check()
    assert not check.ok
    assert [problem.path for problem in check.errors] == ["sed", "seed"]
    assert check.resolved is None
    assert str(check).splitlines()[0] == (
        "error: sed: 3 is not a known key; accepted: name, seed, switch, traffic; did you mean 'seed'?"
    )
    good = Scenario(seed=0).check()
    assert good.ok
    assert [str(problem) for problem in good.warnings] == ["seed: is zero"]
    assert good.resolved == {"name": "fake", "seed": 0}
    assert len(good.hash or "") == 64


def test_resolved_raises_with_every_problem(core: ModuleType) -> None:
    with pytest.raises(ScenarioError) as caught:
        _ = Scenario(sed=1, seed=5000).resolved
    assert [problem["path"] for problem in caught.value.problems] == ["sed", "seed"]
    assert Scenario(seed=3).resolved["seed"] == 3


def test_a_text_that_is_not_toml_is_a_problem_of_check(core: ModuleType) -> None:
    check = Scenario.from_toml("seed = = 1").check()
    assert check.errors[0].line == 1
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml("seed = = 1").to_dict()
    assert caught.value.problems[0]["line"] == 1


def test_equality_and_hash_follow_the_contents() -> None:
    one, other = Scenario.from_toml("seed = 1"), Scenario(seed=1)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Scenario(seed=2)
    assert one != "seed = 1"


def test_the_page_of_a_scenario_escapes_everything(core: ModuleType) -> None:
    page = Scenario(name="<script>x</script>", seed=0)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "warning: seed: is zero" in page
    assert "2 errors" in Scenario(sed=1, seed=9999)._repr_html_()


def test_a_problem_reads_like_a_sentence() -> None:
    problem = Problem("error", "traffic[2].size", "has no unit", 14, "5", "a size such as 5KB", 'write "5B"')
    assert str(problem) == 'traffic[2].size, line 14: 5 has no unit; accepted: a size such as 5KB; write "5B"'
    assert str(Problem("error", "", "is empty")) == "is empty"


DEEP = {
    "json": '{"seed": 1,\n"a":\n' + "[" * 200_000 + "]" * 200_000 + "}",
    "objects.json": '{"seed": 1,\n"a":\n' + '{"b":' * 500 + "1" + "}" * 500 + "}",
    "levels.json": '{"seed": 1,\n"a":\n' + "[" * 40 + "]" * 40 + "}",
    "toml": "seed = 1\n\na = " + "[" * 200_000 + "]" * 200_000,
    "inline.toml": "seed = 1\n\na = " + "{b = " * 500 + "1" + "}" * 500,
    "key.toml": "seed = 1\n\n" + "a." * 200_000 + "b = 1",
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("options", [[], ["--set", "seed=2"]], ids=["plain", "set"])
def test_a_document_that_nests_without_end_is_refused_with_its_line(tmp_path: Path, name: str, options: list[str]) -> None:
    path = tmp_path / f"deep.{name}"
    path.write_text(DEEP[name])
    done = CliRunner(env={"NO_COLOR": "1"}).invoke(app, ["check", str(path), *options])
    assert done.exit_code == 2, done.output
    assert len([line for line in done.stderr.splitlines() if not line.startswith("read on: ")]) <= 2
    assert "line 3: " in done.stderr
    assert "nests too deep; accepted: at most 32 levels" in done.stderr


def test_values_that_nest_without_end_are_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nests too deep; accepted: at most 32 levels"):
        Scenario(a=circle)
    deep: object = 1
    for _ in range(31):
        deep = [deep]
    assert Scenario(a=deep).to_dict() == {"a": deep}
    with pytest.raises(ValueError, match="nests too deep"):
        Scenario(a=[deep])
    done = CliRunner().invoke(app, ["vectors", "s-ecn", "--set", "a=" + "[" * 50_000])
    assert done.exit_code == 2
    assert "--set a: nests too deep" in done.stderr


def test_a_damaged_result_that_nests_without_end_is_reported(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(fanin.ResultError, match="is damaged: it nests too deep"):
        fanin.load(tmp_path)


def test_values_that_were_replaced_leave_the_lines_of_the_others() -> None:
    text = (
        '[topology]\nkind = "single_switch"\nhosts = 3\n[transport]\nkind = "tcp"\nprofile = "linux"\n'
        'loss_detection = "rack"\nrto_min = "5ms"\n[[traffic]]\nkind = "incast"\nreceiver = "h2"\nsize = "10KB"\n'
    )
    base = fanin.Scenario.from_toml(text)
    assert base.check().ok
    changed = base.replace({"transport.sack": False}).replace({"transport.rto_max": "1ms", "traffic[0].receiver": "h9"})
    found = {problem.path: problem.line for problem in changed.check().errors}
    assert found == {"transport.loss_detection": 7, "transport.rto_min": 8, "traffic[0].receiver": None, "transport.rto_initial": 4}


def test_a_path_is_no_document() -> None:
    with pytest.raises(TypeError, match=r"'demo\.toml' is no document; accepted: a mapping; for a file, Scenario\.from_file"):
        fanin.Scenario("demo.toml")  # type: ignore[arg-type]
