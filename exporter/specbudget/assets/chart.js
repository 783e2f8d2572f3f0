/* One time chart for every page of specbudget, drawn by uPlot. A classic script: it works from a server and from a file.

   Needs, loaded before: uplot/uPlot.iife.min.js (the global uPlot), uplot/uPlot.min.css, theme.css, chart.css.
   Uses no innerHTML, no style attribute and no eval, so it runs under a strict Content-Security-Policy.

     const chart = specbudgetChart.create(element, {
       title: "Acceptance length",            // names the chart for a screen reader
       times: [1764000000, …],                // seconds since the epoch, ascending
       lines: [{
         id: "request", label: "per request",
         values: [4.6, null, …],              // one per time; null is not known and leaves a gap
         colour: 1,                           // 1 to 8 of theme.css, or a name: "target", "limit", "drafter"
         dash: [6, 4],                        // optional; lines differ by more than colour
         shape: "line",                       // line | steps | area | points
         hatch: false,                        // areas only: hatched, to be told apart without colour
         format: "length",                    // length | ratio | bytes | count | seconds | times
         shown: true,
       }],
       stack: false,                          // areas upon each other, first line lowest (a memory graph)
       rules: [{value: 2.6, label: "target", colour: "target", dash: [6, 4]}],          // horizontal, at one value
       bands: [{from: 0, to: 2.6, colour: "bad"}],                                      // horizontal, between two values
       spans: [{from: 1764000100, to: null, label: "incident", colour: "bad"}],         // vertical; null: until the end
       marks: [{at: 1764000200, label: "restart"}],                                     // vertical, at one moment
       range: {low: 1, high: null},           // what the axis shows at least; null leaves it to the values
       from: null, to: null,                  // ends of the time axis; null takes those of `times`
       format: "length",                      // of the axis
       height: 240, utc: false, zoom: false,  // zoom: drag over the time axis, + and - on the plot; double click, 0: back
       onZoom: (from, to) => …,               // told of each zoom that the reader made; both null for the whole
       sync: null,                            // charts with the same word share one cursor
       toggles: true, table: true,            // keys that switch lines off and on; the values as a table
     });
     chart.update({times, lines: {request: values, …}, rules, bands, spans, marks, from, to});  // any part; keeps the cursor
     chart.toggle("request", false);          // as the key does
     chart.zoom(from, to);                    // shows that stretch, the whole with null; tells nobody
     chart.select(index);                     // moves the read-out; null takes it back to the newest value
     chart.describe();                        // the sentence that a screen reader gets
     chart.destroy();

   It follows the theme (data-theme on the root, prefers-color-scheme) and the width of its element. Keyboard on the
   plot: left and right one value (with Shift ten), Page Up and Page Down a tenth, Home, End, Escape. */
