"""The live page of ``fanin watch``, its metrics and its alerts: on loopback only, escaped, and never in the way of the reading."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from browsing import CONTRAST, Page, needs_browser, script
from fanin.scenario import ScenarioError
from fanin.watch import otlp, posting, rules, webhook
from fanin.watch.metrics import CONTENT_TYPE
from fanin.watch.watching import Choices, Watch
from watching import EVIL, HEADER, Running, free_port, once, rows, running, written

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "dashboards" / "fanin-watch.json"
PROMETHEUS = shutil.which("prometheus")
METRIC = r"\b(?:fanin|process)_[a-z_]+"


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A watch of two ports, and of one whose name and flows are markup."""
    file = written(tmp_path_factory.mktemp("watch") / "a.csv", HEADER + rows(5))
    evil = rows(1, ports=1, first=5).replace("eth0", EVIL).replace("10.9.9.9", EVIL)
    with file.open("a") as more:
        more.write(evil + "soon,eth0,0,1500,f\n")
    with running(file, page=True, stall="600s") as found:
        found.until(lambda: found.watch.hub.found == 11)
        yield found


class TestServer:
    def test_the_page_refers_to_nothing_and_forbids_everything_but_its_events(self, watch: Running) -> None:
        status, text, headers = watch.get("/")
        page = Page(text)
        assert (status, page.references, page.handlers) == (200, [], [])
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
        assert "connect-src 'self'" in policy[1]
        assert "unsafe-eval" not in policy[1]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "169.254.169.254", ""])
    def test_other_names_are_refused(self, watch: Running, host: str) -> None:
        for path in ("/", "/events", "/metrics"):
            status, text, _ = watch.get(path, host)
            assert (status, "127.0.0.1 and localhost only" in text) == (403, True)
        assert watch.server is not None
        assert watch.get("/metrics", f"localhost:{watch.server.server_port}")[0] == 200

    @pytest.mark.parametrize(
        "path", ["/etc/passwd", "/../../etc/passwd", "/%2e%2e/a.csv", "//a.csv", "/?x", "/events/x", "/style.css"]
    )
    def test_no_file_is_read(self, watch: Running, path: str) -> None:
        assert watch.get(path)[:2] == (404, "there are /, /events and /metrics\n")

    def test_other_methods_and_addresses_are_none(self, watch: Running) -> None:
        assert watch.server is not None
        connection = http.client.HTTPConnection("127.0.0.1", watch.server.server_port, timeout=10)
        connection.request("POST", "/", body="x")
        assert connection.getresponse().status == 501
        connection.close()
        assert watch.server.server_address[0] == "127.0.0.1"

    def test_events_hold_the_state_as_text(self, watch: Running) -> None:
        assert watch.server is not None
        connection = http.client.HTTPConnection("127.0.0.1", watch.server.server_port, timeout=10)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
        state = json.loads(answer.readline().decode().removeprefix("data: "))
        connection.close()
        assert state["found"] == 11
        assert [len(row["level"]) for row in state["strips"]] == [state["columns"]] * 3
        assert state["sources"][0]["state"] == "alive"
        assert "1 row refused" in state["sources"][0]["said"]
        (problem,) = state["sources"][0]["problems"]
        assert "'soon' is not a number" in problem
        first = state["bursts"][0]
        assert first["cells"][2] == EVIL
        assert first["tables"][0]["rows"][0][0].startswith("10.0.0.")


