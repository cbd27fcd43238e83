// Analyses files with the program of the page outside a browser: `node run_analysis.mjs analyze.wasm parts.json < ASKED.json`. For tests.
// ASKED is a list of {files: [path], shown: [name], settings}; for each one there is {report, text, explorer, main} or {error} in the output.
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { analysis } from "../../site/analyze/analysis.js";
import { main } from "../../site/analyze/page.js";

const module = new Uint8Array(readFileSync(process.argv[2]));
const out = [];
for (const { files, shown, settings = {}, page = false } of JSON.parse(readFileSync(0, "utf8"))) {
  const open = files.map((path) => openSync(path));
  const heard = [];
  const read = (file, from, to) => {
    const bytes = new Uint8Array(to - from);
    return bytes.subarray(0, readSync(open[file], bytes, 0, bytes.length, from));
  };
  const begin = performance.now();
  try {
    const made = await analysis(module, read, (done) => { heard.push(done); });
    const given = open.map((file, i) => ({ name: shown[i], size: fstatSync(file).size }));
    if (page) {
      const { report, bursts } = made.page(given, settings, { hashes: [], style: "", scripts: [] });
      out.push({ report, explorer: bursts.document, main: main(report, bursts), heard, milliseconds: performance.now() - begin });
    } else {
      out.push({ report: made.report(given, settings), heard, milliseconds: performance.now() - begin });
    }
  } catch (error) {
    out.push({ error: String(error.message || error) });
  }
  open.forEach(closeSync);
}
process.stdout.write(JSON.stringify(out));
