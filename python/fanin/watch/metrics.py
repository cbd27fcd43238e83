"""Metrics for Prometheus: counts by source and port, and nothing by burst or flow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from fanin.watch.hub import RECENT, Hub, Port
from fanin.watch.webhook import Webhook

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_OF_PORT: Final = ("source", "port")

_COUNTERS: Final = {
    "records": ("fanin_port_records", "Records of a port", 1.0),
    "dropped": (
        "fanin_port_dropped_packets",
        "Packets dropped at a port, at least so many where fanin_port_dropped_is_lower_bound is 1; absent where records do not say",
        1.0,
    ),
    "marked": ("fanin_port_marked_packets", "Packets that were marked (ECN) at a port; absent where the records do not say", 1.0),
    "bursts": ("fanin_port_bursts", "Bursts that have ended at a port", 1.0),
    "burst_ps": ("fanin_port_burst_seconds", "Time in bursts that have ended at a port", 1e-12),
    "far": (
        "fanin_port_far_records",
        "Records of a port that leapt ahead while it went on as before, and were left out",
        1.0,
    ),
    "set_back": ("fanin_port_clock_set_backs", "Times that the clock of a port was set back", 1.0),
    "late": ("fanin_port_late_records", "Records of a port that came after a later one and were left out", 1.0),
    "gaps": ("fanin_port_gaps", "Times in which samples of a port were missing", 1.0),
}

_BOUNDS: Final = {
    "dropped": (
        "fanin_port_dropped_is_lower_bound",
        "1 where more may have been dropped at a port than is counted: a count began anew, or records came late or disagree",
        "dropped_at_least",
    ),
    "peak_bytes": (
        "fanin_port_peak_is_lower_bound",
        "1 where the largest queue of a port is one that counters happened to see: a lower bound",
        "peak_at_least",
    ),
}
"""Gauges beside a value that say whether it is a lower bound: of which value, name, help, key of the port's report."""


