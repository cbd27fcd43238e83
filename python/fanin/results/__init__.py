"""Result folders: tables as Polars frames, summary, manifest, figures, report."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin.tables import counters
from fanin.tables.overview import facts, fct_rows
from fanin.tables.recorded import SUMMARY, Recorded, ResultError
from fanin.text import show

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure

    from fanin.comparison import Comparison
    from fanin.comparison.variants import Source
    from fanin.explain import Explanation
    from fanin.explain.pauses import PauseTree

__all__ = ["Result", "ResultError", "load"]


def load(path: str | os.PathLike[str]) -> Result:
    """Open a result folder written by ``fanin run`` or `fanin.run`.

    Nothing but the manifest and the numbers of rows of the tables is read until it is asked for.

    Parameters
    ----------
    path : path-like
        The folder.

    Raises
    ------
    ResultError
        There is no such folder, it has no manifest, the manifest is damaged, or it was written by a newer Fanin; or tables have
        other numbers of rows than the manifest says, so they are not of the same run.
    """
    return Result(path)


class Result(Recorded):
    """What a run has left behind.

    Frames are read on first use and kept; the ``scan_*`` methods give lazy frames that read no more than a query needs,
    for tables larger than memory.

    Parameters
    ----------
    path : path-like
        The result folder.

    Attributes
    ----------
    path : pathlib.Path
        The result folder.
    manifest : dict
        What ran: version, status, resolved scenario and its hash, seed, fingerprint, cost. See docs/results.md.

    Examples
    --------
    >>> result = fanin.load("out/demo")  # doctest: +SKIP
    >>> result.flows.group_by("group").agg(pl.col("timeouts").sum())  # doctest: +SKIP
    """

    # -- what is found in it -------------------------------------------------------------------------------------

    def explain(self, flow: int | str) -> Explanation:
        """Say where the time of a followed flow went, in parts that add up to its completion time exactly.

        Parameters
        ----------
        flow : int or str
            Its number (``flow`` in `flows`) or its id.

        Returns
        -------
        Explanation
            ``text``, ``parts``, ``steps``; docs/explain.md says what each part is.

        Raises
        ------
        ValueError
            There is no such flow, or ``telemetry.hosts`` did not name it.
        """
        from fanin.explain import explain

        return explain(self, flow)

    def pause_events(self, gap_ps: int | None = None) -> pl.DataFrame:
        """Return the events in which pauses spread from a congested port (priority flow control), in order of time.

        Parameters
        ----------
        gap_ps : int, optional
            Longest time without a pause inside an event [ps]; 100 µs if not given.

        Returns
        -------
        polars.DataFrame
            ``event``, ``root`` (the congested port, which was not held up itself), ``class``, ``start_ps``, ``end_ps``, ``ports``
            (that were paused), ``depth`` (links beyond the first), ``pauses``, ``paused_ps``, ``circle`` (in a deadlock: how many
            ports waited for each other as the run ended, ``root`` being one of them; else null).
        """
        from fanin.explain import pauses

        return pauses.events(self, pauses.GAP_PS if gap_ps is None else gap_ps)

    def pause_tree(self, event: int | None = None, gap_ps: int | None = None) -> PauseTree:
        """Return how the pauses of one event spread: root, edges with their delays, and the flows that waited.

        Parameters
        ----------
        event : int, optional
            Its number in `pause_events`; the one with the longest pauses in all if not given.
        gap_ps : int, optional
            As for `pause_events`.

        Raises
        ------
        ValueError
            Nothing was paused, or there is no such event.
        """
        from fanin.explain import pauses

        return pauses.tree(self, event, pauses.GAP_PS if gap_ps is None else gap_ps)

    # -- figures ----------------------------------------------------------------------------------------------------

    def plot_fct_cdf(self, *, slowdown: bool = False) -> Figure:
        """Return the distribution of flow completion times, one curve per traffic entry.

        Parameters
        ----------
        slowdown : bool
            Of the slowdown (dimensionless) instead of the completion time.

        Returns
        -------
        plotly.graph_objects.Figure
            Fraction of flows over completion time (logarithmic).
        """
        from fanin import figures

        return figures.fct_cdf(self, slowdown=slowdown)

    def plot_slowdown(self) -> Figure:
        """Return mean, median, 95th and 99th percentile of the slowdown by flow-size bin."""
        from fanin import figures

        return figures.by_size(self, "slowdown")

    def plot_fct(self) -> Figure:
        """Return mean, median, 95th and 99th percentile of the completion time by flow-size bin."""
        from fanin import figures

        return figures.by_size(self, "fct")

    def plot_sequence(self, flow: int | str | None = None) -> Figure:
        """Return the time-sequence plot of a followed flow: bytes sent, sent again, acknowledged, and the congestion window.

        Parameters
        ----------
        flow : int or str, optional
            Its number or id; the followed flow with the largest slowdown if not given.
        """
        from fanin import figures

        return figures.sequence(self, flow)

    def plot_rates(self, flows: Sequence[int | str] | None = None) -> Figure:
        """Return the rates over time at which followed flows may send: of rate limiters, and of pacing that a control asks for.

        Parameters
        ----------
        flows : sequence of int or str, optional
            Their numbers or ids; if not given, the first 16 that have a rate.
        """
        from fanin.figures import rates

        return rates.figure(self, flows)

    def plot_queue(self, port: str | None = None, *, window_ps: tuple[int, int] | None = None) -> Figure:
        """Return the queue of a port over time.

        Per packet where the port was watched, otherwise by samples. More points than a screen can show are reduced to
        the smallest and largest of each pixel, and the title says so; a `window_ps` brings every packet back.

        Parameters
        ----------
        port : str, optional
            For example ``leaf0->h3``; the port with the largest queue if not given.
        window_ps : (int, int), optional
            Only this part of the run [ps].

        Raises
        ------
        ValueError
            There is no record of that port.
        """
        from fanin import figures

        return figures.queue(self, port, window_ps=window_ps)

    def plot_throughput(self, ports: str | Sequence[str] | None = None) -> Figure:
        """Return throughput over time [bit/s, frames without preamble and gap].

        Parameters
        ----------
        ports : str or sequence of str, optional
            One or several ports; if not given, the sum over all ports that lead to hosts.

        Raises
        ------
        ValueError
            There are no samples of a port.
        """
        from fanin import figures

        return figures.throughput(self, ports)

    def plot_pauses(self) -> Figure:
        """Return when ports were paused by priority flow control, a line for each port and class."""
        from fanin import figures

        return figures.pauses(self)

    def plot_drops_marks(self, port: str | None = None) -> Figure:
        """Return drops and ECN marks over time [packets per sampling interval], of `port` or of all."""
        from fanin import figures

        return figures.drops_marks(self, port)

    def save_pdf(self, path: str | os.PathLike[str], plot: str = "fct_cdf", *, width: str = "column", **options: Any) -> Path:
        """Write a figure for a paper: vector, embedded TrueType fonts, distinguishable in grey.

        Parameters
        ----------
        path : path-like
            Where to; ``.pdf``, ``.svg`` or ``.png``.
        plot : str
            Which: ``fct_cdf``, ``fct``, ``slowdown``, ``queue``, ``throughput``, ``drops_marks`` or ``pauses``.
        width : {"column", "page"}
            Width of the figure: 3.33 in or 7 in.
        **options
            Passed to the ``plot_`` method of that name.

        Raises
        ------
        ValueError
            There is no such plot.
        """
        from fanin.figures import paper

        return paper.save(self._figure(plot, options), path, width=width)

    def to_matplotlib(self, plot: str = "fct_cdf", *, width: str = "column", **options: Any) -> Any:
        """Return a figure as a `matplotlib.figure.Figure`, ready for changes by hand; parameters as in `save_pdf`."""
        from fanin.figures import paper

        return paper.to_matplotlib(self._figure(plot, options), width=width)

    def _figure(self, plot: str, options: Mapping[str, Any]) -> Figure:
        names = sorted(name.removeprefix("plot_") for name in dir(self) if name.startswith("plot_"))
        if plot not in names:
            raise ValueError(f"there is no plot '{plot}'; there are {', '.join(names)}")
        return getattr(self, f"plot_{plot}")(**options)

    # -- pages ------------------------------------------------------------------------------------------------------

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report: one HTML page that needs neither network nor other files.

        Parameters
        ----------
        path : path-like, optional
            Where to; ``report.html`` in the result folder if not given.

        Returns
        -------
        pathlib.Path
            Where it was written.
        """
        from fanin import report

        target = Path(path) if path is not None else self.path / "report.html"
        report.write(self, target)
        return target

    def compare(self, *others: Source, base: str | None = None, metric: str | Sequence[str] = ()) -> Comparison:
        """Compare this run with others; see `fanin.compare`, which also takes several seeds.

        Parameters
        ----------
        *others : Result or path-like
            Other runs.
        base : str, optional
            Name of the variant that the others are compared with: this run if not given.
        metric : str or sequence of str
            Which numbers are shown and judged.

        Raises
        ------
        CompareError
            Something is wrong with a folder or a name; all of it is in ``problems``.
        """
        from fanin import comparison
        from fanin.comparison import variants

        return comparison.of(variants.gather([self, *others]), base=base, metric=metric)

    def __repr__(self) -> str:
        return f"<fanin.Result {str(self.path)!r}: {self.status}, {show.duration(self.manifest.get('sim_ps'))} simulated>"

    def _repr_html_(self) -> str:
        def row(cells: list[str], tag: str = "td") -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        title = f"<b>{html.escape(str(self.manifest.get('name') or self.path.name))}</b> – {html.escape(self.status)}"
        if self.manifest.get("reason"):
            title += f": {html.escape(str(self.manifest['reason']))}"
        if not (self.path / SUMMARY).is_file():
            return f"<div>{title}</div>"
        head, rows = fct_rows(self.summary)
        totals = "".join(row([fact.name, fact.text]) for fact in facts(self.summary, self.manifest))
        bins = row(head, "th") + "".join(row(cells) for cells in rows)
        counted = "".join(
            f"<p>{html.escape(group.title)}: {html.escape(group.doc)}</p><table>{row(counters.HEAD, 'th')}"
            + "".join(map(row, counters.rows(group, zeros=False)))
            + "</table>"
            for group in counters.groups(self.summary)
        )
        return f"<div>{title}<table>{totals}</table><table>{bins}</table>{counted}</div>"
