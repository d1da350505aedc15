"use strict";
// Draws the sections of a report from the JSON in #data. No library, no network.
const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");
let ink, soft, line, paper, tint, hues, waits;
// Colours of the moment: the page follows the system's light or dark style, and prints in the light one.
function readColors(light) {
  const style = getComputedStyle(document.documentElement);
  [ink, soft, line, paper, tint] = ["ink", "soft", "line", "paper", "tint"].map((name) => style.getPropertyValue(`--${name}`));
  const dark = !light && matchMedia("(prefers-color-scheme: dark)").matches;
  if (light) [ink, soft, line, paper, tint] = ["#1d2733", "#5b6775", "#d8dee6", "#fff", "#f4f6f9"];
  hues = dark ? ["#4fb3d9", "#f0883e", "#63c174", "#b18cf0", "#e3c04a", "#f075a6"] : ["#0b6e99", "#c2410c", "#2e7d32", "#7b3fa0", "#a67c00", "#ad1457"];
  waits = dark ? ["#24435f", "#2f6690", "#4f92c4", "#8cc0e6", "#dceefb"] : ["#d3e1ee", "#8fb8da", "#3f83ba", "#1b4f86", "#0c2547"];
}
readColors(false);
const shades = (n) => `hsl(${((n * 137.508) % 360).toFixed(1)} 58% ${54 + (n % 3) * 7}%)`;
function make(tag, parent, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}
function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" && !Number.isInteger(value)) return String(+value.toPrecision(5));
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}
// A duration as people write it: two units at most.
function span(seconds) {
  const sign = seconds < 0 ? "−" : "", size = Math.abs(seconds);
  if (size < 60) return `${sign}${+size.toPrecision(size < 1 ? 2 : 3)} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.round(size); const parts = [];
  for (const [unit, length] of units) {
    const count = Math.floor(left / length); left -= count * length;
    if (count || parts.length) parts.push([count, unit]);
  }
  return sign + parts.slice(0, 2).filter(([count]) => count).map(([count, unit]) => `${count} ${unit}`).join(" ");
}
// Names of columns and figures say their unit: wait_mean_s, "mean wait (s)", seconds.run, cpu_utilization.
const isTime = (name) => /_s($|[ .])|\(s\)|^seconds\b/.test(name);
const isShare = (name) => /utili[sz]ation$|_shares?$|\(share\)|^loss_of_capacity$/.test(name);
// Seconds since 1970, by their name: a priority may be as large.
const isMoment = (name, column) => /^(slurm|submit|offered|planned|start|end)$/.test(name) && column.every((v) => v === null || (typeof v === "number" && v > 1e9 && v < 1e10)) && column.some((v) => v !== null);
const moment = (v) => new Date(v * 1000).toISOString().slice(0, 16).replace("T", " ");
function words(name) {
  const plain = name.replace(/_s\b/g, "").replace(/ \((s|share)\)/, "").replace(/[_.]/g, " ");
  const found = /^(.+) (mean|std|max)$/.exec(plain);
  if (!found) return plain;
  return { mean: `mean ${found[1]}`, std: `${found[1]}, standard deviation`, max: `${isTime(name) ? "longest" : "largest"} ${found[1]}` }[found[2]];
}
function cellText(value, name) {
  if (typeof value !== "number") return shown(value);
  if (isTime(name)) return span(value);
  return isShare(name) && Math.abs(value) <= 1 ? `${+(100 * value).toPrecision(3)} %` : shown(value);
}
const LENGTHS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 604800, 1209600, 2592000, 7776000, 31536000];
// Round values from low to high, some five of them: whole units of time, or 1, 2 and 5 times a power of ten.
function ticks(low, high, time) {
  const least = (high - low) / (time ? 8 : 5) || 1, power = 10 ** Math.floor(Math.log10(least));
  const steps = time ? LENGTHS : [1, 2, 5, 10].map((n) => n * power), found = [];
  const step = steps.find((n) => n >= least) || steps.at(-1) * Math.ceil(least / steps.at(-1));
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high * (1 + 1e-9); n++) found.push(+(n * step).toPrecision(12));
  return found;
}
// Round durations below a scale that is a square root, as many as have room.
function rootTicks(pen, most, x, y) {
  let last = -Infinity; pen.fillStyle = soft; pen.strokeStyle = line;
  for (const value of [0, ...LENGTHS.filter((n) => n >= 60 && n <= most)]) {
    const text = span(value), place = x(value);
    if (place - last < pen.measureText(text).width + 16) continue;
    below(pen, text, place, Infinity, y); last = place;
  }
}
function legendIn(box, entries) {
  const legend = make("div", box, undefined, "legend");
  for (const [color, text] of entries) { const entry = make("span", legend); make("i", entry).style.background = color; entry.append(text); }
}
function point(event, text) {
  tip.style.display = text ? "block" : "none";
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
}
function canvasIn(parent, height) {
  const canvas = make("canvas", parent);
  const width = Math.max(300, parent.clientWidth), ratio = devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d"); pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif";
  return { canvas, pen, width, height };
}
const at = (event, canvas) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };

function facts(section, box) {
  const list = make("dl", box);
  for (const [name, value] of section.items) { make("dt", list, name); make("dd", list, cellText(value, name)); }
}

function table(section, box) {
  const names = Object.keys(section.columns), columns = Object.values(section.columns);
  const count = columns.length ? columns[0].length : 0, size = 100;
  const isNumber = columns.map((column) => column.every((v) => v === null || typeof v === "number"));
  const times = names.map((name) => isTime(name) || (section.times || []).includes(name)), moments = names.map((name, place) => isMoment(name, columns[place]));
  // A figure in a row has its unit in the row's name, others in the column's.
  const figures = ["metric", "figure"].includes(names[0]);
  const text = columns.map((column, place) => column.map((value, row) => {
    if (typeof value !== "number") return place === 0 && figures ? words(value) : shown(value);
    if (moments[place]) return moment(value);
    return times[place] ? span(value) : cellText(value, figures && names[place] !== "jobs" ? columns[0][row] : names[place]);
  }));
  const lower = text.map((column) => column.map((word) => word.toLowerCase()));
  const same = names.map((_, place) => names.length > 12 && count > 1 && new Set(text[place]).size === 1);
  if (same.some(Boolean)) make("p", box, `the same in every row: ${names.filter((_, place) => same[place] && text[place][0]).map((name) => `${words(name)} ${text[names.indexOf(name)][0]}`).join(", ")}`, "soft");
  // A few runs of many figures: a row for each figure.
  if (names.length > 12 && count > 0 && count <= 6) {
    const body = make("tbody", make("table", make("div", box, undefined, "wide")));
    names.forEach((name, place) => {
      if (same[place] || text[place].every((word) => !word)) return;
      const row = make("tr", body); make("td", row, words(name)).title = name;
      for (const word of text[place]) make("td", row, word, "number");
    });
    return;
  }
  let rows = [...Array(count).keys()], page = 0, sorted = -1, down = false;
  const bar = make("div", box, undefined, "bar");
  const filter = make("input", bar); filter.placeholder = "filter: words, or column:word"; filter.size = 34;
  const state = make("span", bar, "", "soft");
  const before = make("button", bar, "‹"), after = make("button", bar, "›");
  const wide = make("div", box, undefined, names.length > 16 ? "wide many" : "wide"), element = make("table", wide);
  const head = make("tr", make("thead", element)), body = make("tbody", element);
  names.forEach((name, place) => {
    const cell = make("th", head, words(name), isNumber[place] ? "number" : "");
    cell.title = name; cell.hidden = same[place];
    cell.onclick = () => { down = sorted === place ? !down : false; sorted = place; page = 0; apply(); };
  });
  function matches(row, words) {
    return words.every((word) => {
      const cut = word.indexOf(":"), place = cut > 0 ? names.findIndex((n) => n.toLowerCase() === word.slice(0, cut)) : -1;
      if (place >= 0) return lower[place][row].includes(word.slice(cut + 1));
      return lower.some((column) => column[row].includes(word));
    });
  }
  function apply() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows = [...Array(count).keys()].filter((row) => matches(row, words));
    if (sorted >= 0) {
      const column = columns[sorted], sign = down ? -1 : 1;
      rows.sort((a, b) => {
        const x = column[a], y = column[b];
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (isNumber[sorted] ? x - y : shown(x).localeCompare(shown(y), "en", { numeric: true }));
      });
    }
    [...head.children].forEach((cell, place) => {
      cell.classList.toggle("up", place === sorted && !down); cell.classList.toggle("down", place === sorted && down);
    });
    draw();
  }
  function draw() {
    const first = page * size, last = Math.min(first + size, rows.length);
    body.replaceChildren(...rows.slice(first, last).map((row) => {
      const line = document.createElement("tr");
      columns.forEach((column, place) => {
        const cell = make("td", line, text[place][row], isNumber[place] ? "number" : "");
        cell.dataset.name = figures && !place ? "" : words(names[place]); cell.hidden = same[place];
        if (typeof column[row] === "number" && text[place][row] !== shown(column[row])) cell.title = String(column[row]);
      });
      return line;
    }));
    state.textContent = `${rows.length ? first + 1 : 0}–${last} of ${rows.length}` + (rows.length < count ? ` (${count} in all)` : "");
    before.disabled = page === 0; after.disabled = last >= rows.length;
    before.hidden = after.hidden = rows.length <= size;
    filter.hidden = count < 2;
  }
  filter.oninput = () => { page = 0; apply(); };
  before.onclick = () => { page -= 1; draw(); }; after.onclick = () => { page += 1; draw(); };
  draw();
}

// A block for each leaf switch, a cell for each node: grey what ran before, a colour for each job that starts.
function machine(section, box) {
  const { names, total, free, closed, leaves, starts, running } = section;
  const held = new Map(), ran = new Map();
  const note = (uses, map, entry) => { for (const [node, cores] of uses) { if (!map.has(node)) map.set(node, []); map.get(node).push([entry[0], cores, entry[1]]); } };
  starts.forEach(([job, uses], number) => note(uses, held, [job, number]));
  for (const [job, uses] of running) note(uses, ran, [job, 0]);
  const matters = ([, nodes]) => nodes.some((node) => held.has(node) || (free[node] > 0 && !closed[node]));
  const changed = leaves.filter(matters), full = leaves.length - changed.length, few = full > 8 && changed.length > 0;
  legendIn(box, [["#9aa5b1", "runs already"], [shades(0), "starts now, a colour for each job"], [paper, "free"], [tint, "takes no jobs"]]);
  const place = make("div", box);
  if (few) {
    const bar = make("div", box, undefined, "bar"), button = make("button", bar, `show all ${leaves.length} switches`);
    make("span", bar, `${full} switches without a free core, where nothing changes, are left out`, "soft");
    button.onclick = () => { draw(leaves); bar.remove(); };
  }
  function draw(shownLeaves) {
    place.replaceChildren();
    const longest = Math.max(...shownLeaves.map((leaf) => leaf[1].length)), width = Math.max(300, place.clientWidth);
    // Squares that can be read; smaller ones only where thousands would make the picture too high for a browser.
    const many = shownLeaves.reduce((sum, leaf) => sum + leaf[1].length, 0), cell = many > 20000 ? 8 : many > 4000 ? 16 : 28;
    const label = width < 500 ? 62 : 92, perRow = Math.max(1, Math.min(longest, Math.floor((width - label - 12) / cell)));
    const high = cell, block = label + perRow * cell + 16, across = Math.max(1, Math.floor(width / block));
    const deep = Math.ceil(longest / perRow) * high + 8, { canvas, pen } = canvasIn(place, Math.ceil(shownLeaves.length / across) * deep + 4), spot = [];
    shownLeaves.forEach(([name, nodes], number) => {
      const left = (number % across) * block, above = Math.floor(number / across) * deep;
      const room = label < 80 ? 8 : 12;
      pen.fillStyle = soft; pen.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, left + 2, above + high / 2 + 4);
      nodes.forEach((node, index) => {
        const x = left + label + (index % perRow) * cell, y = above + Math.floor(index / perRow) * high, w = cell - 1, h = high - 1;
        pen.fillStyle = closed[node] ? tint : paper; pen.fillRect(x, y, w, h);
        let filled = h * Math.max(0, total[node] - free[node]) / total[node];
        pen.fillStyle = "#9aa5b1"; pen.fillRect(x, y + h - filled, w, filled);
        for (const [, cores, job] of held.get(node) || []) { const part = h * cores / total[node]; filled += part; pen.fillStyle = shades(job); pen.fillRect(x, y + h - filled, w, part); }
        pen.strokeStyle = soft; pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
        const digits = /\d{1,4}$/.exec(names[node]);
        if (digits && cell > 20) { pen.font = "9px system-ui, sans-serif"; pen.fillStyle = filled > h - 10 ? "#10151b" : ink; pen.fillText(digits[0], x + 2, y + 9); pen.font = "12px system-ui, sans-serif"; }
        spot.push([x, y, w, h, node]);
      });
    });
    canvas.onmousemove = (event) => {
      const [x, y] = at(event, canvas), hit = spot.find(([a, b, w, h]) => x >= a && x <= a + w && y >= b && y <= b + h);
      if (!hit) { point(event, ""); return; }
      const node = hit[4], words = [`${names[node]}: ${free[node]} of ${total[node]} cores were free`];
      const describe = (verb) => ([job, cores]) => words.push(`job ${job} ${verb}, ${cores} core${cores === 1 ? "" : "s"}`);
      (held.get(node) || []).forEach(describe("starts"));
      const before = ran.get(node) || []; before.slice(0, 6).forEach(describe("runs"));
      if (before.length > 6) words.push(`and ${before.length - 6} more run`);
      if (closed[node]) words.push(closed[node]);
      point(event, words.join("\n"));
    };
    canvas.onmouseleave = (event) => point(event, "");
  }
  draw(few ? changed : leaves);
}

// A colour between two.
function blend(from, to, share) {
  const parts = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)), [a, b] = [parts(from), parts(to)];
  return `rgb(${a.map((v, place) => Math.round(v + (b[place] - v) * share)).join(",")})`;
}

// Rectangles [job, first row, rows] over time; the wheel zooms where the pointer is, dragging moves, double click resets.
function gantt(section, box) {
  const { jobs, start, end, rects, rows, unit, names, cores, wait } = section;
  make("p", box, "wheel: zoom in time · shift and wheel: zoom in " + unit + " · drag: move · double click: everything", "soft");
  const longestWait = Math.max(1, ...(wait || []).filter((v) => v !== null));
  const mix = (share) => { const at = Math.min(1, share) * (waits.length - 1), low = Math.min(waits.length - 2, Math.floor(at)); return blend(waits[low], waits[low + 1], at - low); };
  const color = (job) => wait ? (wait[job] === null ? "#9aa5b1" : mix(Math.sqrt(wait[job] / longestWait))) : shades(job);
  const dark = (job) => wait && wait[job] !== null && Math.sqrt(wait[job] / longestWait) > 0.45 !== (waits[0] === "#24435f");
  if (wait) legendIn(box, [0, 1 / 16, 1 / 4, 9 / 16, 1].map((share) => [mix(Math.sqrt(share)), share ? `waited ${span(share * longestWait)}` : "started at once"]));
  const label = names ? 84 : 54, foot = 22, { canvas, pen, width, height } = canvasIn(box, 430);
  let longest = 0;
  for (let one = 0; one < end.length; one++) longest = Math.max(longest, end[one]);
  const all = { t0: 0, t1: longest || 1, r0: 0, r1: rows }; let view = { ...all }, visible = [];
  const tx = (t) => label + (t - view.t0) / (view.t1 - view.t0) * (width - label), ry = (r) => (r - view.r0) / (view.r1 - view.r0) * (height - foot);
  function draw() {
    pen.fillStyle = paper; pen.fillRect(0, 0, width, height); visible = [];
    pen.save(); pen.beginPath(); pen.rect(label, 0, width - label, height - foot); pen.clip();
    for (const rect of rects) {
      const [job, first, count] = rect;
      if (end[job] < view.t0 || start[job] > view.t1 || first + count < view.r0 || first > view.r1) continue;
      const x = tx(start[job]), y = ry(first), w = Math.max(0.7, tx(end[job]) - x), h = Math.max(0.7, ry(first + count) - y);
      pen.fillStyle = color(job); pen.fillRect(x, y, w, h); visible.push([x, y, w, h, job]);
      if (w > 3 && h > 3) { pen.strokeStyle = paper; pen.strokeRect(x, y, w, h); }
      if (h > 11 && w > 8 * String(jobs[job]).length) { pen.fillStyle = dark(job) ? "#fff" : "#10151b"; pen.fillText(jobs[job], x + 3, y + Math.min(h - 2, 11)); }
    }
    pen.restore(); pen.fillStyle = soft;
    for (const t of ticks(view.t0, view.t1, true)) below(pen, span(t), tx(t), width, height - 6);
    const step = Math.max(1, Math.ceil((view.r1 - view.r0) / ((height - foot) / 16)));
    for (let r = Math.ceil(view.r0); r < view.r1; r++) if (r % step === 0) pen.fillText(names ? names[r] : r, 2, ry(r) + 11);
  }
  canvas.onwheel = (event) => {
    event.preventDefault();
    const [x, y] = at(event, canvas), factor = Math.exp((event.deltaY || event.deltaX) * 0.0016);
    const [low, high, share] = event.shiftKey ? ["r0", "r1", y / (height - foot)] : ["t0", "t1", (x - label) / (width - label)];
    const middle = view[low] + (view[high] - view[low]) * Math.min(1, Math.max(0, share));
    view[low] = Math.max(all[low], middle - (middle - view[low]) * factor);
    view[high] = Math.min(all[high], middle + (view[high] - middle) * factor);
    if (event.shiftKey && view.r1 - view.r0 < 1) view.r1 = view.r0 + 1;
    draw();
  };
  let held = null;
  canvas.onmousedown = (event) => { held = [...at(event, canvas), { ...view }]; };
  onmouseup = () => { held = null; };
  canvas.onmousemove = (event) => {
    const [x, y] = at(event, canvas);
    if (held) {
      const [x0, y0, from] = held;
      let dt = (x0 - x) / (width - label) * (from.t1 - from.t0), dr = (y0 - y) / (height - foot) * (from.r1 - from.r0);
      dt = Math.min(all.t1 - from.t1, Math.max(-from.t0, dt)); dr = Math.min(all.r1 - from.r1, Math.max(-from.r0, dr));
      view = { t0: from.t0 + dt, t1: from.t1 + dt, r0: from.r0 + dr, r1: from.r1 + dr }; draw(); return;
    }
    const hit = visible.find(([a, b, w, h]) => x >= a && x <= a + w && y >= b && y <= b + h);
    if (!hit) { point(event, ""); return; }
    const job = hit[4], waited = wait && wait[job] !== null ? `\nwaited ${span(wait[job])}` : "";
    point(event, `job ${jobs[job]}: ${cores[job]} core${cores[job] === 1 ? "" : "s"}\n${span(start[job])} to ${span(end[job])}, ${span(end[job] - start[job])}${waited}`);
  };
  canvas.onmouseleave = (event) => point(event, "");
  canvas.ondblclick = () => { view = { ...all }; draw(); };
  draw();
  canvas.view = () => ({ ...view });
}

// A text centred at a place, within the picture.
const below = (pen, text, place, width, y) => { const size = pen.measureText(text).width; pen.fillText(text, Math.max(0, Math.min(place - size / 2, width - size)), y); };
function axes(pen, width, height, left, bottom, xs, ys, xText, yText, time, timeUp) {
  pen.strokeStyle = line; pen.fillStyle = soft;
  pen.beginPath(); pen.moveTo(left, 4); pen.lineTo(left, height - bottom); pen.lineTo(width - 4, height - bottom); pen.stroke();
  for (const x of ticks(...xs, time)) {
    below(pen, xText(x), left + (width - left - 8) * (x - xs[0]) / (xs[1] - xs[0] || 1), width, height - bottom + 14);
  }
  for (const y of ticks(...ys, timeUp)) {
    const place = height - bottom - (height - bottom - 12) * (y - ys[0]) / (ys[1] - ys[0] || 1);
    pen.fillText(yText(y), 2, place + 4); pen.beginPath(); pen.moveTo(left, place); pen.lineTo(width - 4, place); pen.stroke();
  }
}

// A chart for each label; several policies are curves in one chart, with a legend.
function lines(section, box) {
  const { times, series } = section, charts = new Map();
  for (const one of series) charts.set(one.label, [...(charts.get(one.label) || []), one]);
  const end = times[times.length - 1] || 1, first = Math.min(0, times[0] || 0);
  for (const [label, curves] of charts) {
    make("div", box, label, "soft");
    if (curves.length > 1) legendIn(box, curves.map((one, place) => [hues[place % hues.length], one.name]));
    const left = 60, bottom = 22, { pen, width, height, canvas } = canvasIn(box, 190);
    const top = curves[0].most || Math.max(1, ...curves.map((one) => Math.max(...one.values)));
    const x = (t) => left + (t - first) / (end - first || 1) * (width - left - 8), y = (v) => height - bottom - v / top * (height - bottom - 12);
    axes(pen, width, height, left, bottom, [first, end], [0, top], span, (v) => shown(+v.toPrecision(3)), true);
    curves.forEach(({ values }, number) => {
      pen.strokeStyle = hues[number % hues.length]; pen.fillStyle = `${pen.strokeStyle}44`; pen.lineWidth = 1.4; pen.beginPath();
      pen.moveTo(x(times[0]), y(curves.length > 1 ? values[0] : 0));
      values.forEach((v, place) => { pen.lineTo(x(times[place]), y(v)); pen.lineTo(x(times[place + 1]), y(v)); });
      if (curves.length === 1) { pen.lineTo(x(end), y(0)); pen.fill(); }
      pen.stroke(); pen.lineWidth = 1;
    });
    canvas.onmousemove = (event) => {
      const t = first + (at(event, canvas)[0] - left) / (width - left - 8) * (end - first), place = times.findLastIndex((one) => one <= t);
      if (place < 0 || place >= curves[0].values.length) { point(event, ""); return; }
      point(event, `${span(times[place])}\n${curves.map((one) => `${one.name ? `${one.name}: ` : ""}${shown(+one.values[place].toPrecision(4))}`).join("\n")}`);
    };
    canvas.onmouseleave = (event) => point(event, "");
  }
}

// Percentiles by group: a line from the median to the 90th percentile, the mean as a dot.
function spread(section, box) {
  const { groups, unit } = section, left = 130, high = 22;
  const { canvas, pen, width } = canvasIn(box, groups.length * high + 30);
  const most = Math.max(1, ...groups.map((one) => one.p99)), x = (v) => left + Math.sqrt(v / most) * (width - left - 20);
  groups.forEach((one, place) => {
    const y = place * high + 14; pen.fillStyle = ink; pen.fillText(`${one.name} (${one.jobs})`.slice(0, 20), 2, y + 4);
    pen.strokeStyle = line; pen.lineWidth = 2; pen.beginPath(); pen.moveTo(x(one.p50), y); pen.lineTo(x(one.p99), y); pen.stroke();
    pen.strokeStyle = hues[0]; pen.lineWidth = 7; pen.beginPath(); pen.moveTo(x(one.p50), y); pen.lineTo(x(one.p90), y); pen.stroke();
    pen.fillStyle = hues[1]; pen.beginPath(); pen.arc(x(one.mean), y, 4, 0, 7); pen.fill(); pen.lineWidth = 1;
  });
  rootTicks(pen, most, x, groups.length * high + 24);
  canvas.onmousemove = (event) => {
    const one = groups[Math.floor((at(event, canvas)[1] - 3) / high)];
    point(event, one ? `${one.name}: ${one.jobs} jobs\nmean ${span(one.mean)}, median ${span(one.p50)}\n90 % ${span(one.p90)}, 99 % ${span(one.p99)}, longest ${span(one.max)}` : "");
  };
  canvas.onmouseleave = (event) => point(event, "");
  make("p", box, `${unit}: thick from the median to the 90th percentile, thin to the 99th, the dot is the mean; the scale is a square root`, "soft");
}

// A row for each job: a bar from P10 to P90 with a dot at P50.
function intervals(section, box) {
  const { rows } = section, left = 110, high = 18, { canvas, pen, width } = canvasIn(box, rows.length * high + 26);
  const most = Math.max(1, ...rows.map((row) => row[3])), x = (v) => left + Math.sqrt(v / most) * (width - left - 20);
  rows.forEach(([name, low, middle, top], place) => {
    const y = place * high + 12; pen.fillStyle = ink; pen.fillText(name.slice(0, 16), 2, y + 4);
    pen.strokeStyle = hues[0]; pen.lineWidth = 7; pen.beginPath(); pen.moveTo(x(low), y); pen.lineTo(Math.max(x(top), x(low) + 1), y); pen.stroke();
    pen.fillStyle = hues[1]; pen.beginPath(); pen.arc(x(middle), y, 4, 0, 7); pen.fill(); pen.lineWidth = 1;
  });
  rootTicks(pen, most, x, rows.length * high + 20);
  canvas.onmousemove = (event) => {
    const row = rows[Math.floor((at(event, canvas)[1] - 3) / high)];
    point(event, row ? `${row[0]}: P10 ${span(row[1])}, P50 ${span(row[2])}, P90 ${span(row[3])}` : "");
  };
  canvas.onmouseleave = (event) => point(event, "");
}

function scatter(section, box) {
  const names = Object.keys(section.columns), bar = make("div", box, undefined, "bar");
  const numeric = names.filter((name) => section.columns[name].some((v) => typeof v === "number"));
  const chosen = {};
  for (const [axis, options, start] of [["across", names, section.x], ["up", numeric, section.y], ["colour", ["", ...names], section.color]]) {
    make("span", bar, axis, "soft"); const select = make("select", bar);
    for (const name of options) make("option", select, words(name)).value = name;
    select.value = start; chosen[axis] = select; select.onchange = () => draw();
  }
  // Repetitions of one point of the grid: a line joins the least and the greatest, a bar marks the mean.
  const apart = section.labels.filter((name) => name !== "seed" && name !== section.y), points = new Map();
  for (let i = 0; i < section.columns[section.x].length; i++) {
    const key = apart.map((name) => section.columns[name][i]).join("\n"); points.set(key, [...(points.get(key) || []), i]);
  }
  const { canvas, pen, width, height } = canvasIn(box, 340), legend = make("div", box); let dots = [];
  function draw() {
    pen.clearRect(0, 0, width, height); legend.replaceChildren(); dots = [];
    const xs = section.columns[chosen.across.value], ys = section.columns[chosen.up.value], by = section.columns[chosen.colour.value] || [];
    const words = [...new Set(xs)], isNumber = xs.every((v) => typeof v === "number"), groups = [...new Set(by)];
    const values = xs.map((v) => isNumber ? v : words.indexOf(v)), ok = ys.map((v, i) => i).filter((i) => typeof ys[i] === "number" && values[i] !== null);
    if (!ok.length) return;
    const lowX = Math.min(...ok.map((i) => values[i])), highX = Math.max(...ok.map((i) => values[i])), highY = Math.max(...ok.map((i) => ys[i])), lowY = Math.min(0, ...ok.map((i) => ys[i]));
    // The same scales as the axes', with room at both ends.
    const room = (highX - lowX || 1) * (isNumber ? 0.04 : 0.2), [x0, x1] = [lowX - room, highX + room];
    const left = 70, bottom = 24, x = (v) => left + (v - x0) / (x1 - x0) * (width - left - 8), y = (v) => height - bottom - (v - lowY) / (highY - lowY || 1) * (height - bottom - 12);
    const told = (axis) => (v) => cellText(+v.toPrecision(3), chosen[axis].value);
    axes(pen, width, height, left, bottom, [x0, x1], [lowY, highY], isNumber ? told("across") : () => "", told("up"), isNumber && isTime(chosen.across.value), isTime(chosen.up.value));
    if (!isNumber) words.forEach((word, place) => { pen.fillStyle = soft; below(pen, shown(word).slice(0, 18), x(place), width, height - bottom + 14); });
    for (const i of ok) {
      const group = groups.indexOf(by[i]); pen.fillStyle = shades(Math.max(0, group)); pen.beginPath(); pen.arc(x(values[i]), y(ys[i]), 4.5, 0, 7); pen.fill(); dots.push([x(values[i]), y(ys[i]), i]);
    }
    for (const repeated of points.values()) {
      const told = repeated.filter((i) => ok.includes(i)), heights = told.map((i) => ys[i]);
      if (told.length < 2) continue;
      const at = x(values[told[0]]), mean = heights.reduce((sum, v) => sum + v, 0) / told.length;
      pen.strokeStyle = shades(Math.max(0, groups.indexOf(by[told[0]]))); pen.lineWidth = 2; pen.beginPath();
      for (const [v, wide] of [[Math.min(...heights), 5], [mean, 9], [Math.max(...heights), 5]]) { pen.moveTo(at - wide, y(v)); pen.lineTo(at + wide, y(v)); }
      pen.moveTo(at, y(Math.min(...heights))); pen.lineTo(at, y(Math.max(...heights))); pen.stroke(); pen.lineWidth = 1;
      for (const dot of dots) if (told.includes(dot[2])) dot[3] = `\nof ${told.length} repetitions: ${["mean", "from", "to"].map((word, n) => `${word} ${cellText([mean, Math.min(...heights), Math.max(...heights)][n], chosen.up.value)}`).join(" ")}`;
    }
    legendIn(legend, groups.map((group, place) => [shades(place), shown(group)]));
  }
  canvas.onmousemove = (event) => {
    const [x, y] = at(event, canvas), hit = dots.find(([a, b]) => Math.hypot(a - x, b - y) < 7);
    point(event, hit ? section.labels.map((name) => `${words(name)}: ${cellText(section.columns[name][hit[2]], name)}`).join("\n") + (hit[3] || "") : "");
  };
  canvas.onmouseleave = (event) => point(event, "");
  draw();
}

const draws = { facts, table, machine, gantt, lines, spread, scatter, intervals };
const drawn = data.sections.map((section) => {
  const box = make("section", document.body); box.dataset.kind = section.kind;
  make("h2", box, section.title);
  if (section.note) make("p", box, section.note, "soft");
  const inside = make("div", box);
  draws[section.kind](section, inside);
  return () => { if (!["facts", "table"].includes(section.kind)) { inside.replaceChildren(); draws[section.kind](section, inside); } };
});
const redraw = (light) => { readColors(light); drawn.forEach((draw) => draw()); };
addEventListener("beforeprint", () => redraw(true));
addEventListener("afterprint", () => redraw(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(false));
let wide = innerWidth; onresize = () => { if (innerWidth !== wide) { wide = innerWidth; redraw(false); } };
document.documentElement.dataset.ready = Math.round(performance.now());
