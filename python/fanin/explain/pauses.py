"""Pauses of priority flow control: by port and class, and the trees in which they spread from a congested port.

A neighbour asks for a pause because what came in from a port has reached XOFF; ``behind`` names the port of the neighbour
for which most of that waits. Where that port has itself been paused since its queue was last empty (``held_up``), its last
pause is the cause; where it has not, it is the root: a queue that is congested, and not held up. A pause and all that it
causes are a tree; trees of the same root and class are one event as long as no gap between them is longer than `GAP_PS`.

Pauses that lasted as the run ended may wait for each other in a circle: each was asked for by packets that wait behind the
next. Such a deadlock has no root, and its trees are one event; see `circles`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fanin.text import show

if TYPE_CHECKING:
    import polars as pl

    from fanin.tables.recorded import Recorded

__all__ = [
    "EVENT_HEAD",
    "GAP_PS",
    "HEAD",
    "PauseTree",
    "by_port",
    "causes",
    "circles",
    "ended",
    "event_rows",
    "events",
    "port_rows",
    "roots",
    "stretches",
    "tree",
    "why",
]

GAP_PS: Final = 100_000_000
"""Longest time without a pause inside an event [ps]: 100 µs."""

_NUMBER: Final = re.compile(r"#\d+$")
"""Number that tells ports between the same two nodes apart."""

HOSTS: Final = 4
"""Hosts that a text names at most."""

HEAD: Final = ["Port", "Class", "Pauses", "Paused", "Share", "Longest", "At", "Frames"]
"""Head of `port_rows`."""

EVENT_HEAD: Final = ["Event", "Root", "Class", "From", "Lasted", "Ports", "Depth", "Pauses", "Paused"]
"""Head of `event_rows`."""


def why(root: str) -> str:
    """Say what a root is: a port with a queue; or a node that asked for pauses though nothing waited there (a storm)."""
    return "was congested" if "->" in root else "asked for pauses of itself"


def _leads(root: str, port: str) -> bool:
    """Whether packets that leave by `port` come to the root: they leave by it, or reach the node that it is."""
    return port == root or ("->" not in root and _NUMBER.sub("", port).endswith(f"->{root}"))


def ended(result: Recorded) -> pl.DataFrame:
    """Return all pauses; those that lasted as the run ended have its end."""
    import polars as pl

    end = result.manifest.get("sim_ps") or 0
    last = pl.max_horizontal("start_ps", pl.lit(end, dtype=pl.UInt64))
    return result.pauses.with_columns(end_ps=pl.col("end_ps").fill_null(last))


def stretches(found: pl.DataFrame, parts: int) -> tuple[pl.DataFrame, int]:
    """Return the time that any of the pauses lasted as rows ``start_ps``, ``end_ps`` in order, and the gap that was bridged.

    Parameters
    ----------
    found : polars.DataFrame
        ``start_ps`` and ``end_ps`` of pauses.
    parts : int
        Where there are more stretches, gaps below that part of the whole time are bridged.
    """
    import polars as pl

    def bridged(rows: pl.DataFrame, gap: int) -> pl.DataFrame:
        before = pl.col("end_ps").cum_max().shift(1)
        new = (before.is_null() | (pl.col("start_ps") > before + gap)).cum_sum()
        return rows.group_by(new.alias("part"), maintain_order=True).agg(pl.min("start_ps"), pl.max("end_ps")).drop("part")

    rows = bridged(found.select("start_ps", "end_ps").sort("start_ps", "end_ps"), 0)
    if rows.height <= parts:
        return rows, 0
    gap = int(rows["end_ps"][-1] - rows["start_ps"][0]) // parts
    return bridged(rows, gap), gap


def by_port(result: Recorded) -> pl.DataFrame:
    """Return one row per port and class that was paused, the longest time first.

    Returns
    -------
    polars.DataFrame
        ``port``, ``class``, ``pauses``, ``paused_ps``, ``share`` (of the simulated time), ``longest_ps``, ``longest_at_ps``,
        ``frames`` (PFC frames that asked for it, which this port received and its neighbour sent).
    """
    import polars as pl

    lasted = pl.col("end_ps") - pl.col("start_ps")
    total = max(result.manifest.get("sim_ps") or 0, 1)
    grouped = (
        ended(result)
        .group_by("port", "class")
        .agg(
            pauses=pl.len(),
            paused_ps=lasted.sum(),
            longest_ps=lasted.max(),
            longest_at_ps=pl.col("start_ps").get(lasted.arg_max()),
            frames=pl.col("frames").sum(),
        )
    )
    ordered = grouped.sort("paused_ps", "port", "class", descending=[True, False, False])
    columns = ("port", "class", "pauses", "paused_ps", "share", "longest_ps", "longest_at_ps", "frames")
    return ordered.with_columns(share=pl.col("paused_ps") / total).select(columns)


def causes(result: Recorded) -> pl.DataFrame:
    """Return one row per pause with what it came from, in order of the times at which they were asked for.

    Returns
    -------
    polars.DataFrame
        The columns of ``pauses`` (``end_ps`` of a pause that lasted: the end of the run), ``cause`` (row number here of the
        last pause of ``behind``, where that was held up; else null), ``first`` (row number of the first of the chain),
        ``root`` (port at which that ends), ``depth`` (0 beside the root).
    """
    import polars as pl

    peer = pl.col("port").str.extract(r"->(.*?)(?:#\d+)?$")
    known = {"asked_ps": pl.col("asked_ps").fill_null(pl.col("start_ps")), "behind": pl.col("behind").fill_null(peer)}
    pauses = ended(result).with_columns(**known).sort("asked_ps", "port", "class").with_row_index("row")
    paused = pauses.select("class", behind="port", cause="row", from_ps="start_ps", to_ps="end_ps").sort("from_ps")
    joined = pauses.join_asof(
        paused,
        left_on="asked_ps",
        right_on="from_ps",
        by=("behind", "class"),
        allow_exact_matches=False,
        check_sortedness=False,  # sorted above
    )
    held_up = pl.col("held_up").fill_null(pl.col("to_ps") > pl.col("asked_ps"))
    found = joined.with_columns(cause=pl.when(held_up).then("cause"))
    # Causes lie earlier, so every chain ends: its links are doubled until all point to their first.
    to, depth = found["cause"].fill_null(found["row"]), found["cause"].is_not_null().cast(pl.UInt32)
    while not (further := to.gather(to)).equals(to):
        depth, to = depth + depth.gather(to), further
    return found.drop("from_ps", "to_ps").with_columns(first=to, root=found["behind"].gather(to), depth=depth)


def circles(result: Recorded) -> list[dict[str, Any]]:
    """Return the circles of pauses that lasted as the run ended, each for packets to the next one's port.

    Returns
    -------
    list of dict
        ``class``, ``ports`` (in order, each waits for the next, the first by name first), ``since_ps`` (when the last pause of it
        began).
    """
    import polars as pl

    lasting = set(result.pauses.filter(pl.col("end_ps").is_null()).select("port", "class").iter_rows())
    known = causes(result).select("port", "class", "behind", "start_ps", "asked_ps").iter_rows(named=True)
    # Of each port its latest pause, which is the one that lasts.
    waits = {key: row for row in known if (key := (row["port"], row["class"])) in lasting}
    found = []
    seen: set[tuple[str, int]] = set()
    for start in sorted(waits):
        way: list[tuple[str, int]] = []
        at = start
        while at in waits and at not in seen:
            seen.add(at)
            way.append(at)
            at = (waits[at]["behind"], at[1])
        if at in way:
            circle = way[way.index(at) :]
            first = circle.index(min(circle))
            ports = [port for port, _ in circle[first:] + circle[:first]]
            since = max(int(waits[key]["start_ps"]) for key in circle)
            found.append({"class": at[1], "ports": ports, "since_ps": since})
    return sorted(found, key=lambda circle: (circle["since_ps"], circle["class"], circle["ports"]))


def roots(result: Recorded, traffic_class: int, steps: Sequence[Mapping[str, Any]], crossed: Set[str]) -> dict[str, dict[str, Any]]:
    """Return by port at which a flow stood paused the root of most of that time, and whether the flow crosses it.

    Parameters
    ----------
    steps : sequence of mapping
        Its critical path, as `fanin.Explanation.steps` has it.
    crossed : set of str
        Ports that its packets left by.
    """
    import polars as pl

    waits = [(step["place"], step["from_ps"], step["to_ps"]) for step in steps if step["kind"] == "pause"]
    if not waits:
        return {}
    waited = pl.DataFrame(waits, schema={"port": pl.String(), "from_ps": pl.UInt64(), "to_ps": pl.UInt64()}, orient="row")
    known = causes(result).filter(pl.col("class") == traffic_class).select("port", "root", "start_ps", "end_ps")
    both = waited.join(known, on="port").filter(pl.col("start_ps") < pl.col("to_ps"), pl.col("end_ps") > pl.col("from_ps"))
    common = pl.min_horizontal("to_ps", "end_ps") - pl.max_horizontal("from_ps", "start_ps")
    summed = both.group_by("port", "root").agg(common.sum().alias("time_ps")).sort("time_ps", "root", descending=[True, False])
    first = summed.group_by("port", maintain_order=True).agg(pl.first("root"))
    return {
        port: {"root": root, "crossed": any(_leads(root, port) for port in crossed)} for port, root in sorted(first.iter_rows())
    }


def _with_events(result: Recorded, known: Sequence[Mapping[str, Any]], gap_ps: int) -> pl.DataFrame:
    """Return `causes` with the number of each pause's event, in order of their beginnings; `known` are the `circles`."""
    import polars as pl

    found = causes(result)
    trees = found.group_by("first").agg(pl.min("asked_ps"), pl.max("end_ps"), pl.first("root", "class"))
    for circle in known:
        # Trees with a root in a circle that lasted until it was closed, or began later, are one event.
        of_it = (
            pl.col("root").is_in(circle["ports"]) & (pl.col("class") == circle["class"]) & (pl.col("end_ps") >= circle["since_ps"])
        )
        trees = trees.with_columns(root=pl.when(of_it).then(pl.lit(circle["ports"][0])).otherwise("root"))
    found = found.drop("root").join(trees.select("first", "root"), on="first")
    trees = trees.sort("root", "class", "asked_ps", "first")
    before = pl.col("end_ps").cum_max().shift(1).over("root", "class")
    new = before.is_null() | (pl.col("asked_ps") > before + gap_ps)
    numbered = trees.with_columns(event=new.cum_sum())
    begun = numbered.group_by("event").agg(pl.min("asked_ps"), pl.first("root", "class")).sort("asked_ps", "root", "class")
    order = begun.with_row_index("number").select("event", "number")
    of_tree = numbered.join(order, on="event").select("first", event="number")
    return found.join(of_tree, on="first").sort("row")