class _State(Collector):
    """The present counts, as families of metrics."""

    def __init__(self, hub: Hub, webhook: Webhook | None) -> None:
        self._hub = hub
        self._webhook = webhook

    def describe(self) -> Iterable[Metric]:
        """Return nothing: what there is depends on what comes."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return all families."""
        with self._hub.lock:
            found = [*self._sources(), *self._ports()]
        return [*found, *self._alerts()]

    def _sources(self) -> Iterable[Metric]:
        hub = self._hub
        up = GaugeMetricFamily("fanin_source_alive", "1 while records of a source come, 0 while they do not", labels=["source"])
        last = GaugeMetricFamily("fanin_source_last_seconds", "When bytes of a source came last", labels=["source"])
        read = CounterMetricFamily("fanin_source_bytes", "Bytes that were read of a source", labels=["source"])
        refused = CounterMetricFamily(
            "fanin_source_refused_rows", "Rows of a source that are wrong and were passed over", labels=["source"]
        )
        leaps = CounterMetricFamily("fanin_source_clock_leaps", "Times that the records of a source leapt ahead", labels=["source"])
        opened = CounterMetricFamily("fanin_source_opened", "Files or connections of a source that were opened", labels=["source"])
        lost = CounterMetricFamily(
            "fanin_source_lost_datagrams", "Datagrams of a source that the kernel dropped", labels=["source"]
        )
        failed = CounterMetricFamily(
            "fanin_source_refused", "Files or connections of a source that could not be read", labels=["source"]
        )
        lasted = HistogramMetricFamily("fanin_burst_duration_seconds", "Durations of bursts", labels=["source"])
        peaks = HistogramMetricFamily("fanin_burst_peak_bytes", "Largest queues of bursts, where known", labels=["source"])
        for source in hub.sources:
            name = [source.name]
            up.add_metric(name, float(source.state()[0] == "alive"))
            if source.last is not None:
                last.add_metric(name, source.last)
            read.add_metric(name, source.counts.bytes)
            refused.add_metric(name, hub.reports.get(source.name, {}).get("refused", 0))
            leaps.add_metric(name, hub.reports.get(source.name, {}).get("leaps", 0))
            opened.add_metric(name, source.counts.opened)
            lost.add_metric(name, source.counts.lost)
            failed.add_metric(name, source.counts.refused)
            for family, classes in ((lasted, hub.durations), (peaks, hub.peaks)):
                family.add_metric(name, classes[source.name].cumulated(), classes[source.name].total)
        return up, last, read, refused, leaps, opened, failed, lost, lasted, peaks

    def _ports(self) -> Iterable[Metric]:
        hub = self._hub
        families: list[Metric] = []
        ports = list(hub.ports.values())
        for key, (name, about, scale) in _COUNTERS.items():
            family = CounterMetricFamily(name, about, labels=_OF_PORT)
            for port in ports:
                if (value := port.report.get(key)) is not None:
                    value = port.never_less(key, value) if key == "gaps" else value
                    family.add_metric([port.source, port.name], value * scale)
            families.append(family)
        for key, (name, about, bound) in _BOUNDS.items():
            marks = GaugeMetricFamily(name, about, labels=_OF_PORT)
            for port in ports:
                if port.report.get(key) is not None:
                    marks.add_metric([port.source, port.name], float(port.report[bound]))
            families.append(marks)
        unknown = CounterMetricFamily(
            "fanin_port_unknown_seconds", "Time of which nothing is known, by the reason", labels=(*_OF_PORT, "reason")
        )
        for port in ports:
            for why, ps in (port.report.get("unknown_ps") or {}).items():
                unknown.add_metric([port.source, port.name, why], port.never_less(why, ps) * 1e-12)
        queue = GaugeMetricFamily(
            "fanin_port_queue_bytes", "Queue of a port by its last record; absent while it is unknown", labels=_OF_PORT
        )
        lately = GaugeMetricFamily(
            "fanin_port_recent_peak_bytes", "Largest queue of a port of late; absent if unknown", labels=_OF_PORT
        )
        peak = GaugeMetricFamily("fanin_port_peak_bytes", "Largest queue of a port since the start", labels=_OF_PORT)
        inside = GaugeMetricFamily(
            "fanin_port_in_burst", "1 while a burst is open at a port; absent while that is unknown", labels=_OF_PORT
        )
        for port in ports:
            self._queue(port, queue, lately, peak, inside)
        return [*families, unknown, queue, lately, peak, inside]

    def _queue(self, port: Port, *families: GaugeMetricFamily) -> None:
        hub, report = self._hub, port.report
        known = hub.known(port)
        values = (
            report.get("queue_bytes") if known else None,
            port.recent_peak(hub.latest(port.source)[1], RECENT) if known else None,
            report.get("peak_bytes"),
            float(report.get("open_since_ps") is not None) if known else None,
        )
        for family, value in zip(families, values, strict=True):
            if value is not None:
                family.add_metric([port.source, port.name], value)

    def _alerts(self) -> Iterable[Metric]:
        webhook = self._webhook
        if webhook is None:
            return ()
        fired = CounterMetricFamily("fanin_alerts", "Alerts of a rule", labels=["rule"])
        for rule, count in webhook.fired.items():
            fired.add_metric([rule], count)
        sent = CounterMetricFamily(
            "fanin_webhook_posts", "Alerts by what became of them: sent, failed, left out", labels=["outcome"]
        )
        for outcome, count in webhook.outcomes().items():
            sent.add_metric([outcome], count)
        waiting = GaugeMetricFamily("fanin_webhook_waiting", "Alerts that wait to be sent")
        waiting.add_metric([], webhook.waiting)
        failures = CounterMetricFamily("fanin_webhook_failures", "Posts to the webhook that did not arrive")
        failures.add_metric([], webhook.poster.failures if webhook.poster is not None else 0)
        return fired, sent, waiting, failures


class Metrics:
    """The page ``/metrics``."""

    def __init__(self, hub: Hub, webhook: Webhook | None) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_State(hub, webhook))
        ProcessCollector(registry=self._registry)

    def families(self) -> list[Metric]:
        """Return the families of metrics as they are now."""
        return list(self._registry.collect())

    def text(self) -> bytes:
        """Return it in the text format of Prometheus."""
        return generate_latest(self._registry)