@needs_browser
class TestInBrowser:
    def open(self, browser: webdriver.Chrome, watch: Running, width: int) -> None:
        assert watch.server is not None
        browser.set_window_size(width, 1000)
        for log in ("browser", "performance"):
            browser.get_log(log)  # type: ignore[no-untyped-call]
        browser.get(watch.server.url)
        WebDriverWait(browser, 60).until(lambda driver: script(driver, "return document.documentElement.dataset.turn"))

    @pytest.mark.parametrize("width", [1400, 400])
    def test_it_shows_what_there_is_and_fits(self, browser: webdriver.Chrome, watch: Running, width: int) -> None:
        self.open(browser, watch, width)
        assert browser.find_element(By.ID, "link").text == "live"
        assert browser.find_element(By.ID, "found").text == "11 bursts"
        assert "alive" in browser.find_element(By.ID, "source-list").text
        assert len(browser.find_elements(By.CSS_SELECTOR, "#ports-list tbody tr")) == 3
        assert len(browser.find_elements(By.CSS_SELECTOR, "#bursts-list tbody tr")) == 11
        wide = script(browser, "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide[0] <= wide[1], "the page itself does not scroll sideways"
        assert script(browser, "return document.getElementById('heat').width") > 0.8 * (width - 100)
        low = [one for one in script(browser, CONTRAST) if one[0] < 4.5]
        assert low == []
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]

    def test_what_sources_say_is_text(self, browser: webdriver.Chrome, watch: Running) -> None:
        self.open(browser, watch, 1400)
        assert browser.find_elements(By.CSS_SELECTOR, "main img") == []
        assert EVIL in browser.find_element(By.ID, "ports-list").text
        browser.find_element(By.CSS_SELECTOR, "#bursts-list tbody tr").click()
        assert browser.find_element(By.ID, "chosen-title").text.startswith(f"Burst 11 at {EVIL}")
        assert f"{EVIL}:5 tcp" in browser.find_element(By.ID, "chosen-tables").text
        assert browser.find_elements(By.CSS_SELECTOR, "main img") == []

    def test_unknown_is_hatched_and_drops_are_red(self, browser: webdriver.Chrome, watch: Running) -> None:
        self.open(browser, watch, 1400)
        colors = script(
            browser,
            """
            const canvas = document.getElementById("heat");
            const part = (from, to) => {
              const data = canvas.getContext("2d").getImageData(from, 0, to - from, canvas.height).data;
              const seen = new Set();
              for (let i = 0; i < data.length; i += 4) seen.add([data[i], data[i + 1], data[i + 2]].join());
              return seen.size;
            };
            return [part(Math.round(canvas.width * 0.5), Math.round(canvas.width * 0.9)), part(canvas.width - 4, canvas.width)];
            """,
        )
        # Lines over the ground, and their edges; the last column is the one with records.
        assert colors[0] > 2
        assert colors[1] >= 1

    def test_it_goes_on_by_itself_and_says_when_nobody_answers(self, browser: webdriver.Chrome, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(1))
        with running(file, page=True) as watch:
            watch.until(lambda: watch.watch.hub.found == 2)
            self.open(browser, watch, 1400)
            with file.open("a") as more:
                more.write(rows(2, first=1))
            WebDriverWait(browser, 60).until(lambda driver: driver.find_element(By.ID, "found").text == "6 bursts")
        WebDriverWait(browser, 60).until(lambda driver: driver.find_element(By.ID, "link").text == "lost")
        assert browser.find_element(By.ID, "gone").is_displayed()


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the values of a page of metrics: name and labels → value."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? (\S+)", line).groups()  # type: ignore[union-attr]
            found[name, tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))] = float(value)
    return found


