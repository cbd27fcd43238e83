// The engine in a WebAssembly module: requests and answers are JSON, in the module's memory (crates/web).

/** The site was built without the program. */
export class Absent extends Error {}

/** Module of a file of the site: workers are given it, so that they need no server. */
export async function compile(address) {
  const response = await fetch(address);
  if (response.status === 404) throw new Absent(`${address} is not there`);
  if (!response.ok) throw new Error(`${address}: the server says ${response.status}`);
  const named = (response.headers.get("Content-Type") || "").startsWith("application/wasm"); // some servers do not know the kind of file
  return named ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

/** Engine made of a module or of its bytes; `imports` makes of its memory what the module imports. */
export async function load(source, imports = () => ({})) {
  const exported = {};
  const needs = { page: imports(() => exported.memory.buffer) };
  const made = await WebAssembly.instantiate(source instanceof Uint8Array ? await WebAssembly.compile(source) : source, needs);
  Object.assign(exported, made.exports);
  const { memory, fanin_open, fanin_room, fanin_call, fanin_answer_bytes } = made.exports;
  const page = fanin_open();

  /** Answer to a request; an answer with an error is thrown. */
  return function call(request) {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const room = fanin_room(page, bytes.length);
    if (room === 0) throw new Error("the request is longer than 16 MB");
    new Uint8Array(memory.buffer, room, bytes.length).set(bytes);
    const at = fanin_call(page); // the memory may have grown: its buffer is another one now
    const answer = JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, at, fanin_answer_bytes(page))));
    if (answer.error) throw new Error(answer.error);
    return answer;
  };
}
