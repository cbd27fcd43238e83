// A worker that analyses files which the page was given: their bytes go into this browser's memory and nowhere else. With them
// come the program's module and the parts of its page. To stop an analysis, the page ends the worker.
import { analysis, Refused } from "./analysis.js";

const EVERY = 100; // [ms] between two words on how far it is

self.onmessage = async ({ data: { module, parts, files, settings } }) => {
  const reader = new FileReaderSync();
  const begin = performance.now();
  let told = 0;
  try {
    const read = (file, from, to) => new Uint8Array(reader.readAsArrayBuffer(files[file].blob.slice(from, to)));
    const made = await analysis(module, read, (done, records) => {
      const now = performance.now();
      if (now - told >= EVERY) {
        told = now;
        self.postMessage({ what: "progress", done, records });
      }
    });
    const given = files.map(({ name, blob }) => ({ name, size: blob.size }));
    const { report, html } = made.page(given, settings, parts);
    self.postMessage({ what: "finished", report, html, milliseconds: performance.now() - begin });
  } catch (error) {
    const trap = error instanceof WebAssembly.RuntimeError;
    const text = trap ? "the program gave up: the file is damaged in a way that it does not survive here, or needs more memory than a page has" : String(error.message || error);
    self.postMessage({ what: "failed", refused: error instanceof Refused, text });
  }
};