def _summed(found: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return (
        found.group_by("event")
        .agg(
            pl.first("root", "class"),
            start_ps=pl.col("asked_ps").min(),
            end_ps=pl.col("end_ps").max(),
            ports=pl.col("port").n_unique(),
            depth=pl.col("depth").max(),
            pauses=pl.len(),
            paused_ps=(pl.col("end_ps") - pl.col("start_ps")).sum(),
        )
        .sort("event")
    )


def events(result: Recorded, gap_ps: int = GAP_PS) -> pl.DataFrame:
    """Return one row per event, in order of time; see `fanin.Result.pause_events`."""
    import polars as pl

    known = circles(result)
    found = _summed(_with_events(result, known, gap_ps))
    ports = [len(circle["ports"]) if (circle := _circle(known, row)) else None for row in found.iter_rows(named=True)]
    return found.with_columns(circle=pl.Series(ports, dtype=pl.UInt32))


def _circle(known: Sequence[dict[str, Any]], event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return which of `circles` an event is of; None where it has a root."""
    of_class = (circle for circle in known if circle["class"] == event["class"])
    return next((c for c in of_class if c["ports"][0] == event["root"] and c["since_ps"] <= event["end_ps"]), None)


class PauseTree:
    """The spread of the pauses of one event.

    Attributes
    ----------
    document : dict
        All of it: ``event``, ``root``, ``class``, ``start_ps``, ``end_ps``, ``ports``, ``depth``, ``pauses``, ``paused_ps``,
        ``edges``, ``flows`` (null where no flow was followed), ``of_class`` (flows of the class), ``followed`` (those of them that
        were), ``hosts`` (whose NICs were paused, the longest first), ``circle`` (ports that wait for each other, in order, the
        first of them being ``root``; null where the root was not held up), ``since_ps`` (when that closed, else null).
    """

    document: dict[str, Any]

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @cached_property
    def edges(self) -> pl.DataFrame:
        """One row per paused port and the port behind which its packets waited, from the root on.

        ``port``, ``behind``, ``depth``, ``pauses``, ``paused_ps``, ``longest_ps``, ``frames``, ``first_asked_ps``, ``first_ps``
        (when the first pause began), ``delay_ps`` (median from the beginning of the pause that caused it; null beside the root).
        """
        import polars as pl

        numbers = ("depth", "pauses", "paused_ps", "longest_ps", "frames", "first_asked_ps", "first_ps", "delay_ps")
        return pl.DataFrame(
            self.document["edges"], schema={"port": pl.String(), "behind": pl.String(), **dict.fromkeys(numbers, pl.UInt64())}
        )

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per followed flow of which packets stood paused, the longest first.

        ``flow``, ``src``, ``dst``, ``port`` (where longest), ``packets``, ``paused_ps`` (time in which at least one of its packets
        stood at a paused port), ``victim`` (none of its packets left by the root).
        """
        import polars as pl

        kinds = {"flow": pl.UInt32(), "src": pl.String(), "dst": pl.String(), "port": pl.String()}
        kinds |= {"packets": pl.UInt64(), "paused_ps": pl.UInt64(), "victim": pl.Boolean()}
        return pl.DataFrame(self.document["flows"] or [], schema=kinds)

    @property
    def victims(self) -> pl.DataFrame:
        """The rows of `flows` whose packets stood paused though none of them left by the root."""
        return self.flows.filter("victim")

    @property
    def text(self) -> str:
        """A short paragraph: where it began, how far it spread, who suffered."""
        told = self.document
        lasted = show.duration(told["end_ps"] - told["start_ps"])
        times = "once" if told["pauses"] == 1 else f"{show.count(told['pauses'])} times"
        paused = f"{times}, {show.duration(told['paused_ps'])} in all"
        many = f"class {told['class']} was paused at {show.many(told['ports'], 'port')}, {paused}."
        from_then_on = f"From {show.duration(told['start_ps'])} on"
        if circle := told.get("circle"):
            # Packets that never left have no row in hops.parquet, so whose they are is not known.
            return (
                f"Deadlock: from {show.duration(told['since_ps'])} to the end of the run {', '.join(circle)} waited for each other"
                f" in a circle, so it has no root. {from_then_on}, for {lasted}, {many}"
            )
        held_up = " and not held up" if "->" in told["root"] else ""
        said = [f"{from_then_on}, {told['root']} {why(told['root'])}{held_up}: for {lasted} {many}"]
        if told["depth"]:
            far = max((edge for edge in told["edges"] if edge["depth"] == told["depth"]), key=lambda edge: int(edge["paused_ps"]))
            after = show.duration(far["first_ps"] - told["start_ps"])
            said.append(f"It spread over {told['depth'] + 1} links, to {far['port']} after {after}.")
        if told["flows"] is None:
            hosts = ", ".join(f'"{host}"' for host in told["hosts"][:HOSTS])
            few = f", or of some of those whose NICs stood paused: {hosts}" if hosts else ""
            said.append(
                f"Which of {show.many(told['of_class'], 'flow')} of the class waited is not known: no flow was followed."
                f' Run it again with telemetry.hosts = ["*"]{few}.'
            )
            return " ".join(said)
        victims = [flow for flow in told["flows"] if flow["victim"]]
        listed = [f"{flow['flow']} ({flow['src']} to {flow['dst']}, {show.duration(flow['paused_ps'])})" for flow in victims[:4]]
        more = f" and {len(victims) - 4:,} more" if len(victims) > 4 else ""
        count = f"{len(victims):,} of {len(told['flows']):,} followed flows that stood paused"
        never = "never cross" if len(victims) != 1 else "never crosses"
        said.append(f"{count} {never} {told['root']}" + (f": {', '.join(listed)}{more}." if victims else "."))
        if (unknown := told["of_class"] - told["followed"]) > 0:
            said.append(f'Of {show.many(unknown, "more flow")} of the class nothing is known: telemetry.hosts = ["*"] follows all.')
        return " ".join(said)

    def lines(self) -> list[str]:
        """Return the tree as text: a line per port, below the port for which its packets waited."""
        start, edges = self.document["start_ps"], self.document["edges"]
        shown: set[tuple[str, str]] = set()

        def below(port: str, lead: str) -> Iterator[str]:
            own = [edge for edge in edges if edge["behind"] == port and (edge["port"], port) not in shown]
            shown.update((edge["port"], port) for edge in own)
            for edge in own:
                last = edge is own[-1]
                at = show.duration(edge["first_ps"] - start)
                times = show.many(edge["pauses"], "pause")
                yield f"{lead}{'└' if last else '├'}─ {edge['port']}: after {at}, {times}, {show.duration(edge['paused_ps'])}"
                yield from below(edge["port"], lead + ("   " if last else "│  "))

        root = self.document["root"]
        circle = self.document.get("circle")
        what = f"in a circle of {len(circle)} ports" if circle else why(root).removeprefix("was ")
        return [f"{root} ({what})", *below(root, "")]

    def edge_rows(self) -> tuple[list[str], list[list[str]]]:
        """Return the edges as a table of texts."""
        start = self.document["start_ps"]
        rows = [
            [
                edge["port"],
                edge["behind"],
                show.count(edge["depth"] + 1),
                show.duration(edge["first_ps"] - start),
                show.duration(edge["delay_ps"]),
                show.count(edge["pauses"]),
                show.duration(edge["paused_ps"]),
                show.duration(edge["longest_ps"]),
            ]
            for edge in self.document["edges"]
        ]
        return ["Paused port", "For packets to", "Links", "First after", "Delay", "Pauses", "Paused", "Longest"], rows

    def flow_rows(self, limit: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the flows as a table of texts."""
        rows = [
            [
                str(flow["flow"]),
                f"{flow['src']} to {flow['dst']}",
                "victim" if flow["victim"] else f"through the {'circle' if self.document.get('circle') else 'root'}",
                show.duration(flow["paused_ps"]),
                show.count(flow["packets"]),
                flow["port"],
            ]
            for flow in (self.document["flows"] or [])[:limit]
        ]
        return ["Flow", "From, to", "Path", "Stood paused", "Packets", "Longest at"], rows

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.document)

    def __repr__(self) -> str:
        return f"<fanin.PauseTree of {self.document['root']}: {self.document['pauses']:,} pauses>"

    def __str__(self) -> str:
        return "\n".join([self.text, *self.lines()])


def _edges(pauses: pl.DataFrame, all_pauses: pl.DataFrame) -> list[dict[str, Any]]:
    import polars as pl

    lasted = pl.col("end_ps") - pl.col("start_ps")
    begun = all_pauses.select(cause="row", cause_ps="start_ps")
    grouped = (
        pauses.join(begun, on="cause", how="left")
        .group_by("port", "behind")
        .agg(
            depth=pl.col("depth").min().cast(pl.UInt64),
            pauses=pl.len(),
            paused_ps=lasted.sum(),
            longest_ps=lasted.max(),
            frames=pl.col("frames").sum().cast(pl.UInt64),
            first_asked_ps=pl.col("asked_ps").min(),
            first_ps=pl.col("start_ps").min(),
            delay_ps=(pl.col("start_ps") - pl.col("cause_ps")).quantile(0.5, "nearest").cast(pl.UInt64),
        )
    )
    return grouped.sort("depth", "first_ps", "port", "behind").to_dicts()


def _hosts(edges: Sequence[Mapping[str, Any]], flows: pl.DataFrame) -> list[str]:
    """Return the senders of `flows` whose NICs were paused, the longest first."""
    paused: dict[str, int] = {}
    for edge in edges:
        host = str(edge["port"]).partition("->")[0]
        paused[host] = paused.get(host, 0) + int(edge["paused_ps"])
    senders = set(flows["src"])
    return sorted(senders & paused.keys(), key=lambda host: (-paused[host], host))


def _merged(waits: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return how long at least one of the stretches ``from_ps`` to ``to_ps`` of each group lasted, and how many there are."""
    import polars as pl

    before = pl.col("to_ps").cum_max().shift(1, fill_value=0).over(by)
    new = (pl.col("to_ps").cast(pl.Int64) - pl.max_horizontal("from_ps", before).cast(pl.Int64)).clip(lower_bound=0)
    counted = waits.sort(*by, "from_ps", "to_ps").with_columns(new=new)
    return counted.group_by(by).agg(paused_ps=pl.col("new").sum().cast(pl.UInt64), packets=pl.col("packet").n_unique())


def _flows(result: Recorded, pauses: pl.DataFrame, roots: Sequence[str], traffic_class: int) -> list[dict[str, Any]] | None:
    """Return the followed flows of which packets waited while their port was paused; None where no flow was followed."""
    import polars as pl

    if not (result.path / "hops.parquet").is_file():
        return None
    flows = result.scan("flows").filter(pl.col("class") == traffic_class).select("flow", "src", "dst")
    hops = result.scan("hops").join(flows.select("flow"), on="flow", how="semi")
    ready = result.scan("segments").select("packet", "cause_ps")
    # A packet waits at its NIC from when it could be sent.
    at_nic = pl.col("arrived_ps") == pl.col("arrived_ps").min().over("packet")
    since = pl.when(at_nic).then(pl.min_horizontal("cause_ps", "arrived_ps")).otherwise("arrived_ps")
    waited = hops.join(ready, on="packet", how="left").with_columns(since_ps=since).filter(pl.col("sent_ps") > pl.col("since_ps"))
    stretches = pauses.select("port", "start_ps", "end_ps").lazy()
    both = waited.join(stretches, on="port").filter(
        (pl.col("start_ps") < pl.col("sent_ps")) & (pl.col("end_ps") > pl.col("since_ps"))
    )
    common = {"from_ps": pl.max_horizontal("since_ps", "start_ps"), "to_ps": pl.min_horizontal("sent_ps", "end_ps")}
    waits = both.with_columns(**common).select("flow", "packet", "port", "from_ps", "to_ps").collect()
    if not waits.height:
        return []
    ports = hops.select(pl.col("port").unique()).collect()["port"]
    leading = [port for port in ports if any(_leads(root, port) for root in roots)]
    crosses = hops.filter(pl.col("port").is_in(leading)).select(pl.col("flow").unique()).collect()["flow"].implode()
    longest = (
        _merged(waits, ["flow", "port"]).sort("paused_ps", "port", descending=[True, False]).group_by("flow").agg(pl.first("port"))
    )
    total = _merged(waits, ["flow"]).join(longest, on="flow").join(flows.collect(), on="flow")
    listed = total.with_columns(victim=~pl.col("flow").is_in(crosses)).sort("paused_ps", "flow", descending=[True, False])
    return listed.select("flow", "src", "dst", "port", "packets", "paused_ps", "victim").to_dicts()


def tree(result: Recorded, event: int | None = None, gap_ps: int = GAP_PS) -> PauseTree:
    """Return how the pauses of an event spread; see `fanin.Result.pause_tree`."""
    import polars as pl

    known = circles(result)
    found = _with_events(result, known, gap_ps)
    summed = _summed(found)
    if not summed.height:
        raise ValueError("nothing was paused in this run")
    if event is None:
        event = summed.sort("paused_ps", "event", descending=[True, False])["event"][0]
    chosen = summed.filter(pl.col("event") == event)
    if not chosen.height:
        known_events = "0" if summed.height == 1 else f"0 to {summed.height - 1}"
        raise ValueError(f"event {event}: there is none of that number; accepted: {known_events}")
    row = chosen.row(0, named=True)
    pauses = found.filter(pl.col("event") == event)
    circle = _circle(known, row) or {"ports": None, "since_ps": None}
    flows = _flows(result, pauses, circle["ports"] or [row["root"]], row["class"])
    edges = _edges(pauses, found)
    of_class = result.scan("flows").filter(pl.col("class") == row["class"]).select("flow", "src").collect()
    followed = 0
    if flows is not None:
        hops = result.scan("hops").select(pl.col("flow").unique()).collect()["flow"]
        followed = of_class.filter(pl.col("flow").is_in(hops.implode())).height
    known_of = {"of_class": of_class.height, "followed": followed, "hosts": _hosts(edges, of_class)}
    closed = {"circle": circle["ports"], "since_ps": circle["since_ps"]}
    return PauseTree({**row, **closed, "edges": edges, "flows": flows, **known_of})


def port_rows(found: pl.DataFrame) -> list[list[str]]:
    """Return one row per row of `by_port` under `HEAD`."""
    return [
        [
            row["port"],
            str(row["class"]),
            show.count(row["pauses"]),
            show.duration(row["paused_ps"]),
            f"{100 * row['share']:.1f} %",
            show.duration(row["longest_ps"]),
            show.duration(row["longest_at_ps"]),
            show.count(row["frames"]),
        ]
        for row in found.iter_rows(named=True)
    ]


def event_rows(found: pl.DataFrame) -> list[list[str]]:
    """Return one row per row of `events` under `EVENT_HEAD`."""
    return [
        [
            str(row["event"]),
            f"{row['root']} (circle of {row['circle']})" if row["circle"] else row["root"],
            str(row["class"]),
            show.duration(row["start_ps"]),
            show.duration(row["end_ps"] - row["start_ps"]),
            show.count(row["ports"]),
            show.count(row["depth"] + 1),
            show.count(row["pauses"]),
            show.duration(row["paused_ps"]),
        ]
        for row in found.iter_rows(named=True)
    ]