class TestMetrics:
    def test_counts_by_source_and_port_and_nothing_by_burst_or_flow(self, watch: Running) -> None:
        status, text, headers = watch.get("/metrics")
        assert (status, headers["Content-Type"]) == (200, CONTENT_TYPE)
        found = samples(text)
        names = {label for _, labels in found for label, _ in labels}
        assert names == {"source", "port", "le"}, "nothing is unknown: no reason"
        source = str(watch.watch.hub.sources[0].name)
        port = (("port", "eth1"), ("source", source))
        assert found["fanin_port_records_total", port] == 5 * 31
        assert found["fanin_port_bursts_total", port] == 5
        assert found["fanin_port_burst_seconds_total", port] == pytest.approx(5 * 2.9e-6, rel=0.2)
        assert found["fanin_port_queue_bytes", port] == 0
        assert found["fanin_port_peak_bytes", port] == 29 * 1500
        assert ("fanin_port_dropped_packets_total", port) not in found, "no column says what was dropped: unknown, not 0"
        assert found["fanin_source_alive", (("source", source),)] == 1
        assert found["fanin_source_refused_rows_total", (("source", source),)] == 1
        assert found["fanin_burst_peak_bytes_bucket", (("le", "100000"), ("source", source))] == 11
        assert found["fanin_burst_duration_seconds_count", (("source", source),)] == 11
        assert len(found) < 200

    def test_a_port_of_which_nothing_is_known_has_no_queue(self, tmp_path: Path) -> None:
        file = written(tmp_path / "a.csv", HEADER + rows(1))
        with running(file, page=True, stall="300ms") as stalled:
            stalled.until(lambda: stalled.watch.hub.found == 2)
            stalled.until(lambda: stalled.watch.hub.sources[0].state()[0] == "stalled")
            found = {name for name, _ in samples(stalled.get("/metrics")[1])}
        assert "fanin_port_peak_bytes" in found
        assert found.isdisjoint({"fanin_port_queue_bytes", "fanin_port_recent_peak_bytes", "fanin_port_in_burst"})

    def test_lower_bounds_are_marked_beside_what_they_bound(self, tmp_path: Path) -> None:
        # Counters of `b` begin anew; those of `a` have the largest queue of each interval, too.
        looks = "".join(f"{i},a,{i},{i},5\n{i},b,{i % 5},{i % 5},\n" for i in range(12))
        file = written(tmp_path / "a.csv", "t,p,b,d,w\n" + looks)
        columns = "time=t:s,port=p,bytes=b:total,drops=d:total,watermark=w:B"
        with running(file, page=True, settings={"columns": columns}, stall="600s") as watch:
            watch.until(lambda: watch.counts() == {"a": 11, "b": 11})
            found = samples(watch.get("/metrics")[1])
            resource = dict.fromkeys(("service.version", "service.instance.id"), "") | {"service.name": "fanin-watch"}
            exported = TestOtlp().exported(otlp.request(watch.watch.metrics.families(), resource, 1, 2))
        of = {port: (("port", port), ("source", str(file))) for port in "ab"}
        assert [found["fanin_port_dropped_packets_total", of[port]] for port in "ab"] == [11, 9]
        assert [found["fanin_port_dropped_is_lower_bound", of[port]] for port in "ab"] == [0, 1]
        assert found["fanin_port_peak_is_lower_bound", of["a"]] == 0
        assert ("fanin_port_peak_is_lower_bound", of["b"]) not in found, "its queue is unknown"
        points = exported["fanin_port_dropped_is_lower_bound"].gauge.data_points
        assert sorted(point.as_double for point in points) == [0, 1]

    def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(self, watch: Running) -> None:
        dashboard = json.loads(DASHBOARD.read_text())
        text = watch.get("/metrics")[1] + 'fanin_alerts_total{rule="x"} 1\n'
        there: dict[str, set[str]] = {}
        for name, labels in samples(text):
            there.setdefault(name, set()).update(label for label, _ in labels)
        # Absent where the records do not say.
        there["fanin_port_dropped_packets_total"] = there["fanin_port_dropped_is_lower_bound"] = {"source", "port"}
        there["fanin_port_unknown_seconds_total"] = {"source", "port", "reason"}
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        asked += [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
        assert len(asked) >= 15
        for expression in asked:
            names = re.findall(METRIC, expression)
            assert names, expression
            for name in names:
                assert name in there, f"{expression}: there is no metric {name}"
            selectors = re.findall(r"(\w+)\{([^}]*)\}", expression)
            for name, labels in selectors:
                unknown = set(re.findall(r"(\w+)=~", labels)) - there[name] - {"job"}
                assert unknown == set(), expression
            by = re.search(r"by \(([^)]*)\)", expression)
            assert by is None or {label.strip() for label in by[1].split(",")} <= set().union(*(there[name] for name in names))

    @pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed: apt-get install prometheus")
    def test_prometheus_reads_them_and_answers_the_dashboard(self, watch: Running, tmp_path: Path) -> None:
        assert watch.server is not None
        page = f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"
        ask = partial(values, page)
        target = watch.server.url.removeprefix("http://").rstrip("/")
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "fanin", "static_configs": [{"targets": [target]}]}],
        }
        written(tmp_path / "prometheus.yml", json.dumps(config))
        command = [
            str(PROMETHEUS),
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={page}",
            "--log.level=error",
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                ask_until(lambda: len(ask("fanin_source_alive")) == 1)
                ask_until(lambda: ask("fanin_port_bursts_total") != [] and ask("count_over_time(fanin_source_alive[1m])")[0] > 3)
                for panel in json.loads(DASHBOARD.read_text())["panels"]:
                    for one in panel["targets"]:
                        expression = one["expr"].replace("$source", ".*").replace("$port", ".*").replace("$job", ".*")
                        answer = ask(expression.replace("$__rate_interval", "1m"))
                        absent = any(name in expression for name in ("dropped_packets", "unknown_seconds", "fanin_alerts"))
                        assert absent or answer, expression
                assert ask("sum(fanin_port_bursts_total)") == [11]
            finally:
                process.terminate()
                process.communicate(timeout=30)


def values(page: str, expression: str) -> list[float]:
    """Return the values that the Prometheus of a page has for an expression."""
    url = f"http://{page}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(url, timeout=10) as answer:
        return [float(one["value"][1]) for one in json.loads(answer.read())["data"]["result"]]


def ask_until(what: Any) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if what():
                return
        except (OSError, IndexError):
            pass
        time.sleep(0.3)
    raise AssertionError("Prometheus has nothing")


class Receiver:
    """A webhook that keeps what it gets, after some failures."""

    def __init__(self, fails: int = 0) -> None:
        self.got: list[dict[str, Any]] = []
        self.paths: set[str] = set()
        self.asked = 0
        self.go_on = threading.Event()  # all but the first post wait for it
        self.go_on.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.asked:
                    outer.go_on.wait(60)
                outer.asked += 1
                outer.paths.add(self.path)
                good = outer.asked > fails
                if good:
                    outer.got.append(json.loads(body))
                self.send_response(200 if good else 503)
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver(fails=2)
    yield made
    made.close()


class TestAlerts:
    def test_rules_hold_for_bursts_and_alerts_arrive_though_the_webhook_fails_at_first(
        self, tmp_path: Path, receiver: Receiver
    ) -> None:
        text = f"""
        webhook = "{receiver.url}"
        [[rule]]
        name = "long"
        queue = "40KB"
        duration = "2us"
        pause = "0.001s"
        [[rule]]
        name = "one sender"
        share = 0.9
        [[rule]]
        name = "eth1 only"
        queue = "40KB"
        ports = ["eth1"]
        pause = "3600s"
        [[rule]]
        name = "drops"
        drops = 1
        """
        read = rules.read(written(tmp_path / "rules.toml", text))
        watch = once(written(tmp_path / "a.csv", HEADER + rows(3)), rules=read)
        assert watch.watch.webhook is not None
        assert watch.watch.webhook.fired["eth1 only"] == 1, "one in an hour"
        assert 2 <= watch.watch.webhook.fired["long"] <= 6
        assert set(watch.watch.webhook.fired) == {"long", "eth1 only"}, "drops are unknown, and nobody has 90 %"
        assert watch.watch.webhook.outcomes() == {"sent": len(receiver.got), "failed": 0, "left_out": 0}
        alert = next(one for one in receiver.got if one["rule"] == "eth1 only")
        assert (alert["schema"], alert["port"], alert["peak_bytes"], alert["open"]) == ("alert/1", "eth1", 43_500, False)
        assert alert["culprits"][0]["name"].startswith("10.0.1.")
        assert 0.2 < alert["culprits"][0]["share"] < 0.3

    def test_a_burst_that_does_not_end_is_told_of_once(self, tmp_path: Path) -> None:
        read = rules.read(
            written(tmp_path / "r.toml", '[[rule]]\nname = "standing"\nqueue = "50KB"\nduration = "5ms"\npause = "1us"\n')
        )
        text = "time_us,queue_bytes\n" + "".join(f"{100 * i},{60_000 if i > 20 else 0}\n" for i in range(200))
        file = written(tmp_path / "a.csv", text)
        with running(file, rules=read) as watch:
            watch.until(lambda: len(watch.watch.hub.alerts) == 1)
            time.sleep(1.2)
            assert [alert["open"] for alert in watch.watch.hub.alerts] == [True]
            (said,) = watch.watch.hub.document()["alerts"]
            assert re.fullmatch(r"standing: a, 0\.002 s, 1\d\.\d+ ms so far, 60 KB", said), said
            with file.open("a") as more:
                more.write("20000,0\n20100,0\n")
            watch.until(lambda: watch.watch.hub.found == 1)
            assert len(watch.watch.hub.alerts) == 1, "its end is no second one"

    def test_a_webhook_that_answers_nobody_stops_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(webhook, "_BACKLOG", 3)
        monkeypatch.setattr(webhook, "_PAUSE", (60.0, 60.0))
        hook = webhook.Webhook("http://127.0.0.1:1/nobody")
        begun = time.monotonic()
        for _ in range(100):
            hook.post({"rule": "r"})
        assert time.monotonic() - begun < 30, "no pause was waited for"
        assert hook.fired["r"] == 100
        while not hook.poster.news if hook.poster is not None else True:
            time.sleep(0.01)
        assert hook.waiting + hook.outcomes()["left_out"] == 100
        assert 95 <= hook.outcomes()["left_out"] <= 97
        assert hook.poster is not None
        (news,) = hook.poster.news
        assert news == "webhook http://127.0.0.1:1/nobody: does not answer: Connection refused"
        assert (hook.waiting, hook.undelivered) == (100 - hook.outcomes()["left_out"], 100), "the one in hand waits too"
        hook.close(0.1)
        assert hook.undelivered == 100

    def test_that_a_webhook_is_down_is_said_once_and_that_it_is_back(
        self, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(webhook, "_PAUSE", (0.05, 0.05))
        monkeypatch.setattr(posting, "_TIMEOUT", 60.0)
        receiver.go_on.clear()
        read = rules.read(written(tmp_path / "r.toml", f'webhook = "{receiver.url}"\n[[rule]]\nname = "r"\nqueue = "40KB"\n'))
        file = written(tmp_path / "a.csv", HEADER + rows(2))
        other = written(tmp_path / "b.csv", HEADER)
        with running(file, other, rules=read, page=True) as watch:
            watch.until(lambda: len(watch.said) == 1)
            shown = watch.watch.hub.document()
            assert shown["troubles"] == [f"webhook {receiver.url}: answers 503 Service Unavailable"]
            assert shown["alerts"][-1].startswith("r: eth0 (a.csv), 0.001 s, ")
            receiver.go_on.set()
            watch.until(lambda: len(receiver.got) == 2)
            watch.until(lambda: len(watch.said) == 2)
            found = samples(watch.get("/metrics")[1])
        assert watch.said == [
            f"webhook {receiver.url}: answers 503 Service Unavailable",
            f"webhook {receiver.url}: answers again, after 2 failed posts",
        ]
        assert found["fanin_webhook_failures_total", ()] == 2
        assert found["fanin_webhook_posts_total", (("outcome", "sent"),)] == 2

    def test_all_that_is_wrong_with_rules_is_said_at_once_with_lines(self, tmp_path: Path) -> None:
        text = """webhok = "x"
webhook = "ftp://x"
[[rule]]
name = "a"
quueue = "5KB"
[[rule]]
name = "a"
queue = 5
share = 2
duration = "soon"
drops = 0
ports = "eth0"
"""
        with pytest.raises(ScenarioError) as error:
            rules.read(written(tmp_path / "rules.toml", text))
        said = [(found["path"], found["line"], found["message"], found["suggestion"]) for found in error.value.problems]
        assert ("webhok", 1, "is no key that is known", "did you mean 'webhook'?") in said
        assert ("webhook", 2, "is no address of a webhook", None) in said
        assert ("rule[0].quueue", 5, "is no key that is known", "did you mean 'queue'?") in said
        assert ("rule[0]", 3, "holds for every burst", None) in said
        assert ("rule[1].queue", 8, "is no text with a unit", None) in said
        assert ("rule[1].share", 9, "cannot be used", None) in said
        assert ("rule[1].duration", 10, "is not a number followed by a unit", None) in said
        assert {path for path, *_ in said if path.startswith("rule[1]")} >= {"rule[1].drops", "rule[1].ports"}
        assert all(found["accepted"] for found in error.value.problems)
        for bad, message in (("x = [", "is no TOML"), ("", "there is none")):
            with pytest.raises(ScenarioError, match=message):
                rules.read(written(tmp_path / "bad.toml", bad))
        latin = tmp_path / "latin.toml"
        latin.write_bytes('[[rule]]\nname = "länger"\n'.encode("latin-1"))
        with pytest.raises(ValueError, match=r"latin\.toml: is not UTF-8 text \(byte 18\)"):
            rules.read(latin)


class TestOtlp:
    def exported(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the metrics of an export, which are as the protocol defines them, by name."""
        request = json_format.ParseDict(document, ExportMetricsServiceRequest())
        (resource,) = request.resource_metrics
        attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
        assert attributes["service.name"] == "fanin-watch"
        assert set(attributes) == {"service.name", "service.version", "service.instance.id"}
        return {metric.name: metric for metric in resource.scope_metrics[0].metrics}

    def test_a_collector_gets_what_prometheus_gets_and_nothing_by_burst_or_flow(
        self, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(otlp, "_EVERY", 0.2)
        file = written(tmp_path / "a.csv", HEADER + rows(5))
        with running(file, page=True, otlp=receiver.url.removesuffix("/alerts")) as watch:
            watch.until(lambda: watch.watch.hub.found == 10)
            exporter = watch.watch.otlp
            assert exporter is not None
            watch.until(lambda: exporter.exports >= 3)
            begun = len(receiver.got)
            watch.until(lambda: len(receiver.got) >= begun + 2)  # the second one began after all bursts were found
            prometheus, document = samples(watch.get("/metrics")[1]), receiver.got[-1]
            exports = len(receiver.got)
        assert len(receiver.got) > exports, "and once more at the end"
        assert receiver.paths == {"/v1/metrics"}
        assert [line.split(": ", 1)[1] for line in watch.said] == [
            "answers 503 Service Unavailable",
            "answers again, after 2 failed posts",
        ]
        found = self.exported(document)
        source = str(file)
        values = {}
        for name, metric in found.items():
            kind = metric.WhichOneof("data")
            for point in getattr(metric, kind).data_points:
                labels = tuple(sorted((one.key, one.value.string_value) for one in point.attributes))
                assert {key for key, _ in labels} <= {"source", "port"}
                assert 0 < point.start_time_unix_nano < point.time_unix_nano
                if kind == "histogram":
                    assert sum(point.bucket_counts) == point.count == 10
                    assert len(point.explicit_bounds) == len(point.bucket_counts) - 1
                    values[f"{name}_count", labels] = float(point.count)
                    values[f"{name}_sum", labels] = point.sum
                else:
                    values[name + ("_total" if kind == "sum" else ""), labels] = point.as_double
            if kind != "gauge":
                assert getattr(metric, kind).aggregation_temporality == 2, "cumulative"
        assert values["fanin_port_records_total", (("port", "eth1"), ("source", source))] == 5 * 31
        assert found["fanin_port_bursts"].sum.is_monotonic
        assert (found["fanin_port_peak_bytes"].unit, found["fanin_burst_duration_seconds"].unit) == ("By", "s")
        # All that the page of Prometheus has, with its values; buckets count otherwise.
        same = {key: value for key, value in prometheus.items() if "_bucket" not in key[0] and not key[0].startswith("process_")}
        assert len(same) > 20
        assert {key: values[key] for key in same} == same
        (durations,) = found["fanin_burst_duration_seconds"].histogram.data_points
        assert list(durations.bucket_counts) == [10, *[0] * 10]

    @pytest.mark.parametrize("url", ["127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "http://["])
    def test_an_address_that_is_none_is_refused(self, tmp_path: Path, url: str) -> None:
        with pytest.raises(ValueError, match="is no address of a collector; accepted: for example http:"):
            Watch([str(written(tmp_path / "a.csv", HEADER))], {}, Choices(otlp=url))
