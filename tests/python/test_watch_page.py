"""The live page of ``fanin watch``, its metrics and its alerts: on loopback only, escaped, and never in the way of the reading."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from fanin.scenario import ScenarioError
from fanin.watch import rules, webhook
from fanin.watch.metrics import CONTENT_TYPE
from test_report import CONTRAST, Page, browser, needs_browser, script
from watching import EVIL, HEADER, Running, once, rows, running, written

__all__ = ["browser"]

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


class TestInBrowser:
    pytestmark = needs_browser

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
        assert names == {"source", "port", "le"}
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
            stalled.until(lambda: stalled.watch.hub.sources[0].state(time.time())[0] == "stalled")
            found = {name for name, _ in samples(stalled.get("/metrics")[1])}
        assert "fanin_port_peak_bytes" in found
        assert found.isdisjoint({"fanin_port_queue_bytes", "fanin_port_recent_peak_bytes", "fanin_port_in_burst"})

    def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(self, watch: Running) -> None:
        dashboard = json.loads(DASHBOARD.read_text())
        text = watch.get("/metrics")[1] + 'fanin_alerts_total{rule="x"} 1\n'
        there: dict[str, set[str]] = {}
        for name, labels in samples(text):
            there.setdefault(name, set()).update(label for label, _ in labels)
        # Absent where the records do not say.
        there["fanin_port_dropped_packets_total"] = {"source", "port"}
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
            "--web.listen-address=127.0.0.1:19090",
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
                        absent = "dropped_packets" in expression or "fanin_alerts" in expression
                        assert absent or answer, expression
                assert ask("sum(fanin_port_bursts_total)") == [11]
            finally:
                process.terminate()
                process.communicate(timeout=30)


def ask(expression: str) -> list[float]:
    """Return the values that Prometheus has for an expression."""
    url = "http://127.0.0.1:19090/api/v1/query?" + urllib.parse.urlencode({"query": expression})
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
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked += 1
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
            with file.open("a") as more:
                more.write("20000,0\n20100,0\n")
            watch.until(lambda: watch.watch.hub.found == 1)
            assert len(watch.watch.hub.alerts) == 1, "its end is no second one"

    def test_a_webhook_that_answers_nobody_stops_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(webhook, "_BACKLOG", 3)
        monkeypatch.setattr(webhook, "_PAUSE", (5.0, 5.0))
        hook = webhook.Webhook("http://127.0.0.1:1/nobody")
        begun = time.monotonic()
        for _ in range(100):
            hook.post({"rule": "r"})
        assert time.monotonic() - begun < 1
        assert hook.fired["r"] == 100
        assert hook.waiting + hook.outcomes()["left_out"] in (99, 100)
        assert 95 <= hook.outcomes()["left_out"] <= 97
        hook.close(0.1)

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
