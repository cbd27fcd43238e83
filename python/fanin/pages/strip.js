"use strict";
// A strip: time from left to right, a row for each port.
const Strip = (() => {
  const { css } = Charts;
  const [QUEUE, DROP] = ["#1f6feb", "#cf222e"];

  // How wide and high it is [px]: rows and, where there is room, their names to the left.
  function layout(width, names) {
    const count = Math.max(1, names.length);
    const row = Math.max(4, Math.min(26, Math.floor(300 / count)));
    const gutter = width >= 640 && row >= 11 ? Math.min(170, 14 + 6.2 * Math.max(0, ...names.map((name) => Math.min(26, name.length)))) : 0;
    return { width, row, gutter, height: row * count };
  }

  // The darker, the longer the queue, or the more arrived; red where packets were dropped; hatched where nothing is known (below 0).
  // `top`: the largest level of rows with a queue, and of those without.
  function heat(ctx, { width, row, gutter }, rows, top) {
    const wide = width - gutter;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const [soft, grid] = [css("--soft"), css("--grid")];
    for (const [index, one] of rows.entries()) {
      const y = index * row;
      ctx.fillStyle = grid;
      ctx.fillRect(gutter, y, wide, row - 1);
      const columns = one.level.length;
      const left = (i) => gutter + (i * wide) / columns;
      const most = top[one.queue ? 0 : 1];
      ctx.fillStyle = QUEUE;
      for (let i = 0; i < columns; i += 1) {
        if (!(one.level[i] > 0)) continue;
        ctx.globalAlpha = 0.06 + 0.94 * (one.level[i] / most);
        ctx.fillRect(left(i), y, Math.max(1, wide / columns + 0.4), row - 1);
      }
      ctx.globalAlpha = 1;
      unknown(ctx, one.level, left, y, row - 1, soft);
      ctx.fillStyle = DROP;
      const mark = row < 10 ? row - 1 : Math.min(6, row * 0.4);
      for (let i = 0; i < columns; i += 1) if (one.drops[i]) ctx.fillRect(left(i), y + row - 1 - mark, Math.max(2, wide / columns), mark);
      if (gutter) {
        ctx.fillStyle = soft;
        ctx.fillText(one.name.length > 26 ? `${one.name.slice(0, 25)}…` : one.name, 0, y + row / 2, gutter - 6);
      }
    }
  }

  // Hatches the stretches of which nothing is known: they are no empty queues.
  function unknown(ctx, level, left, y, height, color) {
    for (let i = 0; i < level.length; i += 1) {
      if (!(level[i] < 0)) continue;
      let end = i;
      while (end < level.length && level[end] < 0) end += 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left(i), y, left(end) - left(i), height);
      ctx.clip();
      ctx.strokeStyle = color;
      ctx.globalAlpha = 0.45;
      ctx.lineWidth = 1;
      ctx.beginPath();
      for (let x = left(i) - height; x < left(end); x += 6) {
        ctx.moveTo(x, y + height);
        ctx.lineTo(x + height, y);
      }
      ctx.stroke();
      ctx.restore();
      i = end;
    }
  }

  return { layout, heat };
})();
