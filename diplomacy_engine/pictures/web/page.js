// What the pages that show games share: the board, the bar of controls, orders in words, the chart
// of centers, the legend. A page of one file has it all in one script, so names are unique.

const SVG = "http://www.w3.org/2000/svg";
const LEGIBLE = 10; // pixels; smaller names are not shown
const PHONE = 560; // pixels; no wider board begins as large as a part of it
const LARGEST = 8; // times the size at which the whole board is seen

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export const $ = (id) => document.getElementById(id);
export const nice = (power) => power.charAt(0) + power.slice(1).toLowerCase();
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.…!?]$/.test(text) ? "" : ".");
export const percent = (share) => (share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`);
export const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);
export const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

export function swatch(power) {
  const holder = h("span", { class: "dip-board swatch", "data-theme": theme.now, "aria-hidden": "true" });
  holder.style.backgroundColor = `var(--p-${power})`;
  return holder;
}

// A name, which may go on in another line after a negotiator or a folder.
export const breakable = (name) => name.replace(/[+/]/g, "$&\u200b");

// --- Pictures -------------------------------------------------------------------------------------

const sheets = new Set(); // texts of styles; pages may refuse <style> in a picture

function adopt(text) {
  if (sheets.has(text)) return;
  sheets.add(text);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

// Return the element of an SVG text; its style becomes one of the page.
export function picture(text) {
  const bare = text.replace(/<style>(.*?)<\/style>/gs, (_, style) => (adopt(style), ""));
  const found = document.importNode(new DOMParser().parseFromString(bare, "image/svg+xml").documentElement, true);
  if (found.classList.contains("dip-board")) found.dataset.theme = theme.now;
  return found;
}

function drawn(tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

// A padlock, drawn since not every machine has a font with one.
export function lock(title = "") {
  const svg = drawn("svg", { viewBox: "0 0 16 16", class: "lock", [title ? "role" : "aria-hidden"]: title ? "img" : "true" });
  if (title) svg.append(drawn("title", {}, title));
  svg.append(drawn("path", { d: "M5 7V5a3 3 0 0 1 6 0v2", class: "bow" }), drawn("rect", { x: 3, y: 7, width: 10, height: 7.5, rx: 1.5 }));
  return svg;
}

// --- Colors ---------------------------------------------------------------------------------------

const THEMES = { auto: "Colors: auto", light: "Colors: light", dark: "Colors: dark" };

export const theme = {
  now: "auto",
  set(name) {
    this.now = name in THEMES ? name : "auto";
    document.documentElement.dataset.theme = this.now;
    for (const element of document.querySelectorAll(".dip-board")) element.dataset.theme = this.now;
    $("theme").textContent = THEMES[this.now];
    try { localStorage.setItem("theme", this.now); } catch { /* not kept */ }
  },
  next() {
    const names = Object.keys(THEMES);
    this.set(names[(names.indexOf(this.now) + 1) % names.length]);
  },
  begin() {
    let kept = "auto";
    try { kept = localStorage.getItem("theme") ?? kept; } catch { /* no storage */ }
    $("theme").addEventListener("click", () => this.next());
    this.set(kept);
  },
};

// --- The board ------------------------------------------------------------------------------------

// Shows a map once and then phase after phase on it; tells which province was clicked; says
// something at a place of the board; zooms.
export class Board {
  constructor(place, onProvince = () => {}) {
    this.onProvince = onProvince;
    this.svg = null;
    this.map = null;
    this.marks = {};
    this.zoom = 1;
    this.tall = 0; // pixels of the frame
    this.frame = h("div", { id: "board" });
    this.smaller = h("button", { id: "zoom-out", title: "Smaller", "aria-label": "Smaller board", onclick: () => this.enlarge(this.zoom / 1.5) }, "−");
    this.larger = h("button", { id: "zoom-in", title: "Larger", "aria-label": "Larger board", onclick: () => this.enlarge(this.zoom * 1.5) }, "+");
    this.named = h("button", { id: "names", title: "Full names of the provinces (N)", "aria-pressed": "false", onclick: () => this.toggleNames() }, "Names");
    this.told = h("p", { id: "say", role: "status", "aria-live": "polite", hidden: true });
    place.append(this.frame, h("div", { id: "zoom", role: "group", "aria-label": "View of the board" }, this.named, this.smaller, this.larger), this.told);
    this.frame.addEventListener("click", (event) => {
      if (event.detail > 1) return; // a double click is one order, not a second one's, too
      this.clicked = [event.clientX, event.clientY];
      const province = provinceOf(event.target);
      if (province) this.onProvince(province);
      this.clicked = null;
    });
    new ResizeObserver(() => this.resized()).observe(this.frame);
  }

  // facts: ground, style and more of a map, as page.py gives them.
  setMap(facts) {
    if (this.map === facts) return;
    adopt(facts.style);
    this.map = facts;
    this.svg = picture(facts.ground);
    this.frame.replaceChildren(this.svg);
    this.enlarge(1);
    this.marks = {};
  }

  // frame: owners and overlay of a phase, as page.py gives them.
  show({ owners, overlay }, title = "") {
    for (const province of this.svg.querySelectorAll("[data-province]")) {
      const [owner, held] = (owners[province.dataset.province] ?? "").split(" ");
      put(province, "data-owner", owner);
      put(province, "data-held", held);
    }
    for (const center of this.svg.querySelectorAll("[data-center]")) {
      const [owner, held] = (owners[center.dataset.center] ?? "").split(" ");
      put(center, "data-owner", held === "center" ? owner : "");
    }
    this.layer("overlay", overlay);
    if (title) this.svg.setAttribute("aria-label", title);
    this.mark(this.marks);
  }

  // Fill a layer of the picture with SVG text; those that it does not have yet lie on top.
  layer(name, text) {
    let found = this.svg.querySelector(`g.${name}`);
    if (!found) this.svg.append(found = drawn("g", { class: name }));
    found.replaceChildren(...picture(`<svg xmlns="${SVG}">${text}</svg>`).childNodes);
    return found;
  }

  // Set classes: {"reach": [provinces], "picked": [...], ...} on province outlines.
  mark(marks) {
    this.marks = marks;
    const layer = drawn("g", { class: "play-mark" });
    for (const [name, provinces] of Object.entries(marks)) {
      for (const code of new Set(provinces)) {
        const outline = this.outline(code);
        if (outline) layer.append(drawn("path", { class: name, d: outline.getAttribute("d"), "data-mark": code }));
      }
    }
    for (const old of this.svg.querySelectorAll(".play-mark")) old.remove();
    this.svg.querySelector(".provinces").after(layer);
  }

  outline(code) {
    return this.svg.querySelector(`.province[data-province="${code}"]`);
  }

  // Put a padlock on units, by their texts.
  lock(units) {
    for (const old of this.svg.querySelectorAll(".play-lock")) old.remove();
    for (const text of units) {
      const unit = this.svg.querySelector(`[data-unit="${text}"]`);
      if (!unit) continue;
      const box = unit.getBoundingClientRect();
      const corner = new DOMPoint(box.right, box.top).matrixTransform(this.svg.getScreenCTM().inverse());
      const sign = lock();
      for (const [name, value] of Object.entries({ class: "play-lock", x: corner.x - 9, y: corner.y - 9, width: 18, height: 18 }))
        sign.setAttribute(name, value);
      this.svg.append(sign);
    }
  }

  // Say something over the board: where it was clicked just now, at a province, or at the top.
  say(text, bad = false, province = null) {
    const { told } = this;
    told.textContent = text;
    told.hidden = !text;
    told.classList.toggle("bad", bad);
    told.style.left = told.style.top = "";
    const place = told.parentElement.getBoundingClientRect(), box = province && this.outline(province)?.getBoundingClientRect();
    const [x, y] = box ? [box.left + box.width / 2, box.top + box.height / 2] : this.clicked ?? [];
    if (!text || !bad || x === undefined) return;
    const left = Math.max(4, Math.min(x - place.left - told.offsetWidth / 2, place.width - told.offsetWidth - 4));
    const above = y - place.top - told.offsetHeight - 18;
    told.style.left = `${left}px`;
    told.style.top = `${above > 0 ? above : y - place.top + 22}px`;
  }

  // --- Its size -----------------------------------------------------------------------------------

  // Show the board so many times as large, around the same middle.
  enlarge(zoom) {
    const { frame } = this, was = this.zoom;
    const x = (frame.scrollLeft + frame.clientWidth / 2) / was, y = (frame.scrollTop + frame.clientHeight / 2) / was;
    this.zoom = Math.min(LARGEST, Math.max(1, zoom < 1.1 ? 1 : zoom));
    if (was === 1 && this.zoom > 1) {
      const tall = Math.max(frame.offsetHeight, Math.min(innerHeight * 0.6, frame.offsetWidth));
      frame.style.setProperty("--height", `${tall}px`);
    }
    frame.style.setProperty("--zoom", this.zoom);
    frame.classList.toggle("zoomed", this.zoom > 1);
    frame.scrollTo(x * this.zoom - frame.clientWidth / 2, y * this.zoom - frame.clientHeight / 2);
    this.smaller.disabled = this.zoom === 1;
    this.larger.disabled = this.zoom === LARGEST;
    this.tall = frame.clientHeight;
    this.resized();
  }

  // On a phone begin with some provinces, since all of them would be too small.
  begin(provinces) {
    if (this.frame.clientWidth <= PHONE) this.lookAt(provinces);
  }

  // Show some provinces as large as they fit, with names that can be read.
  lookAt(provinces) {
    const boxes = provinces.map((code) => this.outline(code)?.getBBox()).filter(Boolean);
    if (!boxes.length) return;
    this.enlarge(1);
    const left = Math.min(...boxes.map((b) => b.x)) - 60, right = Math.max(...boxes.map((b) => b.x + b.width)) + 60;
    const top = Math.min(...boxes.map((b) => b.y)) - 60, bottom = Math.max(...boxes.map((b) => b.y + b.height)) + 60;
    const { width, height } = this.svg.viewBox.baseVal, shape = this.frame;
    const fit = Math.min(width / Math.max(right - left, width / 3), height / Math.max(bottom - top, height / 3));
    this.enlarge(Math.max(fit, this.legible()));
    const scale = this.scale();
    shape.scrollTo(((left + right) / 2) * scale - shape.clientWidth / 2, ((top + bottom) / 2) * scale - shape.clientHeight / 2);
  }

  // Pixels of a unit of the picture.
  scale() {
    return this.svg.getBoundingClientRect().width / this.svg.viewBox.baseVal.width;
  }

  // The zoom from which on names can be read.
  legible() {
    const size = this.map.sizes[this.frame.classList.contains("full") ? "names" : "labels"];
    return (1.02 * LEGIBLE * this.zoom) / (size * this.scale());
  }

  // What is in the middle stays there, and names that became too small go.
  resized() {
    const tall = this.frame.clientHeight;
    if (this.zoom > 1) this.frame.scrollTop += (this.tall - tall) / 2;
    this.tall = tall;
    if (this.svg) this.frame.classList.toggle("far", this.zoom < this.legible() / 1.02);
  }

  toggleNames() {
    const full = this.frame.classList.toggle("full");
    this.named.setAttribute("aria-pressed", String(full));
    if (full && this.zoom < this.legible()) this.enlarge(this.legible());
    this.resized();
  }
}

function put(element, name, value) {
  if (value) element.setAttribute(name, value);
  else element.removeAttribute(name);
}

function provinceOf(target) {
  const found = target.closest("[data-unit], [data-location], [data-province], [data-center]");
  if (!found) return null;
  const { unit, location, province, center } = found.dataset;
  return unit ? unit.slice(2, 5) : (location ?? province ?? center).slice(0, 3);
}

// --- The bar of controls --------------------------------------------------------------------------

const SPEEDS = { 2000: "slow", 1000: "normal", 300: "fast" };

// Steps through phases; `go` is told the number of one.
export class Bar {
  constructor(place, go) {
    this.go = go;
    this.titles = [];
    this.at = 0;
    this.timer = null;
    const button = (id, sign, title, to) => h("button", { id, title, "aria-label": title, onclick: () => this.jump(to()) }, sign);
    this.buttons = {
      first: button("first", "«", "First phase (Home)", () => 0),
      back: button("back", "‹", "Earlier phase (left arrow)", () => this.at - 1),
      run: h("button", { id: "run", onclick: () => this.toggle() }),
      forth: button("forth", "›", "Later phase (right arrow)", () => this.at + 1),
      last: button("last", "»", "Last phase (End)", () => this.titles.length - 1),
    };
    this.phase = h("span", { id: "phase", "aria-live": "polite" });
    this.slider = h("input", { id: "slider", type: "range", min: 0, max: 0, value: 0, "aria-label": "Phase", oninput: () => this.jump(Number(this.slider.value)) });
    this.speed = h("select", { id: "speed", "aria-label": "Speed", onchange: () => { if (this.timer) { this.pause(); this.toggle(); } } },
      ...Object.entries(SPEEDS).map(([time, name]) => h("option", { value: time, selected: time === "1000" }, name)));
    place.append(...Object.values(this.buttons), this.phase, this.slider, this.speed);
    this.paint();
  }

  // titles: of all phases; at: which is shown.
  show(titles, at) {
    Object.assign(this, { titles, at });
    const last = titles.length - 1;
    if (at === last) this.pause();
    this.slider.max = last;
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", titles[at]);
    this.phase.textContent = titles[at];
    for (const id of ["first", "back"]) this.buttons[id].disabled = at === 0;
    for (const id of ["forth", "last"]) this.buttons[id].disabled = at === last;
    this.buttons.run.disabled = last === 0;
  }

  // Go to a phase because somebody wants to: nothing steps by itself any more.
  jump(number) {
    this.pause();
    this.go(Math.max(0, Math.min(this.titles.length - 1, number)));
  }

  toggle() {
    if (this.timer) return this.pause();
    if (this.at === this.titles.length - 1) this.go(0);
    this.timer = setInterval(() => this.go(this.at + 1), Number(this.speed.value));
    this.paint();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.paint();
  }

  paint() {
    const { run } = this.buttons, name = this.timer ? "Pause" : "Play the phases one after another (space)";
    run.textContent = this.timer ? "❚❚" : "\u25B6\uFE0E";
    run.title = name;
    run.setAttribute("aria-label", name);
  }

  // Tell whether a key was one of the bar's, and do what it says.
  key(key) {
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: this.titles.length - 1 }[key];
    if (to !== undefined) this.jump(to);
    else if (key === " ") this.toggle();
    else return false;
    return true;
  }
}

// The keys of both pages; `more` has those of one, by their names in small letters.
export function listen(bar, board, more = {}) {
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !bar.titles.length) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === " " && event.target.closest("button, summary, a")) return;
    const own = { t: () => theme.next(), n: () => board.toggleNames(), ...more }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (own) own();
    else if (!bar.key(event.key)) return;
    event.preventDefault();
  });
}

// --- Beside the board -----------------------------------------------------------------------------

// The centers of all powers over the phases, as chart.py draws them; a click leads to a phase.
export class Chart {
  constructor(place, go) {
    this.place = place;
    place.addEventListener("click", (event) => {
      if (!this.svg) return;
      const box = this.svg.getBoundingClientRect(), { left, right, width } = this.sides;
      const x = ((event.clientX - box.left) / box.width) * width;
      const at = Math.round(((x - left) / (width - left - right)) * (this.count - 1));
      go(Math.max(0, Math.min(this.count - 1, at)));
    });
  }

  // text: the SVG; sides: its left, right and width; count: of phases.
  set(text, sides, count) {
    if (this.text === text) return;
    Object.assign(this, { text, sides, count, svg: picture(text) });
    this.cursor = drawn("path", { class: "victory cursor" });
    this.svg.append(this.cursor);
    this.place.replaceChildren(this.svg);
  }

  show(at) {
    const { left, right, width } = this.sides;
    this.cursor.setAttribute("d", `M${left + ((width - left - right) * at) / Math.max(this.count - 1, 1)} 8V204`);
  }
}

export function legend(place, { signs, names }) {
  const lines = signs.map(([sign, meaning]) => h("li", {}, picture(sign), h("span", {}, meaning)));
  const codes = Object.entries(names).map(([code, name]) => h("li", {}, h("b", {}, code), ` ${name}`));
  place.replaceChildren(
    h("details", { id: "signs" }, h("summary", {}, "Legend"), h("ul", {}, ...lines)),
    h("details", { id: "codes" }, h("summary", {}, "Names of the provinces"), h("ul", {}, ...codes)));
}

const FATES = ["dislodged", "disband"]; // of units that may have done as they were told

// One order with its result, as words.py tells it.
export function orderLine({ text, unit, words, result, said }, ...more) {
  const failed = result.some((word) => !FATES.includes(word));
  return h("li", { class: failed ? "failed" : "", title: text, "data-line": text },
    h("span", {}, unit ? h("b", {}, unit) : null, `${unit ? ": " : ""}${words}`), said ? h("em", {}, ` ${said}`) : null, ...more);
}

// The orders of a phase, power by power; `head` returns what stands behind a power's name, `more`
// what stands below an order.
export function orderLists(powers, lines, head = () => [], more = () => []) {
  return powers.map((power) => {
    const own = lines.filter((line) => line.power === power), beside = head(power);
    if (!own.length && !beside.length) return null;
    return h("div", { class: "orders" }, h("h3", {}, swatch(power), nice(power), ...beside),
      h("ul", {}, ...own.map((line) => orderLine(line, ...more(line)))));
  }).filter(Boolean);
}

// What was said and declared before the orders; texts of the file, never HTML.
export function spoken(talk) {
  return h("ul", {}, ...talk.map(([sender, recipient, words]) =>
    h("li", {}, h("b", {}, nice(sender)), recipient ? ` to ${nice(recipient)}: ${words}` : ` ${words}`)));
}

// All orders of a game on one page; phases: {title, orders}; a title leads to its phase.
export function allOrders(phases, powers, go) {
  return phases.map(({ title, orders }, number) => h("section", {},
    h("h3", {}, h("button", { class: "link", onclick: () => go(number) }, title)), ...orderLists(powers, orders)));
}
