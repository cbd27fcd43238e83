// A worker that checks and runs scenarios, so that the page stays responsive; to stop a run, the page ends the worker.
import { load } from "./engine.js";

const EVENTS = 150_000; // between two looks at a run: some tens of milliseconds
const POINTS = 4_000;

const ready = load(fetch(new URL("fanin.wasm", import.meta.url)));

self.onmessage = async ({ data: { id, what, text } }) => {
  try {
    const call = await ready;
    if (what === "check") {
      self.postMessage({ id, what, answer: call({ do: "check", scenario: text }) });
      return;
    }
    const begin = performance.now();
    const started = call({ do: "start", scenario: text });
    if (started.hash === null) {
      self.postMessage({ id, what: "refused", answer: started });
      return;
    }
    for (;;) {
      const now = call({ do: "advance", events: EVENTS });
      self.postMessage({ id, what: "progress", answer: now });
      if (now.done) break;
    }
    const ran = performance.now();
    const answer = call({ do: "finish", points: POINTS });
    self.postMessage({ id, what: "finished", answer, milliseconds: { run: ran - begin, all: performance.now() - begin } });
  } catch (error) {
    self.postMessage({ id, what: "failed", error: String(error.message || error) });
  }
};
