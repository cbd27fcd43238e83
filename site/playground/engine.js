// The engine in a WebAssembly module: requests and answers are JSON, in the module's memory (crates/web).

/** Engine made of the bytes of a module, or of a response that carries them; `imports` makes of its memory what the module imports. */
export async function load(source, imports = () => ({})) {
  const exported = {};
  const needs = { page: imports(() => exported.memory.buffer) };
  const made = source instanceof Uint8Array ? await WebAssembly.instantiate(source, needs) : await WebAssembly.instantiateStreaming(source, needs);
  Object.assign(exported, made.instance.exports);
  const { memory, fanin_open, fanin_room, fanin_call, fanin_answer_bytes } = made.instance.exports;
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
