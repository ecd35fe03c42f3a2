"use strict";
// What the page can do beyond being read: a theme, sorting, filtering, and words about the point of a
// chart that the pointer or the arrow keys are at. Others' words enter the page as text, never as
// markup. It loads and stores nothing.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  // ---- theme: the system's, or the other one of the two ----
  const theme = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "system";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    theme.textContent = "Theme: " + next;
  });

  // ---- sorting: by a number where the cells have one, otherwise by text; empty cells come last ----
  const valueOf = (cell) => {
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sortBy = (table, column, header) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return down ? compare(b, a) : compare(a, b);
    });
    for (const other of all("th[aria-sort]", table.tHead)) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of all("table.sortable"))
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      if (header.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      button.addEventListener("click", () => sortBy(table, column, header));
      header.replaceChildren(button);
    });

  // ---- filtering ----
  for (const input of all("input[data-filters]"))
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of document.getElementById(input.dataset.filters).tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea")) return;
    const input = document.querySelector("input[data-filters]");
    if (!input) return;
    event.preventDefault();
    const closed = input.closest("details");
    if (closed) closed.open = true;
    input.focus();
  });

  // ---- charts ----
  const candidates = new Map((data.candidates || []).map((c) => [c.ordinal, c]));
  const timeText = (s) => {
    if (s === null || s === undefined) return "";
    const units = ["s", "ms", "µs", "ns"];
    let unit = 0;
    for (; s > 0 && s < 1 && unit < 3; unit++) s *= 1e3;
    return s.toPrecision(3) + " " + units[unit];
  };
  const show = (ordinal, x, y) => {
    const c = candidates.get(ordinal);
    if (!c) return;
    const head = document.createElement("b");
    head.textContent = "kernel " + ordinal + (ordinal === data.winner ? ", the winner" : "");
    const time = c.time_s === null ? c.verdict : timeText(c.time_s) + (data.estimated ? " estimated" : "");
    tip.replaceChildren(head, time + (c.step ? ", " + c.step : ""), document.createElement("br"), c.differs);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 16, innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + box.height + 24 > innerHeight ? y - box.height - 12 : y + 16) + "px";
  };
  const hide = () => { tip.hidden = true; };
  const moveCursor = (svg, x, y) => {
    const cursor = svg.querySelector(".cursor");
    cursor.setAttribute("cx", x);
    cursor.setAttribute("cy", y);
    cursor.style.visibility = "visible";
  };
  for (const [id, flat] of Object.entries(data.charts || {})) {
    const svg = document.getElementById(id);
    const points = [];
    for (let i = 0; i + 2 < flat.length; i += 3) points.push({ ordinal: flat[i], x: flat[i + 1], y: flat[i + 2] });
    if (!points.length) continue;
    points.sort((a, b) => a.x - b.x || a.y - b.y);
    let at = points.findIndex((p) => p.ordinal === data.winner);
    const scale = () => svg.getScreenCTM();
    const look = (p) => {
      const m = scale();
      moveCursor(svg, p.x, p.y);
      show(p.ordinal, m.a * p.x + m.e, m.d * p.y + m.f);
    };
    const leave = () => { svg.querySelector(".cursor").style.visibility = ""; hide(); };
    svg.addEventListener("pointermove", (event) => {
      const m = scale(), x = (event.clientX - m.e) / m.a, y = (event.clientY - m.f) / m.d;
      let best = null, least = 30 * 30;
      for (const p of points) {
        const far = (p.x - x) ** 2 + (p.y - y) ** 2;
        if (far < least) { best = p; least = far; }
      }
      if (best) look(best);
      else leave();
    });
    svg.addEventListener("pointerleave", leave);
    svg.tabIndex = 0;
    svg.setAttribute("aria-describedby", "tip");
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible") && at >= 0) look(points[at]); });
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") leave();
      if (step === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(points.length - 1, at + step));
      look(points[at]);
    });
  }

  // ---- the source begins where it is hottest ----
  const box = document.querySelector(".source");
  const hottest = document.querySelector(".hottest a");
  if (box && hottest) {
    const row = document.getElementById(hottest.hash.slice(1));
    box.scrollTop = row.offsetTop - box.clientHeight / 3;
  }

  // ---- where the reader is; links into closed parts ----
  const links = new Map(all("nav a").map((a) => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
  }, { rootMargin: "-10% 0px -80% 0px" });
  for (const section of all("main > section")) watch.observe(section);
  const openTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const closed = target && target.closest("details:not([open])");
    if (!closed) return;
    closed.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", openTarget);
  openTarget();
})();
