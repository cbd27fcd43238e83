// A worker that checks and runs scenarios, so that the page stays responsive. The page gives it the engine's module, and ends no worker: a run
// stops when it is told to, and so a page that was loaded once needs no server.
import { load } from "./engine.js";

const [FIRST, MORE, MOST] = [50, 1.02, 150_000]; // events between two looks at a run: few at first, at last some tens of milliseconds of them
const POINTS = 4_000;

let given;
const module = new Promise((resolve) => { given = resolve; });
let checker = null;
let current = null; // the run that goes on

// Lets messages come in.
const { port1, port2 } = new MessageChannel();
const pause = () => new Promise((resolve) => { port1.onmessage = resolve; port2.postMessage(null); });

async function run(id, turn, text) {
  const call = await load(await module); // one that holds nothing of an earlier run
  const told = (what, answer, more = {}) => self.postMessage({ id, turn, what, answer, ...more });
  const begin = performance.now();
  const started = call({ do: "start", scenario: text });
  if (started.hash === null) return told("refused", started);
  for (let events = FIRST; ; events = Math.min(events * MORE, MOST)) {
    const now = call({ do: "advance", events: Math.round(events) });
    told("progress", now);
    if (now.done) break;
    await pause();
    if (current !== turn) return undefined;
  }
  const ran = performance.now();
  const answer = call({ do: "finish", points: POINTS });
  return told("finished", answer, { milliseconds: { run: ran - begin, all: performance.now() - begin } });
}

self.onmessage = async ({ data: { id, turn, what, text, module: compiled } }) => {
  if (what === "module") given(compiled);
  if (what === "stop") current = null;
  try {
    if (what === "check") {
      checker ??= load(await module);
      self.postMessage({ id, what, answer: (await checker)({ do: "check", scenario: text }) });
    }
    if (what === "run") {
      current = turn;
      await run(id, turn, text);
    }
  } catch (error) {
    if (what === "check") checker = null;
    self.postMessage({ id, turn, what: "failed", error: String(error.message || error) });
  }
};
