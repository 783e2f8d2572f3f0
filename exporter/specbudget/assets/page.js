/* Keeps the open status page up to date: takes up what the sidecar sends, says when it sends nothing any more.
   What arrives is plain data (texts, tags, attributes). It becomes nodes one by one and is never read as markup. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const EVENTS = "api/v1/events";
  const SILENT_MS = 16000; // the sidecar says something every five seconds, changed or not
  const FIRST_WAIT_MS = 2000;
  const LONGEST_WAIT_MS = 30000;
  const UNSAFE = /^(?:on|style$|srcdoc$)/i;

  const root = document.documentElement;
  const connection = document.getElementById("connection");
  const said = document.getElementById("said");

  // --- what the sidecar sent, as nodes -----------------------------------------------------------------------------
  function isLayout(node) {
    return node.nodeType === Node.COMMENT_NODE
      || (node.nodeType === Node.TEXT_NODE && node.data.includes("\n") && node.data.trim() === "");
  }

  function make(wanted, space) {
    if (typeof wanted === "string") return document.createTextNode(wanted);
    const own = wanted[0] === "svg" ? SVG : space;
    const node = document.createElementNS(own, wanted[0]);
    attributes(node, wanted[1]);
    for (const child of wanted.slice(2)) node.append(make(child, own));
    return node;
  }

  function attributes(node, wanted) {
    for (const name of node.getAttributeNames()) {
      // whether a reader opened it is the reader's affair
      if (!(name in wanted) && name !== "open") node.removeAttribute(name);
    }
    for (const [name, value] of Object.entries(wanted)) {
      if (!UNSAFE.test(name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
    }
  }

  function fits(node, wanted) {
    if (typeof wanted === "string") return node.nodeType === Node.TEXT_NODE;
    return node.nodeType === Node.ELEMENT_NODE && node.localName === wanted[0]
      && (node.getAttribute("data-key") ?? "") === (wanted[1]["data-key"] ?? "");
  }

  /* Changes what differs and leaves the rest alone, so that focus, selection and what is open stay. */
  function morph(parent, wanted) {
    for (const node of [...parent.childNodes]) if (isLayout(node)) node.remove();
    wanted.forEach((want, index) => {
      let node = parent.childNodes[index];
      if (node !== undefined && !fits(node, want)) {
        const later = [...parent.childNodes].slice(index).find((other) => fits(other, want) && want[1]?.["data-key"]);
        if (later !== undefined) {
          parent.insertBefore(later, node);
          node = later;
        }
      }
      if (node === undefined || !fits(node, want)) parent.insertBefore(make(want, parent.namespaceURI), node ?? null);
      else if (typeof want === "string") {
        if (node.data !== want) node.data = want;
      } else {
        attributes(node, want[1]);
        morph(node, want.slice(2));
      }
    });
    while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
  }

  // --- the chart -----------------------------------------------------------------------------------------------------
  const LINES = [
    { id: "request", label: "per request", colour: 1 },
    { id: "batch", label: "per batch", colour: 4, dash: [2, 3] },
    { id: "break_even", label: "break-even", colour: "limit", dash: [8, 3, 2, 3], shape: "steps" },
  ];
  let chart = null;
  let trace = null;

  function takeTrace(patch) {
    if (trace === null || patch.from <= patch.first) trace = { first: patch.first, values: {} };
    for (const { id } of LINES) {
      const kept = (trace.values[id] ?? []).slice(patch.first - trace.first, patch.from - trace.first);
      trace.values[id] = kept.concat(patch.values[id]);
    }
    trace.first = patch.first;
    const times = trace.values[LINES[0].id].map((_, index) => (trace.first + index + 1) * patch.step);
    const end = times[times.length - 1];
    const rules = patch.target === null ? [] : [{ value: patch.target, label: "target", colour: "target", dash: [6, 4] }];
    const bands = patch.target === null ? [] : [{ from: null, to: patch.target, colour: "bad" }];
    const begun = times.find((_, index) => LINES.some(({ id }) => trace.values[id][index] !== null)) ?? end;
    // a young trace does not stand at the edge of an empty hour
    const from = Math.max(end - 3600, Math.min(begun, end - 600));
    const view = { times, rules, bands, from, to: end };
    // other lines or another target are other keys, too
    const drawn = [patch.target, ...LINES.filter(hasValues).map(({ id }) => id)].join();
    if (chart !== null && chart.drawn === drawn) chart.update({ ...view, lines: trace.values });
    else draw(view, drawn);
  }

  function hasValues({ id }) {
    return id === "request" || trace.values[id].some((value) => value !== null);
  }

  function draw(view, drawn) {
    const holder = document.getElementById("trace");
    if (chart !== null) chart.destroy();
    holder.replaceChildren();
    chart = window.specbudgetChart.create(holder, {
      title: "Acceptance length",
      ...view,
      lines: LINES.filter(hasValues).map((line) => ({ ...line, values: trace.values[line.id] })),
      range: { low: 1, high: null },
      format: "length",
      utc: true,
    });
    chart.drawn = drawn;
  }

  // --- the connection --------------------------------------------------------------------------------------------------
  let source = null;
  let wait = FIRST_WAIT_MS;
  let again = null;
  let silence = null;
  let lastSeen = connection.querySelector("time")?.getAttribute("datetime") ?? "";
  let states = null;

  function clock(iso) {
    return `${iso.slice(11, 19)} UTC`;
  }

  function tell(kind, words) {
    connection.dataset.connection = kind;
    const time = document.createElement("time");
    time.dateTime = lastSeen;
    time.textContent = clock(lastSeen);
    // a screen reader hears of a change of connection, not of every second
    connection.setAttribute("aria-live", connection.dataset.was === kind ? "off" : "polite");
    connection.dataset.was = kind;
    connection.replaceChildren(document.createTextNode(words), time);
    root.toggleAttribute("data-stale", kind === "lost");
  }

  function lost() {
    if (document.hidden) return;
    tell("lost", "Connection lost, last seen ");
  }

  function take(event) {
    const message = JSON.parse(event.data);
    if (message.build !== root.dataset.build) {
      window.location.reload(); // another release of the sidecar: its page is another one
      return;
    }
    wait = FIRST_WAIT_MS;
    lastSeen = new Date(message.at * 1000).toISOString();
    for (const [name, wanted] of Object.entries(message.regions)) {
      const region = document.getElementById(`region-${name}`);
      if (region !== null) morph(region, wanted);
    }
    if (message.trace !== undefined) takeTrace(message.trace);
    announce(message);
    tell("live", "Live, ");
    clearTimeout(silence);
    silence = setTimeout(lost, SILENT_MS);
  }

  function announce(message) {
    const words = { ok: "ok", at_risk: "at risk", breach: "breach", unknown: "unknown", not_budgeted: "not budgeted" };
    document.title = `${words[message.state]} · ${message.service} · specbudget`;
    const icon = document.getElementById("favicon");
    const address = `assets/icon-${message.state}.svg?v=${message.build}`;
    if (icon.getAttribute("href") !== address) icon.setAttribute("href", address);
    if (states !== null) {
      const changed = Object.entries(message.lines).filter(([line, state]) => states[line] !== state);
      if (changed.length > 0) said.textContent = changed.map(([line, state]) => `${line}: ${words[state]}`).join(", ");
    }
    states = message.lines;
  }

  function open() {
    close();
    source = new EventSource(EVENTS);
    source.addEventListener("message", take);
    source.addEventListener("error", function () {
      lost();
      if (source.readyState !== EventSource.CLOSED) return; // the browser comes back by itself
      again = setTimeout(open, wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    });
    silence = setTimeout(lost, SILENT_MS);
  }

  function close() {
    clearTimeout(again);
    clearTimeout(silence);
    source?.close();
    source = null;
  }

  // a page that nobody sees costs nothing, and leaves the browser its few connections
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
  if (!document.hidden) open();
})();
