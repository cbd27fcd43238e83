// Runs scenarios with the engine outside a browser: `node run_engine.mjs fanin.wasm < TEXTS.json`, fingerprints to standard output. For tests.
import { readFileSync } from "node:fs";
import { load } from "../../site/playground/engine.js";
import { defaults, KNOBS, scenario } from "../../site/playground/scenario.js";

const call = await load(new Uint8Array(readFileSync(process.argv[2])));
const given = JSON.parse(readFileSync(0, "utf8"));
const chosen = KNOBS.flatMap(({ name, choices = [] }) => choices.map((value) => scenario({ ...defaults(), senders: "6", size: "64KB", [name]: value })));
// What the parameters of a choice do: each one away from its default.
const apart = [
  { marking: "s_ecn", slope_k: "10 packets" },
  { marking: "red", red_min: "5 packets" },
  { marking: "red", red_max: "30 packets" },
  { marking: "red", red_chance: "0.9" },
  { marking: "codel", target: "20us" },
  { marking: "codel", interval: "100us" },
  { control: "RoCEv2: dcqcn", increase: "400Mbps" },
  { control: "RoCEv2: dcqcn", cnp: "5us" },
  { control: "RoCEv2: dcqcn", marking: "red" },
].map((values) => scenario({ ...defaults(), senders: "12", size: "256KB", ...values }));
const ran = [...chosen, ...apart, ...given].map((text) => {
  const { hash, problems } = call({ do: "start", scenario: text });
  if (hash === null) return { text, problems };
  while (!call({ do: "advance", events: 50_000 }).done);
  const { fingerprint, summary } = call({ do: "finish", points: 100 });
  return { text, problems, fingerprint, summary };
});
process.stdout.write(JSON.stringify(ran));
