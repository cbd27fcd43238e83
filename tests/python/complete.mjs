// Answers what completion offers: the JSON Schema and a list of texts, `|` for the cursor, on standard input; of each text the list
// of inserted ones.
import { readFileSync } from "node:fs";
import { complete } from "../../site/playground/complete.js";

const { schema, texts } = JSON.parse(readFileSync(0, "utf8"));
const answers = texts.map((text) => {
  const at = text.indexOf("|");
  const plain = text.replace("|", "");
  const found = complete(schema, plain, at);
  return found && { typed: plain.slice(found.from, found.to), offered: found.items.map((item) => item.text), words: found.items.map((item) => item.words) };
});
process.stdout.write(JSON.stringify(answers));
