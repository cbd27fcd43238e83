"""The native core: reads scenarios, runs them, writes result folders, analyses traces."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal, Self, final

__all__ = [
    "Live",
    "ScenarioError",
    "TraceError",
    "analyze",
    "bench",
    "bench_features",
    "bench_scenario",
    "build",
    "check",
    "check_many",
    "costs",
    "counters",
    "counters_page",
    "explain",
    "explain_capture",
    "facts",
    "lines",
    "parquet_rows",
    "python_types",
    "quantity",
    "reference",
    "run",
    "schema",
    "summarize",
    "trace_export",
    "trace_formats",
    "trace_records",
    "trials",
    "vectors",
    "version",
]

@final
class Live:
    """A stream that is analysed as it comes: bytes go in, what has ended comes out as JSON."""

    def __new__(cls, name: str, settings: str, gap: str | None, cell: str, retire: str) -> Self:
        """Begin a stream of that name; `settings` are those of an analysis, as JSON."""

    def push(self, bytes: bytes) -> None:
        """Take the next bytes; `TraceError` if they are of no format that can be read as it comes."""

    def push_datagram(self, bytes: bytes, ns: int) -> None:
        """Take a datagram that came at a time [ns since 1970]; one that cannot be read is passed over and counted."""

    def replay(self, bytes: bytes) -> None:
        """Take bytes that an earlier watch has counted: what they say of later ones is kept, and nothing is counted."""

    @staticmethod
    def needs_beginning(start: bytes) -> bool:
        """Return whether a file with this start has parts that cannot be read alone."""

    def settle(self) -> None:
        """Go on with what there is, if the stream is slow: called a few times a second."""

    def reopen(self) -> None:
        """End the present file; what comes next is another one."""

    def end(self) -> None:
        """End the stream, and bursts that are open."""

    def stop(self) -> None:
        """End bursts that are open; an unfinished last line stays unread."""

    def remember_header(self, line: bytes) -> None:
        """Remember the first line of a file that is read on from a later place."""

    def used(self) -> int:
        """Return how many bytes of the present file need not be read again."""

    def take(self) -> list[str]:
        """Return what has ended since this was last asked: ``bursts``, ``gaps``, ``cells``, ``cells_lost``.

        It comes in parts, one at least, of 64 bursts at most each, in the order of their ends.
        """

    def report(self) -> str:
        """Return the present state: of the stream, and of each of its ``ports``."""

def quantity(kind: Literal["size", "rate", "time"], text: str) -> int:
    """Return the base steps of a text with a unit: bytes, bits per second, picoseconds; `ValueError` says what is wrong."""

class ScenarioError(ValueError):
    """A scenario that cannot be run."""

    problems: list[dict[str, Any]]
    """Everything wrong with it: severity, path, line, value, message, accepted, suggestion."""

def check(text: str, format: Literal["toml", "json"], base_dir: str) -> dict[str, Any]:
    """Read and validate a scenario; ``problems``, ``resolved`` (canonical JSON), ``hash`` and ``rendered``."""

def check_many(texts: list[str], base_dir: str, threads: int) -> list[tuple[str | None, list[dict[str, Any]]]]:
    """Check scenarios in JSON on some threads: for each its hash, None with errors, and its problems."""

def facts(text: str, format: Literal["toml", "json"], base_dir: str) -> dict[str, Any]:
    """Say what a scenario simulates: ``nodes``, ``links``, ``base_rtt_ps``, ``traffic``, ``packet_hops``, ``threads``, ..."""

def trials(text: str, format: Literal["toml", "json"], base_dir: str) -> list[dict[str, Any]]:
    """Return every policy with what a scenario would get to try it: ``part``, ``kind``, ``doc``, ``settings``."""

def costs(text: str, format: Literal["toml", "json"], base_dir: str) -> tuple[int, int | None]:
    """Return the bytes of headers that policies of a scenario add to a frame, and their memory at a switch; None: not known."""

def build() -> dict[str, str]:
    """Return what this build is: ``version``, ``target``, ``profile``."""

def lines(text: str, paths: list[str]) -> list[int | None]:
    """Return the line of what stands at each path of a TOML document, or of the nearest table around it."""

def run(
    text: str,
    format: Literal["toml", "json"],
    base_dir: str,
    out_dir: str,
    progress: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    """Run a scenario, write its result folder and return the summary."""

def summarize(
    text: str,
    format: Literal["toml", "json"],
    base_dir: str,
    progress: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    """Run a scenario without recording or writing anything: ``summary``, and what a manifest says of a run."""

class TraceError(ValueError):
    """A trace that cannot be analysed."""

    problems: list[dict[str, Any]]
    """Everything wrong with it: file, place, column, value, message, accepted, suggestion, and all of it as text."""

def analyze(settings: str, progress: Callable[[dict[str, Any]], None] | None) -> str:
    """Analyse a trace as the settings (JSON) say; the report as JSON."""

def explain_capture(settings: str, flow: str | None, progress: Callable[[dict[str, Any]], None] | None) -> str:
    """Say where the time of a transfer in two captures went, of the flow of that name or the slowest; as JSON."""

def trace_records(settings: str, port: str, stretches: list[tuple[int, int]], most: int) -> list[dict[str, Any]]:
    """Return the records of a port in each of some stretches of time: columns as bytes, ``count`` and ``reduced``."""

def parquet_rows(path: str | PathLike[str]) -> int | None:
    """Return the number of rows in a Parquet file, by its footer; None where that cannot be read."""

def trace_formats() -> list[str]:
    """Return the names of all formats of traces."""

def trace_export(settings: str, folder: str, progress: Callable[[dict[str, Any]], None] | None) -> int:
    """Write the records of a trace to ``records.parquet`` in a folder; how many there are."""

def explain(
    src: str,
    start_ps: int,
    finish_ps: int | None,
    segment_columns: dict[str, list[Any]],
    hop_columns: dict[str, list[Any]],
    pause_columns: dict[str, list[Any]],
) -> str:
    """Say where the time of a flow went, by the columns of its packets, of the links that they crossed, and of pauses; as JSON."""

def schema() -> str:
    """Return the JSON Schema of scenarios."""

def reference() -> str:
    """Return the reference of scenarios in Markdown."""

def python_types() -> str:
    """Return the source of the typed classes of scenarios."""

def counters() -> list[dict[str, Any]]:
    """Return the counters of mechanisms by group: ``name``, ``doc``, and ``counters`` with ``name``, ``doc`` and ``kind``."""

def counters_page() -> str:
    """Return the reference of counters in Markdown."""

def version() -> str:
    """Return the version of the core."""

def bench(workload: str, scale: float, folder: str) -> dict[str, Any]:
    """Run a benchmark workload and measure it; what it records goes into a folder."""

def bench_features() -> list[tuple[str, bool]]:
    """Return the features of ``W2-128/FEATURE``, and whether each records something, so that the whole run counts."""

def bench_scenario(workload: str, scale: float) -> dict[str, Any]:
    """Return the scenario of a benchmark workload, with every default filled in."""

def vectors(mechanism: str, params: str) -> dict[str, Any]:
    """Return the test vectors of a mechanism, by its parameters as a JSON object."""
