// The page of an analysis, from the style and scripts that `fanin analyze --out PAGE.html` uses: its templates are fanin/pages/analysis.html
// and those it includes.
import { capital, clockOf, grouped, tableApart } from "./show.js";
import { allNotes, answer, detectLines, noticeLines, noticeRows, portRows, transferLines, transferRows, waiting, withoutLast } from "./tables.js";
import { CULPRITS, MAX_PORTS } from "./explorer.js";

const MARKS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" };
const escape = (text) => String(text).replace(/[&<>'"]/g, (mark) => MARKS[mark]);

// Text in which every second part stands out: by an element.
const parted = (text, by, element) => {
  const parts = String(text).split(by);
  if (parts.length % 2 === 0) return escape(text);
  return parts.map((part, i) => (i % 2 ? `<${element}>${escape(part)}</${element}>` : escape(part))).join("");
};
const code = (text) => parted(text, "`", "code");
const when = (condition, text) => (condition ? text() : "");
const lines = (list, element) => list.map((line) => `<${element}>${escape(line)}</${element}>`).join("");

function table([head, rows], caption) {
  const cells = (row) => row.map((cell, i) => (i ? `<td>${code(cell)}</td>` : `<th scope="row">${code(cell)}</th>`)).join("");
  return `<div class="scroll" role="region" aria-label="${escape(caption)}" tabindex="0"><table>
<caption><span>${code(caption)}</span></caption>
<thead><tr>${head.map((cell) => `<th scope="col">${escape(cell)}</th>`).join("")}</tr></thead>
<tbody>
${rows.map((row) => `<tr>${cells(row)}</tr>`).join("\n")}
</tbody></table></div>`;
}

function burstList(bursts) {
  const { rows, head, document } = bursts;
  const [all, several] = [grouped(rows.length), document.ports.length > 1];
  const port = () => `<label>Port <select id="filter-port"><option value="">all</option>${document.ports.map((entry, i) => `<option value="${i}">${escape(entry.name)}</option>`).join("")}</select></label>`;
  const find = () => `<div class="find" role="search">
<label>Find <input type="search" id="filter" placeholder="port, flow, time, law" autocomplete="off"></label>
${when(several, port)}
<label><input type="checkbox" id="filter-drops"> with drops</label>
<span id="filter-count">${all} of ${all}</span>
</div>`;
  const which = bursts.left_out ? `The ${all} highest of ${grouped(rows.length + bursts.left_out)} bursts; <code>--json</code> has all of them` : "Bursts, the highest first";
  const first = (cell) => `<th scope="row"><button type="button" aria-pressed="false" aria-controls="burst" aria-label="Show burst ${escape(cell)}">${escape(cell)}</button></th>`;
  const row = (cells, i) => `<tr data-view="${i}"${bursts.lost[i] ? ' data-drops="1"' : ""}>${cells.map((cell, j) => (j ? `<td>${escape(cell)}</td>` : first(cell))).join("")}</tr>`;
  return `${when(rows.length > 1, find)}
<div class="scroll long" role="region" aria-label="Bursts" tabindex="0"><table class="choose" id="bursts-list">
<caption><span>${which}; a row opens its burst, a heading sorts</span></caption>
<thead><tr>${head.map((cell) => `<th scope="col"><button type="button">${escape(cell)}</button></th>`).join("")}</tr></thead>
<tbody>
${rows.map(row).join("\n")}
</tbody></table></div>`;
}

function burstFigure(bursts) {
  const { first, rows, document } = bursts;
  const several = rows.length > 1;
  const left = bursts.ports_left_out ? ` (${bursts.ports_left_out} more, with the smallest queues or none, are not shown)` : "";
  const ports = document.ports.length > 1 ? `, a row for each port${left}` : "";
  const steps = () => '<button type="button" id="earlier">‹ earlier</button><button type="button" id="later">later ›</button>';
  return `<section id="bursts">
<div class="strip">
<canvas id="overview" aria-label="All of the trace: time from left to right, a row for each port, the darker the longer its queue, red where packets were dropped" role="img"></canvas>
<p id="overview-said">All of the trace${ports}: the darker, ${bursts.queues ? "the longer the queue" : "the more arrived"}; red: drops. Click opens the burst there, dragging a part of the time.</p>
</div>
<p class="notice bad" id="burst-missing" hidden></p>
<figure class="chart">
<div class="over"><h3 id="burst-title">${escape(first.title)}</h3>
<span class="steps">${when(several, steps)}<button type="button" id="download" title="Save what this page holds of it as CSV">CSV</button></span><span class="tools"></span></div>
<p id="readout" aria-live="off"></p>
<div class="plot" id="burst" role="group" aria-label="${escape(first.title)}"></div>
<figcaption id="burst-note"></figcaption>
</figure>
<p class="words" id="burst-words"${first.words ? "" : " hidden"}>${escape(first.words)}</p>
${when(several, () => burstList(bursts))}
<details class="fold" open${first.tables.length ? "" : " hidden"}><summary>Flows and phases</summary><div id="burst-tables">${first.tables.map(({ caption, head, rows: own }) => table([head, own], caption)).join("")}</div></details>
${when(rows.length === 1, () => burstList(bursts))}
</section>`;
}

/** What stands on the page below its head. */
export function main(report, bursts) {
  const { plausibility, ports } = report;
  const found = ports.reduce((sum, port) => sum + port.bursts_found, 0);
  const doubts = () => {
    const findings = plausibility.findings.filter((finding) => finding.level !== "note").map((finding) => `${capital(finding.words)}.`);
    const summary = `Trust: ${plausibility.trust}. ${withoutLast(capital(plausibility.words))}`;
    return `<details class="notice${plausibility.trust === "poor" ? " bad" : ""}" id="doubts"><summary>${escape(summary)}</summary>
<ul>${lines(findings, "li")}</ul></details>`;
  };
  const detect = detectLines(ports.filter((port) => port.records), MAX_PORTS);
  const [notices, notified] = [noticeLines(report), noticeRows(report, CULPRITS)];
  const [transferred, slowest] = [transferLines(report), tableApart(transferRows(report, CULPRITS))];
  const waits = waiting(report, CULPRITS).map(([caption, content]) => [caption, tableApart(content)]);
  const [byPort, notes] = [portRows(report), allNotes(report)];
  const settings = JSON.stringify(report.settings, null, 1).replace(/[^\x00-\x7f]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `<p id="answer">${parted(answer(report, clockOf(report)), "\0", "b")}</p>
${when(plausibility.trust !== "good", doubts)}
<noscript><p class="notice bad">Charts need JavaScript; the tables do not.</p></noscript>
${bursts.first ? burstFigure(bursts) : "<p>The trace has no records.</p>"}
${when(detect.length, () => `<details class="fold" id="detection"${found ? "" : " open"}><summary>What makes a burst</summary>
<ul>${lines(detect, "li")}</ul>
</details>`)}
${when(notices.length, () => `<section id="notifications">
<h2>Drop notifications</h2>
${lines(notices, "p")}
${when(notified[1].length, () => table(notified, "Flows with the most notifications"))}
</section>`)}
${when(transferred.length, () => `<section id="transfers">
<h2>Transfers over TCP</h2>
${lines(transferred, "p")}
${when(slowest[1].length, () => table(slowest, "The slowest"))}
</section>`)}
${when(waits.length, () => `<details class="fold" id="waiting"><summary>Waiting times</summary>
${waits.map(([caption, content]) => table(content, caption)).join("")}
</details>`)}
<details class="fold" id="ports"${byPort[1].length <= 3 ? " open" : ""}><summary>${byPort[1].length} port${byPort[1].length === 1 ? "" : "s"}</summary>
${table(byPort, "The port with the largest queue first")}
</details>
${when(notes.length, () => `<details class="fold" id="notes"${notes.length <= 5 ? " open" : ""}><summary>${notes.length} note${notes.length > 1 ? "s" : ""}</summary>
<ul>${lines(notes, "li")}</ul>
</details>`)}
<details class="fold" id="scenario"><summary>Settings, as they were in force for all ports</summary><pre>${escape(settings)}</pre></details>`;
}

const embedded = (value) => JSON.stringify(value).replace(/[<>&\u007f-\uffff]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The page of a report, in one file; `parts` are the style and the scripts of all such pages. */
export function page(report, bursts, parts) {
  const names = report.sources.map((source) => source.path.split("/").at(-1));
  const title = names.length === 1 ? names[0] : `${names[0]} and ${names.length - 1} more`;
  const found = report.ports.reduce((sum, port) => sum + port.bursts_found, 0);
  const kind = (source) => `${source.kind}, ${source.records === null ? "behind the port" : `${grouped(source.records)} records`}`;
  const provenance = report.sources.map((source) => `<div><dt>${escape(source.path)}</dt><dd>${escape(kind(source))}</dd></div>`).join("");
  const { trust, words } = report.plausibility;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${parts.hashes.join(" ")}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)} – Fanin</title>
<style>${parts.style}</style>
</head>
<body>
<header>
<div class="bar">
<div>
<p class="brand">Fanin analysis</p>
<h1>${escape(title)}</h1>
</div>
<div class="state">
<span class="pill ${trust}" id="trust" title="${escape(words)}">trust: ${trust}</span>
<span class="pill complete">${grouped(found)} burst${found === 1 ? "" : "s"}</span>
<button type="button" id="theme" aria-label="Switch between light and dark">◐</button>
</div>
</div>
<dl class="provenance">
${provenance}
</dl>
</header>
<main>
${main(report, bursts)}
</main>
<footer>Drag in a chart to zoom, double-click to zoom out, click a name in the legend to hide its curve. Charts are drawn by uPlot (MIT licence, inside this page).</footer>
<script type="application/json" id="figures">{}</script>
<script type="application/json" id="explorer">${embedded(bursts.document)}</script>
${parts.scripts.map((script) => `<script>${script}</script>`).join("\n")}
</body>
</html>
`;
}
