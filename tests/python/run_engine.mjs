// Runs scenarios with the engine outside a browser: `node run_engine.mjs fanin.wasm < TEXTS.json`, fingerprints to standard output. For tests.
import { readFileSync } from "node:fs";
import { load } from "../../site/playground/engine.js";
import { defaults, KNOBS, scenario } from "../../site/playground/scenario.js";

const call = await load(new Uint8Array(readFileSync(process.argv[2])));
const given = JSON.parse(readFileSync(0, "utf8"));
const chosen = KNOBS.flatMap(({ name, choices = [] }) => choices.map((value) => scenario({ ...defaults(), senders: "6", size: "64KB", [name]: value })));
const ran = [...chosen, ...given].map((text) => {
  const { hash, problems } = call({ do: "start", scenario: text });
  if (hash === null) return { text, problems };
  while (!call({ do: "advance", events: 50_000 }).done);
  const { fingerprint, summary } = call({ do: "finish", points: 100 });
  return { text, problems, fingerprint, summary };
});
process.stdout.write(JSON.stringify(ran));
