"""``fanin watch`` and logs that are rotated, by any scheme and however often: each row counts once. No test waits for a time."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fanin.watch import fetch
from fanin.watch.positions import Place, Positions
from fanin.watch.sources import Source
from watching import HEADER, once, rows, running, written

BURST = 31


def log(path: Path, bursts: int, *, first: int, at: int, header: str = HEADER) -> Path:
    """A log of bursts, last written to at a second."""
    os.utime(written(path, header + rows(bursts, first=first)), (at, at))
    return path


def more(path: Path, bursts: int, *, first: int, at: int) -> None:
    with path.open("a") as file:
        file.write(rows(bursts, first=first))
    os.utime(path, (at, at))


def bursts(watch: Any) -> int:
    """How many bursts' records came, of each of the two ports."""
    counts = watch.counts()
    assert counts.get("eth0", 0) == counts.get("eth1", 0)
    count: int = counts.get("eth0", 0)
    assert count % BURST == 0
    return count // BURST


class TestWhileNobodyWatches:
    @pytest.mark.parametrize(
        ("older", "old"), [("a.csv.2", "a.csv.1"), ("a.csv-20261127", "a.csv-20261128"), ("a-20261127.csv", "a-20261128.csv")]
    )
    def test_a_log_that_was_renamed_twice_is_read_on_in_order(self, tmp_path: Path, older: str, old: str) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        log(tmp_path / "a.csv.9", 1, first=90, at=500)  # before the first start: nobody asks for it
        assert bursts(once(log(file, 2, first=0, at=1_000), state=state)) == 2
        more(file, 1, first=2, at=1_100)
        file.rename(tmp_path / older)
        log(file, 3, first=3, at=1_200).rename(tmp_path / old)
        log(file, 1, first=6, at=1_300)
        watch = once(file, state=state)
        assert (bursts(watch), len(watch.bursts)) == (5, 10)
        assert sum(port.report["late"] for port in watch.watch.hub.ports.values()) == 0
        assert once(file, state=state).counts() == {}
        # And again, from there.
        file.rename(tmp_path / "a.csv.1")
        log(file, 1, first=7, at=1_400)
        assert bursts(once(file, state=state)) == 1

    def test_logs_of_one_moment_are_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        once(log(file, 1, first=0, at=1_000), state=state)
        for number in (4, 3, 2, 1):
            log(tmp_path / f"a.csv.{number}", 1, first=5 - number, at=1_000)
        file.rename(tmp_path / "a.csv.5")
        log(file, 1, first=5, at=1_000)
        watch = once(file, state=state)
        assert (bursts(watch), len(watch.bursts)) == (5, 10)
        assert sum(port.report["late"] for port in watch.watch.hub.ports.values()) == 0

    def test_the_copies_of_copytruncate_are_read_on(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        assert bursts(once(log(file, 2, first=0, at=1_000), state=state)) == 2
        for turn in range(2):
            more(file, 1, first=2 + 2 * turn, at=1_100 + 100 * turn)
            if turn:
                (tmp_path / "a.csv.1").rename(tmp_path / "a.csv.2")
            shutil.copy2(file, tmp_path / "a.csv.1")
            log(file, 1, first=3 + 2 * turn, at=1_150 + 100 * turn)  # into the same file, truncated
        watch = once(file, state=state)
        assert (bursts(watch), len(watch.bursts)) == (4, 8)
        assert once(file, state=state).counts() == {}

    def test_logs_that_begin_alike_are_told_apart(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        # Two that were left: column names alone, and a first 1 KiB that others have as well.
        alike = HEADER + "".join(f"{i * 1000},eth9,0,1500,a > b tcp\n" for i in range(2 * BURST))
        for turn, header in enumerate((HEADER, alike, HEADER)):
            for number in range(turn - 1, 0, -1):
                (tmp_path / f"a.csv.{number}").rename(tmp_path / f"a.csv.{number + 1}")
            if turn:
                file.rename(tmp_path / "a.csv.1")
            log(file, turn // 2, first=1, at=1_000 + 10 * turn, header=header)
            once(file, state=state)
        for number in (2, 1):
            (tmp_path / f"a.csv.{number}").rename(tmp_path / f"a.csv.{number + 3}")
        file.rename(tmp_path / "a.csv.3")
        log(tmp_path / "a.csv.2", 1, first=2, at=1_100, header=alike)
        log(tmp_path / "a.csv.1", 1, first=3, at=1_200)
        log(file, 1, first=4, at=1_300)
        watch = once(file, state=state)
        assert (bursts(watch), len(watch.bursts)) == (3, 6)
        assert once(file, state=state).counts() == {}

    def test_copies_of_logs_that_were_left_are_known(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        once(log(file, 2, first=0, at=1_000), state=state)
        file.rename(tmp_path / "a.csv.1")
        once(log(file, 1, first=2, at=1_100), state=state)
        # Rotated by copies, each written now.
        shutil.copy(tmp_path / "a.csv.1", tmp_path / "a.csv.2")
        shutil.copy(file, tmp_path / "a.csv.1")
        log(file, 1, first=3, at=1_200)
        assert bursts(once(file, state=state)) == 1

    @pytest.mark.parametrize("header_only", [False, True])
    def test_a_foreign_file_that_got_the_number_is_not_read(self, tmp_path: Path, *, header_only: bool) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        once(log(file, 0 if header_only else 2, first=0, at=1_000), state=state)
        document = json.loads(state.read_text())
        place = document["sources"][str(file)]["a.csv"]
        place["inode"] = log(tmp_path / "other.csv", 3, first=50, at=1_250).stat().st_ino
        state.write_text(json.dumps(document))
        log(tmp_path / "new", 1, first=7, at=1_300).replace(file)
        watch = once(file, state=state)
        assert (bursts(watch), len(watch.bursts)) == (1, 2)

    def test_the_log_of_a_vlan_is_no_rotation(self, tmp_path: Path) -> None:
        file, state = tmp_path / "eth0", tmp_path / "state.json"
        once(log(file, 1, first=0, at=1_000), state=state)
        file.rename(tmp_path / "eth0.1")
        log(tmp_path / "eth0.3", 1, first=1, at=1_250)
        log(tmp_path / "eth0.100", 3, first=50, at=1_290)
        log(tmp_path / "eth0.2001", 3, first=50, at=1_290)
        (tmp_path / "eth0.2.gz").touch()
        log(file, 1, first=2, at=1_300)
        assert bursts(once(file, state=state)) == 2

    @pytest.mark.parametrize("head", [5, None, "-5:x", "x", f"9999:{0:032x}"])
    def test_a_state_whose_beginning_of_a_file_is_none_is_refused(self, tmp_path: Path, head: object) -> None:
        state = tmp_path / "state.json"
        place = {"device": 1, "inode": 2, "offset": 3, "fingerprint": "", "head": head}
        state.write_text(json.dumps({"schema": "watch-state/1", "sources": {"x": {"y": place}}}))
        with pytest.raises(ValueError, match="is no state of fanin watch"):
            Positions(state)

    def test_what_is_stopped_while_it_catches_up_goes_on_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        once(log(file, 1, first=0, at=1_000), state=state)
        file.rename(tmp_path / "a.csv.3")
        log(tmp_path / "a.csv.2", 2, first=1, at=1_100)
        log(tmp_path / "a.csv.1", 2, first=3, at=1_200)
        log(file, 1, first=5, at=1_300)
        push = Source.push

        def pushed(source: Source, data: bytes, ns: int | None = None) -> None:
            push(source, data, ns)
            source.stopping.set()

        with monkeypatch.context() as patched:
            patched.setattr(Source, "push", pushed)
            watch = once(file, state=state)
        there = bursts(watch)
        assert there <= 2
        assert there + bursts(once(file, state=state)) == 5

    def test_another_file_that_got_the_number_is_not_read(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        log(tmp_path / "a.csv.1", 4, first=50, at=500)
        once(log(file, 2, first=0, at=1_000), state=state)
        document = json.loads(state.read_text())
        place = document["sources"][str(file)]["a.csv"]
        # What was read is deleted, and its number is that of a file which is older.
        place["inode"] = (tmp_path / "a.csv.1").stat().st_ino
        state.write_text(json.dumps(document))
        log(file, 1, first=7, at=1_300)
        assert bursts(once(file, state=state)) == 1

    def test_files_with_other_names_are_none_of_the_log(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        once(log(file, 2, first=0, at=1_000), state=state)
        for name in ("a.csv.bak", "a.csv~", "b.csv.1", "a-7.csv", "a.csv.1.gz"):
            log(tmp_path / name, 1, first=60, at=1_200)
        shutil.copy2(file, tmp_path / "a.csv.orig")
        log(file, 1, first=7, at=1_300)
        assert bursts(once(file, state=state)) == 1

    def test_a_state_of_an_earlier_version_goes_on(self, tmp_path: Path) -> None:
        file, state = tmp_path / "a.csv", tmp_path / "state.json"
        once(log(file, 2, first=0, at=1_000), state=state)
        document = json.loads(state.read_text())
        place = document["sources"][str(file)]["a.csv"]
        for key in ("head", "modified_ns", "earlier"):
            del place[key]
        state.write_text(json.dumps(document))
        more(file, 1, first=2, at=1_100)
        file.rename(tmp_path / "a.csv.2")
        log(tmp_path / "a.csv.1", 1, first=3, at=1_200)
        log(file, 1, first=4, at=1_300)
        assert bursts(once(file, state=state)) == 3

    def test_a_folder_knows_files_that_were_renamed_or_copied_and_truncated(self, tmp_path: Path) -> None:
        folder, state = tmp_path / "in", tmp_path / "state.json"
        folder.mkdir()
        file = folder / "a.csv"
        log(file, 2, first=0, at=1_000)
        log(folder / "b.csv", 1, first=2, at=1_001)
        assert bursts(once(folder, state=state)) == 3
        more(file, 1, first=3, at=1_100)
        file.rename(folder / "a.csv.1")
        more(folder / "b.csv", 1, first=4, at=1_200)
        shutil.copy2(folder / "b.csv", folder / "b.csv.1")
        log(folder / "b.csv", 1, first=5, at=1_300)
        assert bursts(once(folder, state=state)) == 3
        assert once(folder, state=state).counts() == {}

    def test_each_new_file_of_a_folder_is_read_once_to_know_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder, state = tmp_path / "in", tmp_path / "state.json"
        folder.mkdir()
        for number in range(40):
            log(folder / f"{number}.csv", 1, first=number, at=1_000 + number)
        once(folder, state=state)
        for number in range(40):
            log(folder / f"{number}.csv", 1, first=40 + number, at=1_100 + number).rename(folder / f"new{number}.csv")
        calls = [0]
        is_read_in = Place.is_read_in

        def counted(place: Place, descriptor: int) -> bool:
            calls[0] += 1
            return is_read_in(place, descriptor)

        monkeypatch.setattr(Place, "is_read_in", counted)
        assert bursts(once(folder, state=state)) == 40
        assert calls[0] < 10 * 40


def test_a_state_is_written_once_for_all_that_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, state = log(tmp_path / "a.csv", 200, first=0, at=1_000), tmp_path / "state.json"
    dumps, calls = json.dumps, [0]

    def counted(*given: Any, **more: Any) -> str:
        calls[0] += "schema" in given[0]
        return dumps(*given, **more)

    monkeypatch.setattr(json, "dumps", counted)
    watch = once(file, state=state)
    assert len(watch.bursts) == 400
    assert 1 <= calls[0] <= watch.watch.hub.turn
    positions = Positions(state)
    calls[0] = 0
    for _ in range(2):
        positions.put(str(file), positions.of(str(file)))
        positions.write()
    assert calls[0] == 1


class TestWhileWatched:
    def test_two_rotations_at_once_lose_nothing(self, tmp_path: Path) -> None:
        file = log(tmp_path / "a.csv", 2, first=0, at=1_000)
        with running(file) as watch:
            watch.until(lambda: bool(watch.counts()) and bursts(watch) == 2)
            more(file, 1, first=2, at=1_100)
            file.rename(tmp_path / "a.csv.2")
            log(tmp_path / "new", 3, first=3, at=1_200).rename(tmp_path / "a.csv.1")
            log(tmp_path / "new", 1, first=6, at=1_300).rename(file)
            watch.until(lambda: watch.counts()["eth1"] == 7 * BURST)
        assert (bursts(watch), len(watch.bursts)) == (7, 14)

    def test_logs_between_a_refused_one_and_the_next_are_read(self, tmp_path: Path) -> None:
        file = log(tmp_path / "a.csv", 1, first=0, at=1_000)
        with running(file) as watch:
            watch.until(lambda: bool(watch.counts()) and bursts(watch) == 1)
            file.rename(tmp_path / "a.csv.3")
            (tmp_path / "new").write_bytes(b"\x1f\x8b" + bytes(range(256)) * 8)
            os.utime(tmp_path / "new", (1_100, 1_100))
            (tmp_path / "new").rename(file)
            watch.until(lambda: watch.watch.hub.sources[0].problem is not None)
            file.rename(tmp_path / "a.csv.2")
            log(tmp_path / "new", 1, first=1, at=1_200).rename(tmp_path / "a.csv.1")
            log(tmp_path / "new", 1, first=2, at=1_300).rename(file)
            watch.until(lambda: watch.counts()["eth1"] >= 2 * BURST and file.name in watch.watch.hub.sources[0].safe)
            watch.until(lambda: watch.watch.hub.sources[0].safe[file.name].inode == file.stat().st_ino)
            watch.until(lambda: watch.watch.hub.sources[0].safe[file.name].offset == file.stat().st_size)
        assert (bursts(watch), len(watch.bursts)) == (3, 6)

    def test_a_truncated_log_is_not_taken_for_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = log(tmp_path / "a.csv", 2, first=0, at=1_000)
        places = []

        def missed(source: Source, *more: Any) -> None:
            places.append(source.places())
            looked_for(source, *more)

        looked_for = fetch._missed
        monkeypatch.setattr(fetch, "_missed", missed)
        with running(file) as watch:
            watch.until(lambda: bool(watch.counts()) and bursts(watch) == 2)
            source, size = watch.watch.hub.sources[0], file.stat().st_size
            with source._held:  # nothing is read meanwhile
                before = source.places()
                # Longer than what was read, and then shorter: neither is the place of what is in it now.
                for count in (4, 1):
                    log(file, count, first=2, at=1_200)
                    places.append(source.places())
            watch.until(lambda: watch.counts()["eth1"] == 3 * BURST)
        assert [place[file.name].offset for place in places] == [size] * 3
        assert places[:2] == [before] * 2

    def test_a_kill_between_truncation_and_its_discovery_costs_nothing(self, tmp_path: Path) -> None:
        file, state = log(tmp_path / "a.csv", 2, first=0, at=1_000), tmp_path / "state.json"
        with running(file) as watch:
            watch.until(lambda: bool(watch.counts()) and bursts(watch) == 2)
            source = watch.watch.hub.sources[0]
            with source._held:
                source.places()
                more(file, 2, first=2, at=1_100)
                shutil.copy2(file, tmp_path / "a.csv.1")
                log(file, 1, first=4, at=1_200)
                positions = Positions(state)
                positions.put(str(file), source.places())
                positions.write()
            watch.until(lambda: watch.counts()["eth1"] == 5 * BURST)
        assert bursts(once(file, state=state)) == 3

    def test_what_was_written_before_a_truncation_is_in_its_copy(self, tmp_path: Path) -> None:
        file = log(tmp_path / "a.csv", 2, first=0, at=1_000)
        with running(file) as watch:
            watch.until(lambda: bool(watch.counts()) and bursts(watch) == 2)
            source = watch.watch.hub.sources[0]
            with source._held:  # nothing is read meanwhile
                more(file, 1, first=2, at=1_100)
                shutil.copy2(file, tmp_path / "a.csv.1")
                log(file, 1, first=3, at=1_200)
            watch.until(lambda: watch.counts()["eth1"] == 4 * BURST)
        assert (bursts(watch), len(watch.bursts)) == (4, 8)
