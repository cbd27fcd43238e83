// Analyses files with the WebAssembly module (crates/web, feature `analyze`): the report as the command line gives it, and the page about it.
import { load } from "../playground/engine.js";
import { explore } from "./explorer.js";
import { page } from "./page.js";

const AHEAD = 4 << 20; // bytes that are read of a file at once
const DEFAULTS = { top: 5 }; // as the command line has it

/** What is wrong with the files or the settings, a line each. */
export class Refused extends Error {}

/**
 * Analysis of files made of a module or its bytes. Of each file `read(file, from, to)` gives bytes; `progress(done, records)` hears how far it is, and
 * ends it where it returns false.
 */
export async function analysis(source, read, progress) {
  let ahead = [];
  let share = [0, 1]; // of the work that is under way
  const call = await load(source, (memory) => ({
    fanin_read(file, at, to, bytes) {
      try {
        let part = ahead[file];
        if (!part || at < part.from || at + bytes > part.from + part.bytes.length) {
          part = { from: at, bytes: read(file, at, at + Math.max(bytes, AHEAD)) };
          ahead[file] = part;
        }
        const there = part.bytes.subarray(at - part.from, at - part.from + bytes);
        new Uint8Array(memory(), to, there.length).set(there);
        return there.length;
      } catch {
        return -1;
      }
    },
    fanin_progress: (done, records) => (progress(share[0] + share[1] * done, records) === false ? 1 : 0),
  }));
  const asked = (request) => {
    ahead = [];
    const { problems, ...answer } = call(request);
    if (problems) throw new Refused(problems.map(({ text }) => text).join("\n"));
    return answer;
  };
  const answered = (files, settings) => {
    const names = files.map(({ name }) => name);
    return { files: files.map(({ name, size }) => ({ name, size })), settings: { ...DEFAULTS, paths: names, ...settings } };
  };

  return {
    /** The report of files, each with its `name` and `size`. */
    report(files, settings = {}, [from, part] = [0, 1]) {
      share = [from, part];
      return asked({ do: "analyze", ...answered(files, settings) }).report;
    },

    /** The report, and the page about it. */
    page(files, settings, parts) {
      const report = this.report(files, settings, [0, 0.5]);
      share = [0.5, 0.5];
      const bursts = explore(report, (stretches) => asked({ do: "explore", ...answered(files, settings), stretches }));
      return { report, bursts, html: page(report, bursts, parts) };
    },
  };
}
