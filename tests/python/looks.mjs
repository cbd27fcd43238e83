// Looks at runs of the playground's first scenario outside a browser: `node looks.mjs fanin.wasm`. For tests.
import { readFileSync } from "node:fs";
import { Looks } from "../../site/playground/curves.js";
import { load } from "../../site/playground/engine.js";
import { defaults, scenario } from "../../site/playground/scenario.js";

const bytes = new Uint8Array(readFileSync(process.argv[2]));
const found = [];
for (const events of [20, 5_000]) {
  const call = await load(bytes);
  call({ do: "start", scenario: scenario(defaults()) });
  const looks = new Looks();
  let now;
  do {
    now = call({ do: "advance", events });
    looks.add(now.now_ps, now.ports[0], now.done);
  } while (!now.done);
  const times = looks.column(0);
  found.push({ events, port: now.ports[0], last: looks.rows.at(-1), times, rate: looks.rate });
}
process.stdout.write(JSON.stringify(found));