(function () {
  "use strict";

  const HEIGHT = 240;
  const TABLE_ROWS = 60;
  const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

  const POWERS_OF_TWO = Array.from({ length: 52 }, (_, power) => 2 ** power);

  function bytes(value) {
    let unit = 0;
    let size = Math.abs(value);
    while (size >= 1023.95 && unit < SIZES.length - 1) {
      size /= 1024;
      unit += 1;
    }
    return `${value < 0 ? "-" : ""}${size.toFixed(unit === 0 ? 0 : 1)} ${SIZES[unit]}`;
  }

  const FORMATS = {
    length: (value) => value.toFixed(2),
    times: (value) => `${value.toFixed(2)}×`,
    ratio: (value) => `${(value * 100).toFixed(1)} %`,
    count: (value) => value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 }),
    seconds: (value) => (value < 180 ? `${value.toFixed(1)} s` : `${(value / 60).toFixed(1)} min`),
    bytes,
  };

  function inWords(value, format) {
    return value === null || value === undefined || !Number.isFinite(value)
      ? "not known"
      : (FORMATS[format] ?? FORMATS.count)(value);
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  let made = 0;

  function create(root, config) {
    const settings = {
      title: "", times: [], lines: [], rules: [], bands: [], spans: [], marks: [], range: {}, from: null, to: null,
      format: "count", height: HEIGHT, utc: false, zoom: false, onZoom: null, stack: false, sync: null, toggles: true, table: true,
      ...config,
    };
    const lines = settings.lines.map((line) => ({ shape: settings.stack ? "area" : "line", format: settings.format, ...line }));
    const shown = new Map(lines.map((line) => [line.id, line.shown !== false]));
    const colours = new Map();
    const ratio = () => window.devicePixelRatio || 1;
    let plot = null;
    let selected = null; // a time that the reader chose; null follows the newest
    made += 1;

    // --- what stands around the plot -------------------------------------------------------------------------------
    const outer = element("div", "sbchart");
    const keys = element("div", "sbchart-keys");
    keys.setAttribute("role", "group");
    keys.setAttribute("aria-label", `${settings.title}: lines`);
    const holder = element("div", "sbchart-plot");
    holder.tabIndex = 0;
    holder.setAttribute("role", "slider");
    holder.setAttribute("aria-label", `${settings.title}: read-out by time`);
    const words = element("p", "sbchart-words");
    words.id = `sbchart-words-${made}`;
    holder.setAttribute("aria-describedby", words.id);
    const read = element("p", "sbchart-read");
    read.setAttribute("aria-hidden", "true"); // the slider says the same
    const values = element("details", "sbchart-table");
    values.append(element("summary", "", "Values as a table"));
    values.addEventListener("toggle", table);
    outer.append(keys, holder, read, words);
    if (settings.table) outer.append(values);
    root.append(outer);

    const buttons = new Map();
    for (const line of lines) {
      const button = element(settings.toggles ? "button" : "span", "sbchart-key");
      if (settings.toggles) {
        button.type = "button";
        button.addEventListener("click", () => toggle(line.id, !shown.get(line.id)));
      }
      button.append(sample(line), element("span", "", line.label));
      buttons.set(line.id, button);
      keys.append(button);
    }
    for (const rule of settings.rules) {
      const key = element("span", "sbchart-key");
      key.append(sample(rule), element("span", "", rule.label));
      keys.append(key);
    }

    /* The line as it is drawn, for its key: colour, dashes, hatching. */
    function sample(line) {
      const size = 24;
      const canvas = element("canvas", "sbchart-sample");
      canvas.setAttribute("aria-hidden", "true");
      canvas.paint = function () {
        canvas.width = size * ratio();
        canvas.height = 12 * ratio();
        const context = canvas.getContext("2d");
        context.scale(ratio(), ratio());
        if (line.shape === "area") {
          context.fillStyle = areaFill(line, context, 1);
          context.fillRect(0, 1, size, 10);
        }
        context.strokeStyle = colour(line.colour);
        context.lineWidth = 2;
        context.setLineDash(line.dash ?? []);
        context.beginPath();
        context.moveTo(0, 6);
        context.lineTo(size, 6);
        if (line.shape !== "area") context.stroke();
      };
      return canvas;
    }

    // --- colours ---------------------------------------------------------------------------------------------------
    function colour(name, otherwise = 7) {
      const key = `--chart-${name ?? otherwise}`;
      if (!colours.has(key)) {
        const style = getComputedStyle(outer);
        const told = style.getPropertyValue(key).trim() || style.getPropertyValue(`--${name}`).trim();
        colours.set(key, told || style.color);
      }
      return colours.get(key);
    }

    function areaFill(line, context, opacity) {
      const own = colour(line.colour);
      if (!line.hatch) return own;
      const key = `hatch ${own} ${opacity}`;
      if (!colours.has(key)) {
        const side = 8 * ratio();
        const tile = document.createElement("canvas");
        tile.width = tile.height = side;
        const brush = tile.getContext("2d");
        brush.fillStyle = own;
        brush.globalAlpha = 0.35;
        brush.fillRect(0, 0, side, side);
        brush.globalAlpha = 1;
        brush.strokeStyle = own;
        brush.lineWidth = side / 4;
        for (const shift of [-side, 0, side]) {
          brush.beginPath();
          brush.moveTo(shift - 2, side + 2);
          brush.lineTo(shift + side + 2, -2);
          brush.stroke();
        }
        colours.set(key, tile);
      }
      return context.createPattern(colours.get(key), "repeat");
    }

    // --- data ------------------------------------------------------------------------------------------------------
    function tops() {
      if (!settings.stack) return lines.map((line) => line.values);
      let under = settings.times.map(() => 0);
      return lines.map((line) => {
        if (!shown.get(line.id)) return settings.times.map(() => null);
        under = under.map((base, i) => base + (line.values[i] ?? 0));
        return under.map((top, i) => (line.values[i] === null || line.values[i] === undefined ? null : top));
      });
    }

    function yRange(_plot, low, high) {
      const wanted = [settings.range.low, settings.range.high, ...settings.rules.map((rule) => rule.value), low, high];
      const known = wanted.filter((value) => Number.isFinite(value));
      if (known.length === 0) return [0, 1];
      const least = Math.min(...known);
      const most = Math.max(...known);
      const room = (most - least || Math.abs(most) || 1) * 0.06;
      const bottom = Number.isFinite(settings.range.low) && least >= settings.range.low ? settings.range.low : least - room;
      return [settings.stack ? Math.min(0, least) : bottom, most + room];
    }

    function xRange() {
      const last = settings.times.length - 1;
      const from = settings.from ?? settings.times[0] ?? Date.now() / 1000 - 3600;
      const to = settings.to ?? settings.times[last] ?? from + 3600;
      return [from, to > from ? to : from + 1];
    }

    // --- time in words -----------------------------------------------------------------------------------------------
    const zone = settings.utc ? { timeZone: "UTC" } : {};
    const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", ...zone });
    const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", ...zone });
    const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", ...zone });

    function timeTicks(_plot, splits, _axis, _space, step) {
      let last = "";
      return splits.map((at) => {
        const date = new Date(at * 1000);
        const today = day.format(date);
        const time = step < 60 ? clock.format(date) : minute.format(date);
        const text = step >= 86400 ? today : last !== "" && today !== last ? `${time}\n${today}` : time;
        last = today;
        return text;
      });
    }

    function moment(at) {
      const date = new Date(at * 1000);
      const [from, to] = xRange();
      const time = clock.format(date);
      return `${to - from > 86400 ? `${day.format(date)} ` : ""}${time}${settings.utc ? " UTC" : ""}`;
    }

    // --- drawing beneath and above the lines ---------------------------------------------------------------------------
    function beneath(u) {
      const { ctx, bbox } = u;
      ctx.save();
      clip(ctx, bbox);
      for (const band of settings.bands) {
        const top = u.valToPos(band.to ?? u.scales.y.max, "y", true);
        const bottom = u.valToPos(band.from ?? u.scales.y.min, "y", true);
        ctx.fillStyle = colour(band.colour, "bad");
        ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
      }
      for (const span of settings.spans) {
        const left = u.valToPos(span.from, "x", true);
        const right = u.valToPos(span.to ?? u.scales.x.max, "x", true);
        ctx.fillStyle = colour(span.colour, "bad");
        ctx.fillRect(left, bbox.top, Math.max(right - left, ratio()), bbox.height);
      }
      ctx.restore();
    }

    function above(u) {
      const { ctx, bbox } = u;
      ctx.save();
      clip(ctx, bbox);
      ctx.font = `${12 * ratio()}px ${getComputedStyle(outer).fontFamily}`;
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      const taken = [];
      for (const rule of settings.rules) {
        const y = Math.round(u.valToPos(rule.value, "y", true));
        ctx.strokeStyle = colour(rule.colour);
        ctx.lineWidth = 1.5 * ratio();
        ctx.setLineDash((rule.dash ?? []).map((part) => part * ratio()));
        line(ctx, bbox.left, y, bbox.left + bbox.width, y);
        const text = `${rule.label} ${inWords(rule.value, settings.format)}`;
        const room = 15 * ratio();
        const up = !taken.some((other) => Math.abs(other - (y - room / 2)) < room) && y - room > bbox.top;
        taken.push(up ? y - room / 2 : y + room / 2);
        write(ctx, text, bbox.left + 6 * ratio(), up ? y - 4 * ratio() : y + 13 * ratio(), colour(rule.colour));
      }
      ctx.setLineDash([]);
      for (const span of settings.spans) {
        if (span.label) write(ctx, span.label, u.valToPos(span.from, "x", true) + 4 * ratio(), bbox.top + 14 * ratio(), colour("text"));
      }
      for (const mark of settings.marks) {
        const x = Math.round(u.valToPos(mark.at, "x", true));
        ctx.strokeStyle = colour(mark.colour, "text");
        ctx.lineWidth = ratio();
        line(ctx, x, bbox.top, x, bbox.top + bbox.height);
        if (mark.label) write(ctx, mark.label, x + 4 * ratio(), bbox.top + 14 * ratio(), colour(mark.colour, "text"));
      }
      ctx.restore();
    }

    function clip(ctx, box) {
      ctx.beginPath();
      ctx.rect(box.left, box.top, box.width, box.height);
      ctx.clip();
    }

    function line(ctx, x0, y0, x1, y1) {
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
    }

    function write(ctx, text, x, y, ink) {
      ctx.lineWidth = 4 * ratio();
      ctx.lineJoin = "round";
      ctx.setLineDash([]);
      ctx.strokeStyle = colour("ground");
      ctx.strokeText(text, x, y);
      ctx.fillStyle = ink;
      ctx.fillText(text, x, y);
    }

    // --- the plot ------------------------------------------------------------------------------------------------------
    const PATHS = { steps: () => uPlot.paths.stepped({ align: 1 }), points: () => () => null };

    function series(entry, index) {
      const area = entry.shape === "area";
      return {
        label: entry.label,
        show: shown.get(entry.id),
        stroke: () => colour(entry.colour),
        width: area ? 1 : (entry.width ?? 2),
        dash: entry.dash,
        paths: PATHS[entry.shape]?.(),
        points: area ? { show: false } : entry.shape === "points" ? { show: true, size: 5 } : { size: 4 },
        fill: area && (!settings.stack || index === 0) ? (u) => areaFill(entry, u.ctx, 1) : undefined,
        spanGaps: false,
      };
    }

    /* Between each area of a stack and the next one that is shown below it. */
    function bands() {
      if (!settings.stack) return [];
      const found = [];
      let below = null;
      lines.forEach((entry, index) => {
        if (!shown.get(entry.id)) return;
        if (below !== null) found.push({ series: [index + 1, below + 1], fill: (u) => areaFill(entry, u.ctx, 1) });
        below = index;
      });
      return found;
    }

    function build() {
      if (plot !== null) plot.destroy();
      const axis = { stroke: () => colour("text"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false } };
      axis.font = `12px ${getComputedStyle(outer).fontFamily}`;
      plot = new uPlot(
        {
          width: Math.max(200, holder.clientWidth),
          height: settings.height,
          legend: { show: false },
          tzDate: settings.utc ? (at) => uPlot.tzDate(new Date(at * 1000), "UTC") : undefined,
          cursor: {
            y: false,
            drag: { x: settings.zoom, y: false },
            points: { size: 7 },
            ...(settings.sync ? { sync: { key: settings.sync } } : {}),
          },
          scales: { x: { time: true, range: settings.zoom ? zoomed : xRange }, y: { range: yRange } },
          axes: [
            { ...axis, values: timeTicks, space: 70, size: timeSize },
            {
              ...axis,
              values: (_u, splits) => splits.map((value) => axisWords(value, splits)),
              size: axisSize,
              ...(settings.format === "bytes" ? { incrs: POWERS_OF_TWO } : {}),
            },
          ],
          series: [{}, ...lines.map(series)],
          bands: bands(),
          hooks: { drawClear: [beneath], draw: [above], setCursor: [() => tell()], setScale: [scaled] },
        },
        [settings.times, ...tops()],
        holder,
      );
      for (const canvas of holder.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
      refresh();
    }

    /* The ends of the values are what uPlot asks for by itself: then the whole axis is meant, which may be longer. */
    function zoomed(_u, low, high) {
      const last = settings.times.length - 1;
      const part = Number.isFinite(low) && Number.isFinite(high) && high > low;
      return part && (low > settings.times[0] || high < settings.times[last]) ? [low, high] : xRange();
    }

    let seen = [null, null]; // the stretch that is shown, null for the whole
    let quiet = true; // while a change of the scale is not the reader's

    function scaled(u, key) {
      if (key !== "x" || quiet || !settings.zoom) return;
      const [from, to] = xRange();
      const { min, max } = u.scales.x;
      const whole = min <= from && max >= to;
      if (whole ? seen[0] === null : min === seen[0] && max === seen[1]) return;
      seen = whole ? [null, null] : [min, max];
      settings.onZoom?.(...seen);
    }

    function zoom(from, to) {
      quiet = true;
      seen = from === null || to === null ? [null, null] : [from, to];
      const [low, high] = seen[0] === null ? xRange() : seen;
      plot.batch(() => plot.setScale("x", { min: low, max: high }));
      quiet = false;
    }

    /* Nearer or farther around the value that is read, as a key asks for it. */
    function zoomBy(factor) {
      const { min, max } = plot.scales.x;
      const [low, high] = xRange();
      const around = selected !== null && selected >= min && selected <= max ? selected : (min + max) / 2;
      const from = Math.max(low, around - (around - min) * factor);
      const to = Math.min(high, around + (max - around) * factor);
      const whole = !(from > low || to < high); // also where 0 times endless is no number
      zoom(whole ? null : from, whole ? null : to);
      settings.onZoom?.(...seen);
    }

    function axisWords(value, splits) {
      if (value === null) return "";
      if (settings.format === "length") {
        const step = splits.length > 1 ? Math.abs(splits[1] - splits[0]) : 1;
        return value.toFixed(step < 0.1 ? 2 : step < 1 ? 1 : 0);
      }
      return inWords(value, settings.format);
    }

    function timeSize(_u, texts) {
      return (texts ?? []).some((text) => text.includes("\n")) ? 44 : 28;
    }

    function axisSize(_u, texts) {
      const longest = (texts ?? []).reduce((most, text) => Math.max(most, (text ?? "").length), 0);
      return Math.max(36, 14 + longest * 7);
    }

    // --- read-out --------------------------------------------------------------------------------------------------------
    function indexNow() {
      const last = settings.times.length - 1;
      if (selected === null || last < 0) return last;
      const after = settings.times.findIndex((at) => at >= selected);
      return after < 0 ? last : after;
    }

    function reading(index) {
      if (index === null || index === undefined || index < 0) return "no value yet";
      const told = lines.filter((entry) => shown.get(entry.id)).map((entry) => `${entry.label} ${inWords(entry.values[index], entry.format)}`);
      return `${moment(settings.times[index])}: ${told.join(", ")}`;
    }

    function tell() {
      const index = selected === null ? (plot?.cursor.idx ?? indexNow()) : indexNow();
      const text = reading(index);
      read.textContent = text;
      holder.setAttribute("aria-valuemin", "0");
      holder.setAttribute("aria-valuemax", String(Math.max(0, settings.times.length - 1)));
      holder.setAttribute("aria-valuenow", String(Math.max(0, index ?? 0)));
      holder.setAttribute("aria-valuetext", text);
    }

    function select(index) {
      if (index === null || settings.times.length === 0) {
        selected = null;
        plot.setCursor({ left: -10, top: -10 });
      } else {
        const bounded = Math.max(0, Math.min(settings.times.length - 1, index));
        selected = settings.times[bounded];
        plot.setCursor({ left: plot.valToPos(selected, "x"), top: plot.over.clientHeight / 2 });
      }
      tell();
    }

    function describe() {
      const last = settings.times.length - 1;
      if (last < 0) return `${settings.title}: no value yet.`;
      const said = lines.filter((entry) => shown.get(entry.id)).map((entry) => {
        const known = entry.values.filter((value) => value !== null && value !== undefined);
        if (known.length === 0) return `${entry.label} is not known`;
        const say = (value) => inWords(value, entry.format);
        // not Math.min(...): a long history has more values than a call may have arguments
        const least = known.reduce((a, b) => (b < a ? b : a));
        const most = known.reduce((a, b) => (b > a ? b : a));
        return `${entry.label} between ${say(least)} and ${say(most)}, at last ${say(known[known.length - 1])}`;
      });
      const rules = settings.rules.map((rule) => `${rule.label} at ${inWords(rule.value, settings.format)}`);
      return `${settings.title}, ${moment(settings.times[0])} to ${moment(settings.times[last])}: ${[...said, ...rules].join("; ")}.`;
    }

    function table() {
      values.querySelector("div")?.remove();
      if (!values.open) return;
      const frame = element("div", "sbchart-scroll");
      frame.tabIndex = 0;
      frame.setAttribute("role", "region");
      frame.setAttribute("aria-label", `${settings.title}: values`);
      const grid = element("table");
      const head = element("tr");
      for (const text of ["time", ...lines.map((entry) => entry.label)]) {
        const cell = element("th", "", text);
        cell.scope = "col";
        head.append(cell);
      }
      grid.append(head);
      const step = Math.max(1, Math.ceil(settings.times.length / TABLE_ROWS));
      for (let index = settings.times.length - 1; index >= 0; index -= step) {
        const row = element("tr");
        const at = element("th", "", moment(settings.times[index]));
        at.scope = "row";
        row.append(at, ...lines.map((entry) => element("td", "", inWords(entry.values[index], entry.format))));
        grid.append(row);
      }
      frame.append(grid);
      values.append(frame);
    }

    // --- changes -----------------------------------------------------------------------------------------------------------
    function refresh() {
      for (const entry of lines) {
        const button = buttons.get(entry.id);
        if (settings.toggles) button.setAttribute("aria-pressed", String(shown.get(entry.id)));
      }
      for (const canvas of keys.querySelectorAll("canvas")) canvas.paint();
      words.textContent = describe();
      tell();
    }

    function toggle(id, on) {
      if (!shown.has(id)) return;
      shown.set(id, on);
      if (settings.stack) {
        quiet = true;
        build();
        zoom(...seen);
      } else plot.setSeries(lines.findIndex((entry) => entry.id === id) + 1, { show: on });
      refresh();
    }

    function update(changes) {
      const { lines: fresh, ...rest } = changes;
      Object.assign(settings, rest);
      for (const entry of lines) {
        if (fresh && fresh[entry.id] !== undefined) entry.values = fresh[entry.id];
      }
      plot.batch(() => plot.setData([settings.times, ...tops()])); // at once: the cursor needs the new scales
      if (selected !== null) select(indexNow());
      table();
      refresh();
    }

    holder.addEventListener("keydown", function (event) {
      const nearer = { "+": 0.5, "=": 0.5, "-": 2, 0: Infinity }[event.key];
      if (settings.zoom && nearer !== undefined && !event.ctrlKey && !event.altKey && !event.metaKey) {
        event.preventDefault();
        zoomBy(nearer);
        return;
      }
      const last = settings.times.length - 1;
      const here = selected === null ? last : indexNow();
      const tenth = Math.max(1, Math.round(settings.times.length / 10));
      const one = event.shiftKey ? 10 : 1;
      const to = {
        ArrowLeft: here - one, ArrowDown: here - one, ArrowRight: here + one, ArrowUp: here + one,
        PageUp: here - tenth, PageDown: here + tenth, Home: 0, End: last, Escape: null,
      };
      if (!(event.key in to) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      select(to[event.key]);
    });
    holder.addEventListener("blur", () => select(null));
    holder.addEventListener("pointermove", () => {
      selected = null; // the pointer chooses from now on
    });

    const widths = new ResizeObserver(() => {
      const width = Math.max(200, holder.clientWidth);
      if (plot !== null && width !== plot.width) plot.setSize({ width, height: settings.height });
    });
    function retheme() {
      colours.clear();
      plot.redraw(false, false);
      for (const canvas of keys.querySelectorAll("canvas")) canvas.paint();
    }
    const themes = new MutationObserver(retheme);
    const wish = window.matchMedia("(prefers-color-scheme: dark)");

    build();
    quiet = false;
    widths.observe(holder);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    wish.addEventListener("change", retheme);

    return {
      update, toggle, zoom, select, describe,
      destroy() {
        widths.disconnect();
        themes.disconnect();
        wish.removeEventListener("change", retheme);
        plot.destroy();
        outer.remove();
      },
    };
  }

  window.specbudgetChart = { create, inWords };
})();
