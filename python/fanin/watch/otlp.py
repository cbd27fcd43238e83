"""Metrics for an OpenTelemetry collector: OTLP over HTTP, in JSON, of the counts that ``/metrics`` has.

Source: OTLP 1.x, specification.md §OTLP/HTTP and opentelemetry/proto/metrics/v1/metrics.proto; enumerations are numbers there, and
integers of 64 bits texts. Values count from the start of the watch, so that an export that fails loses nothing.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client.core import Metric

from fanin.watch.metrics import Metrics
from fanin.watch.posting import Poster, is_address

_EVERY: Final = 10.0
"""Seconds between two exports."""

_PATH: Final = "/v1/metrics"
_CUMULATIVE: Final = 2
_UNITS: Final = {"_bytes": "By", "_seconds": "s"}


def request(families: Iterable[Metric], resource: dict[str, str], started_ns: int, now_ns: int) -> dict[str, Any]:
    """Return an ``ExportMetricsServiceRequest`` with these families."""
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeMetrics": [
                    {"scope": {"name": "fanin.watch"}, "metrics": [_metric(family, started_ns, now_ns) for family in families]}
                ],
            }
        ]
    }


def _attributes(labels: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]


def _metric(family: Metric, started_ns: int, now_ns: int) -> dict[str, Any]:
    unit = next((unit for ending, unit in _UNITS.items() if family.name.endswith(ending)), "1")
    metric: dict[str, Any] = {"name": family.name, "description": family.documentation, "unit": unit}
    times = {"startTimeUnixNano": str(started_ns), "timeUnixNano": str(now_ns)}
    if family.type == "histogram":
        return metric | {"histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": _histograms(family, times)}}
    points = [
        {"attributes": _attributes(sample.labels), **times, "asDouble": float(sample.value)}
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]
    if family.type == "counter":
        return metric | {"sum": {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}}
    return metric | {"gauge": {"dataPoints": points}}


def _histograms(family: Metric, times: dict[str, str]) -> list[dict[str, Any]]:
    """Return histograms by their labels; Prometheus counts what is up to each bound, OTLP what is between two."""
    points: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for sample in family.samples:
        labels = {key: value for key, value in sample.labels.items() if key != "le"}
        new = {"attributes": _attributes(labels), **times, "explicitBounds": [], "bucketCounts": [], "count": "0", "sum": 0.0}
        point = points.setdefault(tuple(sorted(labels.items())), new)
        if sample.name.endswith("_bucket"):
            before = sum(int(count) for count in point["bucketCounts"])
            point["bucketCounts"].append(str(int(sample.value) - before))
            if sample.labels["le"] != "+Inf":
                point["explicitBounds"].append(float(sample.labels["le"]))
        elif sample.name.endswith("_count"):
            point["count"] = str(int(sample.value))
        elif sample.name.endswith("_sum"):
            point["sum"] = float(sample.value)
    return list(points.values())


class Otlp:
    """Exports to a collector, every ten seconds and at the end.

    Parameters
    ----------
    url : str
        Address of the collector; without a path, the usual one.
    metrics : Metrics
        What is exported.

    Raises
    ------
    ValueError
        It is no address.
    """

    def __init__(self, url: str, metrics: Metrics) -> None:
        if not is_address(url):
            raise ValueError(f"--otlp {url}: is no address of a collector; accepted: for example http://127.0.0.1:4318")
        full = url.rstrip("/") + _PATH if urlsplit(url).path in ("", "/") else url
        self.poster = Poster(full, "collector")
        self.exports = 0
        self._metrics = metrics
        self._started_ns = time.time_ns()
        self._resource = {
            "service.name": "fanin-watch",
            "service.version": version("fanin"),
            "service.instance.id": str(uuid.uuid4()),
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch otlp", daemon=True)

    def start(self) -> None:
        """Begin to export."""
        self._thread.start()

    def export(self) -> None:
        """Export once."""
        document = request(self._metrics.families(), self._resource, self._started_ns, time.time_ns())
        if self.poster.post(json.dumps(document, allow_nan=False).encode()) == "sent":
            self.exports += 1

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY):
            self.export()

    def stop(self) -> None:
        """Export what there is in the end."""
        self._stopping.set()
        self._thread.join(timeout=_EVERY)
        self.export()
