// An experiment in a link: the texts of its scenarios, packed, behind the # of the address.

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

/** Packs texts for an address. */
export async function pack(texts) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(texts)), new CompressionStream("deflate-raw"));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Texts of an address; null where it holds none that can be read. */
export async function unpack(hash) {
  try {
    const packed = atob(hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = await through(Uint8Array.from(packed, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"));
    const texts = JSON.parse(new TextDecoder().decode(bytes));
    return Array.isArray(texts) && texts.length > 0 && texts.length <= 2 && texts.every((text) => typeof text === "string") ? texts : null;
  } catch {
    return null;
  }
}
