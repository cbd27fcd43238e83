"use strict";
// The page: draws charts when they come into view, in the page's colours; tabs, printing. All data are in the page; nothing is fetched.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const drawn = typeof Charts === "undefined" ? [] : Charts.drawn; // a page without charts has nothing to draw them
  const bursts = typeof Bursts === "undefined" ? null : Bursts;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  const BUTTONS = [
    ["−", "See more of the axis", (stack) => stack.scale(2)],
    ["+", "See less of the axis", (stack) => stack.scale(0.5)],
    ["⤢", "See all of the axis", (stack) => stack.zoom(null)],
    ["⤓", "Save as a picture", (stack) => stack.picture().toBlob((blob) => Charts.save(`${stack.place.id}.png`, blob))],
  ];

  function tools(place) {
    const box = place.closest("figure")?.querySelector(".tools");
    if (!box || box.childElementCount) return;
    for (const [text, title, act] of BUTTONS) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: text, title });
      button.setAttribute("aria-label", title);
      button.addEventListener("click", () => { if (place.fanin) act(place.fanin); });
      box.append(button);
    }
  }

  function draw(place) {
    if (place.dataset.drawn) return;
    if (place.id === "burst") bursts.start(place); // its data are of another kind
    else if (figures[place.id]) Figures.draw(place, figures[place.id]);
    else return;
    tools(place);
    place.dataset.drawn = "done";
  }

  function paint(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    for (const stack of drawn) stack.redraw();
    bursts?.repaint();
    if (typeof Watch !== "undefined") Watch.paint();
  }

  paint(system.matches);
  system.addEventListener("change", (event) => paint(event.matches));
  document.getElementById("theme").addEventListener("click", () => paint(root.dataset.theme !== "dark"));

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "600px" });
  const places = [...document.querySelectorAll(".plot")];
  for (const place of places) seen.observe(place);

  // On paper: light, and as wide as paper is, whatever the window's colours and width.
  let before = null;
  window.addEventListener("beforeprint", () => {
    places.forEach(draw);
    before = root.dataset.theme;
    paint(false);
    for (const stack of drawn) if (stack.place.offsetParent !== null) stack.resize(Charts.PAPER);
  });
  window.addEventListener("afterprint", () => {
    if (before === null) return;
    for (const stack of drawn) stack.resize();
    paint(before === "dark");
    before = null;
  });

  const tabs = [...document.querySelectorAll('[role="tab"]')];
  function select(chosen) {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
    for (const place of document.querySelectorAll(".panel:not([hidden]) .plot")) if (place.fanin) place.fanin.resize(); else draw(place);
  }
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(index + step + tabs.length) % tabs.length];
      select(next);
      next.focus();
    });
  }
})();
