"use strict";
// Draws the charts when they come into view, in the colours of the page. All data are in the page; nothing is fetched.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: "hover",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg" },
  };

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function theme() {
    const axis = { color: colour("--soft"), gridcolor: colour("--grid"), linecolor: colour("--soft"), showline: true, zeroline: false, ticks: "outside", automargin: true };
    return { axis, text: colour("--text"), card: colour("--card"), line: colour("--line") };
  }

  function layoutOf(figure) {
    const { axis, text, card, line } = theme();
    return {
      ...figure.layout,
      xaxis: { ...figure.layout.xaxis, ...axis },
      yaxis: { ...figure.layout.yaxis, ...axis },
      colorway: figure.colorway,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: text },
      margin: { l: 64, r: 16, t: figure.layout.showlegend ? 64 : 36, b: 52 },
      legend: { orientation: "h", yanchor: "bottom", y: 1.0, x: 0, bgcolor: "rgba(0,0,0,0)" },
      hoverlabel: { align: "left", bgcolor: card, bordercolor: line, font: { color: text } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: axis.color, activecolor: text },
      autosize: true,
    };
  }

  function draw(place) {
    const figure = figures[place.id];
    if (!figure || place.dataset.drawn) return;
    place.dataset.drawn = "begun";
    Plotly.newPlot(place, figure.data, layoutOf(figure), config).then(() => { place.dataset.drawn = "done"; });
  }

  function repaint() {
    for (const place of document.querySelectorAll('.plot[data-drawn="done"]')) {
      const { axis, text, card, line } = theme();
      const change = { "font.color": text, "hoverlabel.bgcolor": card, "hoverlabel.bordercolor": line, "hoverlabel.font.color": text, "modebar.color": axis.color, "modebar.activecolor": text };
      for (const name of ["xaxis", "yaxis"]) {
        for (const key of ["color", "gridcolor", "linecolor"]) change[`${name}.${key}`] = axis[key];
      }
      Plotly.relayout(place, change);
    }
  }

  function paint(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    repaint();
  }

  paint(system.matches);
  system.addEventListener("change", (event) => paint(event.matches));
  document.getElementById("theme").addEventListener("click", () => paint(root.dataset.theme !== "dark"));

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "600px" });
  for (const place of document.querySelectorAll(".plot")) seen.observe(place);
  window.addEventListener("beforeprint", () => document.querySelectorAll(".plot").forEach(draw));

  const tabs = [...document.querySelectorAll('[role="tab"]')];
  function select(chosen) {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
    for (const place of document.querySelectorAll('.panel:not([hidden]) .plot[data-drawn="done"]')) Plotly.Plots.resize(place);
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
