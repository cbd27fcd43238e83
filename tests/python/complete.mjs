// Answers what completion offers: a list of texts, `|` for the cursor, on standard input; of each the list of inserted texts.
import { readFileSync } from "node:fs";
import { complete } from "../../site/playground/complete.js";

const schema = JSON.parse(readFileSync(new URL("../../docs/scenario.schema.json", import.meta.url), "utf8"));
const answers = JSON.parse(readFileSync(0, "utf8")).map((text) => {
  const at = text.indexOf("|");
  const plain = text.replace("|", "");
  const found = complete(schema, plain, at);
  return found && { typed: plain.slice(found.from, found.to), offered: found.items.map((item) => item.text), words: found.items.map((item) => item.words) };
});
process.stdout.write(JSON.stringify(answers));
