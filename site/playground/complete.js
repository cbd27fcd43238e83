// What may be written at a place of a scenario, by the JSON Schema of scenarios.

/** Splits `a."b c".d` into its parts. */
const parts = (key) => [...key.matchAll(/"([^"]*)"|([\w-]+)/g)].map(([, quoted, bare]) => quoted ?? bare);

/** Where a place is: the path of its table, what is wanted there (header, key or value), what is typed of it, and keys before it. */
export function place(text, at) {
  const begin = text.lastIndexOf("\n", at - 1) + 1;
  const line = text.slice(begin, at);
  const header = /^\s*\[\[?([^\]#]*)$/.exec(line);
  if (header) return { wanted: "header", typed: header[1], list: line.trimStart().startsWith("[["), path: [], before: {} };
  const above = [...text.slice(0, begin).matchAll(/^[ \t]*\[(\[?)([^\][\n]+)\]/gm)].at(-1);
  const table = above ? parts(above[2]) : [];
  const from = above ? above.index + above[0].length : 0;
  const next = text.slice(at).search(/^[ \t]*\[/m);
  const around = `${text.slice(from, begin)}\n${text.slice(at, next < 0 ? undefined : at + next).replace(/^.*/, "")}`;
  const keys = (words) => Object.fromEntries([...words.matchAll(/(?:^|[,{\n])\s*([\w.-]+)\s*=\s*("[^"\n]*")?/g)].map(([, key, value]) => [key, value?.slice(1, -1) ?? ""]));
  // Of the line: one entry for each table or list that is open, from the outside in.
  const open = [{ path: table, before: keys(around), list: false }];
  let key = null;
  let typed = "";
  let quoted = false;
  for (const letter of line) {
    const inner = open.at(-1);
    const path = key === null ? inner.path : [...inner.path, ...parts(key)];
    if (quoted) {
      if (letter === '"') quoted = false;
      typed += letter;
    } else if (letter === '"') {
      quoted = true;
      typed += letter;
    } else if (letter === "#") return null;
    else if (letter === "=" && key === null) { key = typed.trim(); inner.before[key] = ""; typed = ""; }
    else if (letter === "{") { open.push({ path, before: {}, list: false, key }); key = null; typed = ""; }
    else if (letter === "[") { open.push({ path, before: {}, list: true, key }); typed = ""; }
    else if (letter === "," ) {
      if (!inner.list) { if (key !== null) inner.before[key] = typed.trim().replace(/^"|"$/g, ""); key = null; }
      typed = "";
    } else if (letter === "}" || letter === "]") { key = open.pop()?.key ?? null; typed = " "; if (open.length === 0) return null; }
    else typed += letter;
  }
  const inner = open.at(-1);
  if (typed.trim() === "" && /[}\]]\s*$/.test(line)) return null;
  if (key === null && inner.list) return { wanted: "value", typed: typed.trimStart(), path: inner.path, before: inner.before };
  if (key !== null) return { wanted: "value", typed: typed.trimStart(), path: [...inner.path, ...parts(key)], before: inner.before };
  const dotted = typed.trimStart().split(".");
  return { wanted: "key", typed: dotted.at(-1), path: [...inner.path, ...dotted.slice(0, -1)], before: dotted.length > 1 ? {} : inner.before };
}

/** Alternatives of a schema's node, references followed. */
export function alternatives(schema, node) {
  if (!node) return [];
  if (node.$ref) {
    const found = alternatives(schema, schema.$defs[node.$ref.split("/").at(-1)]);
    return node.default === undefined ? found : found.map((one) => ({ ...one, usual: node.default }));
  }
  if (node.oneOf) return node.oneOf.flatMap((one) => alternatives(schema, one));
  if (node.items) return alternatives(schema, node.items).map((one) => ({ ...one, listed: true }));
  return [node];
}

const kind = (node) => node.properties?.kind?.const;

/** Alternatives of what stands at a path; a `kind` that is written chooses among them. */
export function at(schema, path) {
  let found = alternatives(schema, { $ref: schema.$ref });
  for (const step of path) {
    found = found.flatMap((node) => {
      const child = node.properties?.[step] ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : null);
      return child ? alternatives(schema, child) : [];
    });
  }
  return found;
}

const sentence = (words = "") => words.split(/\n\n|(?<=\.)\s/)[0].replaceAll("\n", " ");
const among = (items) => [...new Map(items.map((item) => [item.text, item])).values()];

/** What may stand at a place: the text to insert, what it means, and the range that it replaces; null where nothing is known. */
export function complete(schema, text, cursor) {
  const where = place(text, cursor);
  if (!where) return null;
  const { wanted, path, before } = where;
  let { typed } = where;
  let items = [];
  if (wanted === "header") {
    const steps = parts(typed.replace(/[\w-]*$/, ""));
    typed = typed.replace(/^.*\./, "");
    items = at(schema, steps).flatMap((node) => Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
      const inside = alternatives(schema, child).filter((one) => one.properties || typeof one.additionalProperties === "object");
      if (inside.length === 0 || (steps.length === 0 && where.list !== inside.some((one) => one.listed))) return [];
      return [{ text: name, words: sentence(child.description ?? inside[0].description) }];
    }));
  } else if (wanted === "key") {
    const tables = at(schema, path);
    const chosen = tables.filter((node) => before.kind === undefined || kind(node) === before.kind);
    items = (chosen.length > 0 ? chosen : tables).flatMap((node) => Object.entries(node.properties ?? {})
      .filter(([name]) => before[name] === undefined)
      .map(([name, child]) => ({ text: `${name} = `, words: sentence(child.description ?? "") })));
  } else {
    const tables = at(schema, path.slice(0, -1)).filter((node) => before.kind === undefined || path.at(-1) === "kind" || kind(node) === before.kind);
    const values = tables.length > 0 && path.length > 0
      ? tables.flatMap((node) => alternatives(schema, node.properties?.[path.at(-1)] ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : null)).map((one) => ({ ...one, about: sentence(node.description) })))
      : at(schema, path);
    const short = new Set(values.map((node) => node.const));
    items = values.flatMap((node) => {
      if (node.const !== undefined) return [{ text: JSON.stringify(node.const), words: sentence(node.description) || (path.at(-1) === "kind" ? node.about : "") }];
      if (node.type === "boolean") return ["true", "false"].map((word) => ({ text: word, words: node.default === (word === "true") ? "default" : "" }));
      if (kind(node) && !short.has(kind(node))) return [{ text: `{ kind = ${JSON.stringify(kind(node))}`, words: sentence(node.description) }];
      if (["string", "number"].includes(typeof node.default)) return [{ text: JSON.stringify(node.default), words: "default" }];
      return [];
    });
  }
  const bare = typed.replace(/^"/, "");
  const fits = among(items).filter((item) => item.text.replace(/^["{ ]*(kind = ")?/, "").startsWith(bare) && item.text.trim() !== typed);
  const closed = typed.startsWith('"') && text[cursor] === '"'; // the quote that is there already
  return fits.length > 0 ? { from: cursor - typed.length, to: cursor + (closed ? 1 : 0), items: fits } : null;
}
