// An experiment in a link: its scenarios, packed, behind the # of the address. A scenario is its text, or { text, values } where choices made
// it: the text is what runs, whatever a later version of the page makes of the choices.

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

/** Packs scenarios for an address. */
export async function pack(scenarios) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(scenarios)), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const valid = (entry) => typeof entry === "string" || (typeof entry?.text === "string" && Object.values(entry.values ?? [0]).every((value) => typeof value === "string"));

/** Scenarios of an address; null where it holds none that can be read. */
export async function unpack(hash) {
  try {
    const packed = atob(hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(Uint8Array.from(packed, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"));
    const found = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(found) && found.length > 0 && found.length <= 2 && found.every(valid) ? found : null;
  } catch {
    return null;
  }
}
