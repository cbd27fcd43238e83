// A list of what may be written, beside the caret of a text.
import { complete } from "./complete.js";

/** Returns the list that goes beside a text; it opens as one types, or with Ctrl+Space. */
export function suggest(editor, address) {
  const list = document.createElement("ul");
  Object.assign(list, { className: "pg-offered", id: "pg-offered", hidden: true });
  list.setAttribute("role", "listbox");
  for (const [name, value] of Object.entries({ "aria-autocomplete": "list", "aria-controls": list.id })) editor.setAttribute(name, value);
  let schema = null;
  let found = null;
  let chosen = 0;

  const hide = () => { found = null; list.hidden = true; editor.removeAttribute("aria-activedescendant"); };

  function mark(next) {
    chosen = (next + found.items.length) % found.items.length;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    editor.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }

  function take(index) {
    const { from, to, items } = found;
    hide();
    editor.setRangeText(items[index].text, from, to, "end");
    editor.dispatchEvent(new Event("input"));
    editor.focus();
  }

  function show() {
    found = schema && editor.selectionStart === editor.selectionEnd ? complete(schema, editor.value, editor.selectionStart) : null;
    if (!found) return hide();
    list.replaceChildren(...found.items.map(({ text, words }, i) => {
      const item = document.createElement("li");
      item.id = `pg-offered-${i}`;
      item.setAttribute("role", "option");
      item.append(Object.assign(document.createElement("code"), { textContent: text.replace(/ = $/, "") }), ` ${words}`);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(i); });
      return item;
    }));
    const style = getComputedStyle(editor);
    const lines = editor.value.slice(0, found.from).split("\n");
    const top = parseFloat(style.paddingTop) + lines.length * parseFloat(style.lineHeight) - editor.scrollTop;
    list.style.top = `${Math.min(Math.max(top, 0), editor.clientHeight) + 2}px`;
    list.hidden = false;
    mark(0);
  }

  const load = async () => { schema ??= await (await fetch(address)).json(); };
  editor.addEventListener("focus", load, { once: true });
  editor.addEventListener("blur", hide);
  editor.addEventListener("click", hide);
  editor.addEventListener("scroll", hide);
  editor.addEventListener("input", (event) => (event.inputType?.startsWith("insert") ? show() : hide()));
  editor.addEventListener("keydown", async (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); await load(); show(); return; }
    if (!found) return;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (moves[event.key]) mark(chosen + moves[event.key]);
    else if (event.key === "Tab" || event.key === "Enter") take(chosen);
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  });
  return list;
}
