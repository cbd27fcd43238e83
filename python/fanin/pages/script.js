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

  const narrow = window.matchMedia("(max-width: 640px)");
  const paper = { width: 660, height: 264 }; // [px] fits between the margins of A4 and of Letter
  const legendSize = () => (narrow.matches ? 11 : 13); // [px]
  const names = (figure) => figure.data.filter((trace) => trace.name && trace.showlegend !== false).length;

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
      legend: { orientation: "h", yanchor: "bottom", y: 1.0, x: 0, bgcolor: "rgba(0,0,0,0)", font: { size: legendSize() }, maxheight: 400 },
      hoverlabel: { align: "left", bgcolor: card, bordercolor: line, font: { color: text } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: axis.color, activecolor: text },
      autosize: true,
    };
  }

  const figureOf = (place) => figures[place.dataset.figure || place.id];

  function draw(place) {
    const figure = figureOf(place);
    if (!figure || place.dataset.drawn) return;
    place.dataset.drawn = "begun";
    // On a phone a legend has a line for each name, which is not to take the height of the chart.
    const lines = narrow.matches && figure.layout.showlegend ? Math.max(0, names(figure) - 3) : 0;
    place.style.height = lines ? `${380 + 25 * lines}px` : "";
    const options = { ...config, displayModeBar: narrow.matches ? false : "hover" };
    Plotly.newPlot(place, figure.data, layoutOf(figure), options).then(() => { place.dataset.drawn = "done"; });
  }

  function open(row) {
    const table = row.closest("table");
    const place = document.getElementById(table.dataset.place);
    const figure = figures[row.dataset.figure];
    for (const other of table.querySelectorAll("tr[data-figure]")) {
      other.classList.toggle("chosen", other === row);
      other.querySelector("button").setAttribute("aria-pressed", String(other === row));
    }
    for (const details of row.closest(".panel").querySelectorAll("[data-burst]")) details.hidden = details.dataset.burst !== row.dataset.figure;
    const chart = place.closest("figure");
    chart.querySelector("h3").textContent = figure.title;
    chart.querySelector("figcaption").textContent = figure.note;
    place.setAttribute("aria-label", figure.title);
    place.dataset.figure = row.dataset.figure;
    delete place.dataset.drawn;
    draw(place);
    chart.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  for (const row of document.querySelectorAll(".choose tr[data-figure]")) {
    row.addEventListener("click", () => { if (!String(window.getSelection())) open(row); });
  }

  function repaint() {
    for (const place of document.querySelectorAll('.plot[data-drawn]')) {
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

  // On paper: light, and as wide as paper is, whatever the window's colours and width.
  let before = null;
  const shown = () => [...document.querySelectorAll(".plot")].filter((place) => place.offsetParent !== null);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll(".plot").forEach(draw);
    before = { theme: root.dataset.theme, heights: new Map(shown().map((place) => [place, place.style.height])) };
    paint(false);
    for (const place of before.heights.keys()) {
      place.style.height = `${paper.height}px`;
      // Twice: the second time its margins are those of the legend at this width. There is no waiting before a print.
      for (let pass = 0; pass < 2; pass += 1) Plotly.relayout(place, { ...paper, "legend.font.size": 12 });
    }
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    for (const [place, height] of before.heights) {
      place.style.height = height;
      Plotly.relayout(place, { width: null, height: null, autosize: true, "legend.font.size": legendSize() });
    }
    paint(before.theme === "dark");
    before = null;
  });

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
