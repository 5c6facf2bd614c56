// What the pages that show games share: the board, the bar of controls, orders in words, the chart
// of centers, the legend. A page of one file has it all in one script, so names are unique.

const SVG = "http://www.w3.org/2000/svg";
const LEGIBLE = 10; // pixels; smaller names are written as large, if the board has room
const LEAST = 6; // pixels; names that would be smaller are not shown
const TALL = 14; // pixels; names do not grow beyond it when the board does
const PHONE = 560; // pixels; no wider board begins as large as a part of it
const MARGIN = 20; // pixels between what is marked and the choices for a unit
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
export const sentence = (text) =>
  text.charAt(0).toUpperCase() + text.slice(1) + (/[.…!?]$/.test(text) ? "" : ".");
export const percent = (share) =>
  share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`;
export const listed = (names) =>
  names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
// Copies a text, which may be selected, and tells whether it could: a browser may have no clipboard
// for an address that it does not trust, or may forbid it.
export const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return document.execCommand("copy");
  }
};
export const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

export function swatch(power) {
  const holder = h("span", {
    class: "dip-board swatch",
    "data-theme": theme.now,
    "aria-hidden": "true",
  });
  holder.style.backgroundColor = `var(--p-${power})`;
  return holder;
}

// A name, which may go on in another line after a negotiator or a folder.
export const breakable = (name) => name.replace(/[+/]/g, "$&\u200b");

// --- Pictures ------------------------------------------------------------------------------------

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
  const found = document.importNode(
    new DOMParser().parseFromString(bare, "image/svg+xml").documentElement,
    true,
  );
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
  const svg = drawn("svg", {
    viewBox: "0 0 16 16",
    class: "lock",
    [title ? "role" : "aria-hidden"]: title ? "img" : "true",
  });
  if (title) svg.append(drawn("title", {}, title));
  svg.append(
    drawn("path", { d: "M5 7V5a3 3 0 0 1 6 0v2", class: "bow" }),
    drawn("rect", { x: 3, y: 7, width: 10, height: 7.5, rx: 1.5 }),
  );
  return svg;
}

// --- Colors --------------------------------------------------------------------------------------

const THEMES = { auto: "Colors: auto", light: "Colors: light", dark: "Colors: dark" };

export const theme = {
  now: "auto",
  set(name) {
    this.now = name in THEMES ? name : "auto";
    document.documentElement.dataset.theme = this.now;
    for (const element of document.querySelectorAll(".dip-board")) element.dataset.theme = this.now;
    $("theme").textContent = THEMES[this.now];
    try {
      localStorage.setItem("theme", this.now);
    } catch {
      /* not kept */
    }
  },
  next() {
    const names = Object.keys(THEMES);
    this.set(names[(names.indexOf(this.now) + 1) % names.length]);
  },
  begin() {
    let kept = "auto";
    try {
      kept = localStorage.getItem("theme") ?? kept;
    } catch {
      /* no storage */
    }
    $("theme").addEventListener("click", () => this.next());
    this.set(kept);
  },
};

// --- The board -----------------------------------------------------------------------------------

// Shows a map once and then phase after phase on it; tells which province was clicked; says
// something at a place of the board; zooms.
export class Board {
  constructor(place, onProvince = () => {}) {
    this.onProvince = onProvince;
    this.svg = null;
    this.map = null;
    this.marks = {};
    this.zoom = 1;
    this.middle = null; // the point of the picture in the middle of the frame
    this.frame = h("div", { id: "board", class: "dip-board", "data-theme": theme.now });
    this.wanted = false; // whether full names are
    this.smaller = h(
      "button",
      {
        id: "zoom-out",
        title: "Smaller",
        "aria-label": "Smaller board",
        onclick: () => this.enlarge(this.zoom < 1.65 ? 1 : this.zoom / 1.5),
      },
      "−",
    );
    this.larger = h(
      "button",
      {
        id: "zoom-in",
        title: "Larger",
        "aria-label": "Larger board",
        onclick: () => this.enlarge(this.zoom * 1.5),
      },
      "+",
    );
    this.named = h(
      "button",
      {
        id: "names",
        title: "Full names of the provinces (N)",
        "aria-pressed": "false",
        onclick: () => this.toggleNames(),
      },
      "Names",
    );
    this.lettered = h(
      "button",
      {
        id: "letters",
        title: "The powers' initials on units and centers (L)",
        "aria-pressed": "false",
        onclick: () => this.toggleLetters(),
      },
      "Letters",
    );
    this.told = h("p", { id: "say", role: "status", "aria-live": "polite", hidden: true });
    this.flyout = h("div", { id: "flyout", role: "group", hidden: true });
    this.words = h("div", { id: "position", class: "unseen" });
    place.append(
      this.frame,
      h(
        "div",
        { id: "zoom", role: "group", "aria-label": "View of the board" },
        this.lettered,
        this.named,
        this.smaller,
        this.larger,
      ),
      this.told,
      this.words,
    );
    place.after(this.flyout); // over the board, or on a phone below it
    for (const kind of ["pointerdown", "keydown"])
      // what was wrong is over with the next thing one does
      document.addEventListener(
        kind,
        () => {
          if (this.told.classList.contains("bad")) this.say("");
        },
        true,
      );
    const moved = moves(this);
    this.frame.addEventListener("click", (event) => {
      // A double click is one order, not a second one's, too.
      if (event.detail > 1 || moved()) return;
      this.clicked = [event.clientX, event.clientY];
      const province = provinceOf(event.target);
      if (province) this.onProvince(province);
      this.clicked = null;
    });
  }

  // facts: ground, style and more of a map, as page.py gives them.
  setMap(facts) {
    if (this.map === facts) return;
    adopt(facts.style);
    this.map = facts;
    this.svg = picture(facts.ground);
    const { width, height } = this.svg.viewBox.baseVal;
    this.frame.style.setProperty("--ratio", width / height);
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
    this.words.replaceChildren(...this.inWords());
    this.putLetters();
    this.putNames();
    this.mark(this.marks);
    this.placeFlyout();
  }

  // The position for who cannot see it: a sentence for each power.
  inWords() {
    const { powers, names } = this.map;
    return powers.map((power) => {
      const units = [...this.svg.querySelectorAll(`.unit[data-power="${power}"]:not(.built)`)].map(
        ({ dataset: { unit, dislodged } }) =>
          `${unit[0] === "A" ? "army" : "fleet"} ${names[unit.slice(2, 5)]}${unit.slice(5)}` +
          (dislodged ? " (dislodged)" : ""),
      );
      const centers = [...this.svg.querySelectorAll(`.center[data-owner="${power}"]`)].map(
        ({ dataset }) => names[dataset.center],
      );
      return h(
        "p",
        {},
        `${nice(power)}: ${units.join(", ") || "no units"}; ` +
          `centers ${centers.join(", ") || "none"}.`,
      );
    });
  }

  // What a power has in the phase shown.
  counts(power) {
    const count = (kind) => this.svg?.querySelectorAll(kind).length ?? 0;
    return {
      centers: count(`.center[data-owner="${power}"]`),
      units: count(`.unit[data-power="${power}"]:not(.built)`),
    };
  }

  // Fill a layer of the picture with SVG text; those that it does not have yet lie on top.
  layer(name, text) {
    let found = this.svg.querySelector(`g.${name}`);
    if (!text && name !== "overlay") return found?.remove(); // as if it had never been there
    if (!found) this.svg.append((found = drawn("g", { class: name })));
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
        if (outline)
          layer.append(
            drawn("path", { class: name, d: outline.getAttribute("d"), "data-mark": code }),
          );
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
      const corner = new DOMPoint(box.right, box.top).matrixTransform(
        this.svg.getScreenCTM().inverse(),
      );
      const sign = lock();
      for (const [name, value] of Object.entries({
        class: "play-lock",
        x: corner.x - 9,
        y: corner.y - 9,
        width: 18,
        height: 18,
      }))
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
    const place = told.parentElement.getBoundingClientRect(),
      box = province && this.outline(province)?.getBoundingClientRect();
    const [x, y] = box
      ? [box.left + box.width / 2, box.top + box.height / 2]
      : (this.clicked ?? []);
    if (!text || !bad || x === undefined) return;
    const left = Math.max(
      4,
      Math.min(x - place.left - told.offsetWidth / 2, place.width - told.offsetWidth - 4),
    );
    const above = y - place.top - told.offsetHeight - 18;
    told.style.left = `${left}px`;
    told.style.top = `${above > 0 ? above : y - place.top + 22}px`;
  }

  // Put what a choice needs as near to a province as it covers the fewest of `others`.
  showFlyout(province, others, ...parts) {
    this.flyout.replaceChildren(...parts);
    this.flyout.hidden = !parts.length;
    const before = this.beside?.province;
    this.beside = { province, others };
    this.placeFlyout();
    if (province !== before && this.flyout.classList.contains("away"))
      this.put(this.pointAt(...this.spot(province)), ...this.center());
  }

  // The middle of a province's unit, else of the province, in the window.
  spot(code) {
    const unit = this.svg.querySelector(`.unit[data-unit*=" ${code}"]`) ?? this.outline(code),
      box = unit.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  }

  placeFlyout() {
    const { flyout } = this;
    flyout.classList.remove("away");
    if (flyout.hidden) return;
    const frame = this.frame.getBoundingClientRect();
    const wide = flyout.offsetWidth,
      tall = flyout.offsetHeight;
    const middle = (code) => {
      const [x, y] = this.spot(code);
      return [x - frame.left, y - frame.top];
    };
    const [x, y] = middle(this.beside.province),
      marked = [[x, y], ...this.beside.others.map(middle)];
    const hidden = x < 0 || y < 0 || x > frame.width || y > frame.height; // moved out of the frame
    flyout.classList.toggle("away", hidden);
    const cost = (left, top) =>
      Math.hypot(left + wide / 2 - x, top + tall / 2 - y) +
      10000 *
        marked.filter(
          ([u, v]) =>
            u > left - MARGIN &&
            u < left + wide + MARGIN &&
            v > top - MARGIN &&
            v < top + tall + MARGIN,
        ).length;
    let [left, top, least] = [4, 4, Infinity];
    for (let v = 4; v <= frame.height - tall - 4; v += 12)
      for (let u = 4; u <= frame.width - wide - 4; u += 12)
        if (cost(u, v) < least) [left, top, least] = [u, v, cost(u, v)];
    Object.assign(flyout.style, { left: `${left}px`, top: `${top}px` });
  }

  // --- Its size and place ------------------------------------------------------------------------

  // Show the board so many times as large; what is at a point of the window, else in the middle,
  // stays there.
  enlarge(zoom, ...place) {
    const { frame } = this,
      [x, y] = place.length ? place : this.center(),
      there = this.pointAt(x, y);
    this.zoom = Math.min(LARGEST, Math.max(1, zoom));
    frame.style.setProperty("--zoom", this.zoom);
    frame.classList.toggle("zoomed", this.zoom > 1);
    this.smaller.disabled = this.zoom === 1;
    this.larger.disabled = this.zoom === LARGEST;
    this.sized();
    this.put(there, x, y);
  }

  // How somebody looks at the board, and to look so again.
  lens() {
    const { zoom, middle, wanted } = this,
      lettered = this.frame.classList.contains("lettered");
    return { zoom, middle: middle && { x: middle.x, y: middle.y }, wanted, lettered };
  }

  through({ zoom, middle, wanted, lettered }) {
    if (wanted) this.toggleNames();
    if (lettered) this.toggleLetters();
    this.enlarge(zoom);
    if (middle) this.put(middle, ...this.center());
  }

  // The middle of the frame in the window.
  center() {
    const box = this.frame.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  }

  pointAt(x, y) {
    return new DOMPoint(x, y).matrixTransform(this.svg.getScreenCTM().inverse());
  }

  // Scroll so that a point of the picture is at one of the window.
  put(point, x, y) {
    const now = new DOMPoint(point.x, point.y).matrixTransform(this.svg.getScreenCTM());
    this.frame.scrollBy(now.x - x, now.y - y);
    this.middle = this.pointAt(...this.center());
    this.placeFlyout();
  }

  // What is in the middle stays there when the frame gets another size, and is there again later.
  resized() {
    if (!this.svg) return;
    const { middle } = this;
    this.sized();
    this.put(middle, ...this.center());
    this.middle = middle;
  }

  // Names keep their size, and go when they are too small.
  sized() {
    const scale = this.scale(),
      full = this.wanted && this.map.sizes.names * scale >= LEGIBLE; // else codes
    this.frame.classList.toggle("full", full);
    this.frame.style.setProperty("--scale", scale);
    const size = this.labelSize() * scale;
    this.frame.style.setProperty("--names", Math.min(Math.max(1, LEGIBLE / size), TALL / size));
    this.frame.classList.toggle("far", size < LEAST);
    this.putNames();
  }

  labelSize() {
    return this.map.sizes[this.frame.classList.contains("full") ? "names" : "labels"];
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
    const left = Math.min(...boxes.map((b) => b.x)) - 60,
      right = Math.max(...boxes.map((b) => b.x + b.width)) + 60;
    const top = Math.min(...boxes.map((b) => b.y)) - 60,
      bottom = Math.max(...boxes.map((b) => b.y + b.height)) + 60;
    const { width, height } = this.svg.viewBox.baseVal;
    const fit = Math.min(
      width / Math.max(right - left, width / 3),
      height / Math.max(bottom - top, height / 3),
    );
    this.enlarge(Math.max(fit, this.legible()));
    this.put({ x: (left + right) / 2, y: (top + bottom) / 2 }, ...this.center());
  }

  // Pixels of a unit of the picture.
  scale() {
    return this.svg.getBoundingClientRect().width / this.svg.viewBox.baseVal.width;
  }

  // The zoom from which on names can be read.
  legible() {
    return (1.02 * LEGIBLE * this.zoom) / (this.labelSize() * this.scale());
  }

  toggleNames() {
    this.wanted = !this.wanted;
    this.named.setAttribute("aria-pressed", String(this.wanted));
    this.frame.classList.toggle("full", this.wanted); // which its size asks for
    if (this.wanted && this.zoom < this.legible()) this.enlarge(this.legible());
    this.sized();
  }

  // Full names go out of the way of units: below them, above them, or where they are.
  putNames() {
    if (!this.frame.classList.contains("full")) return;
    const units = [...this.svg.querySelectorAll(".unit")].map((unit) =>
        unit.getBoundingClientRect(),
      ),
      step = this.scale();
    for (const name of this.svg.querySelectorAll(".names .label")) {
      name.style.translate = "";
      const { left, right, top, bottom } = name.getBoundingClientRect();
      const hidden = (by) =>
        units.reduce(
          (sum, unit) =>
            sum +
            Math.max(0, Math.min(right, unit.right) - Math.max(left, unit.left)) *
              Math.max(
                0,
                Math.min(bottom + by * step, unit.bottom) - Math.max(top + by * step, unit.top),
              ),
          0,
        );
      const by = [0, 8, -8, 16, -16, 22, -22, 28, -28].reduce((best, other) =>
        hidden(other) < hidden(best) ? other : best,
      );
      name.style.translate = by ? `0 ${by}px` : "";
    }
  }

  toggleLetters() {
    const on = this.frame.classList.toggle("lettered");
    this.lettered.setAttribute("aria-pressed", String(on));
    this.putLetters();
  }

  // The powers' initials, as many letters as tell them apart, for who cannot rely on colors.
  putLetters() {
    for (const old of this.svg.querySelectorAll(".letter")) old.remove();
    if (!this.frame.classList.contains("lettered")) return;
    const { powers } = this.map;
    const initial = (power) =>
      [1, 2, 3]
        .map((n) => power.slice(0, n))
        .find((text) => powers.filter((one) => one.startsWith(text)).length < 2) ?? power;
    for (const unit of this.svg.querySelectorAll(".unit"))
      unit.append(drawn("text", { class: "letter", y: 5 }, initial(unit.dataset.power)));
    for (const center of this.svg.querySelectorAll(".center[data-owner]"))
      center.after(
        drawn(
          "text",
          { class: "letter", x: center.cx.baseVal.value, y: center.cy.baseVal.value + 4 },
          initial(center.dataset.owner),
        ),
      );
  }
}

// Drag, wheel, pinch and double tap move a board; the function returned tells whether a click ends
// a drag.
function moves(board) {
  const { frame } = board,
    fingers = new Map();
  let dragged = false,
    tap = null;
  const spread = () => {
    const [one, other = one] = [...fingers.values()];
    return {
      x: (one.x + other.x) / 2,
      y: (one.y + other.y) / 2,
      apart: Math.hypot(one.x - other.x, one.y - other.y),
    };
  };
  frame.addEventListener("pointerdown", (event) => {
    if (event.button || fingers.size > 1) return;
    if (!fingers.size) dragged = false;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  document.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const was = spread(),
      { x, y } = fingers.get(event.pointerId);
    if (!dragged && fingers.size === 1 && Math.hypot(event.clientX - x, event.clientY - y) < 6)
      return; // still a click
    if (!dragged) frame.setPointerCapture(event.pointerId);
    dragged = true;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const now = spread(),
      there = board.pointAt(was.x, was.y);
    if (was.apart) board.enlarge(board.zoom * (now.apart / was.apart), now.x, now.y);
    if (board.zoom > 1) board.put(there, now.x, now.y);
  });
  const lifted = (event) => {
    if (
      !fingers.delete(event.pointerId) ||
      dragged ||
      event.pointerType !== "touch" ||
      event.type === "pointercancel"
    )
      return;
    const { clientX: x, clientY: y, timeStamp: time } = event;
    const twice = tap && time - tap.time < 300 && Math.hypot(x - tap.x, y - tap.y) < 25;
    tap = twice ? null : { x, y, time };
    if (twice) board.enlarge(board.zoom * 2, x, y);
  };
  document.addEventListener("pointerup", lifted);
  document.addEventListener("pointercancel", lifted);
  frame.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    },
    { passive: false },
  );
  const wheel = (event) => {
    if (event.deltaY >= 0 && board.zoom === 1) return; // the page scrolls
    event.preventDefault();
    board.enlarge(
      board.zoom * 2 ** ((-event.deltaY * (event.deltaMode ? 20 : 1)) / 300),
      event.clientX,
      event.clientY,
    );
  };
  for (const place of [frame.parentElement, board.flyout])
    place.addEventListener("wheel", wheel, { passive: false });
  new ResizeObserver(() => board.resized()).observe(frame);
  return () => dragged;
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

// --- The bar of controls -------------------------------------------------------------------------

const SPEEDS = { 2000: "slow", 1000: "normal", 300: "fast" };

// Steps through phases; `go` is told the number of one.
export class Bar {
  constructor(place, go) {
    this.go = go;
    this.titles = [];
    this.at = 0;
    this.timer = null;
    const button = (id, sign, title, to) =>
      h("button", { id, title, "aria-label": title, onclick: () => this.jump(to()) }, sign);
    this.buttons = {
      first: button("first", "«", "First phase (Home)", () => 0),
      back: button("back", "‹", "Earlier phase (left arrow)", () => this.at - 1),
      run: h("button", { id: "run", onclick: () => this.toggle() }),
      forth: button("forth", "›", "Later phase (right arrow)", () => this.at + 1),
      last: button("last", "»", "Last phase (End)", () => this.titles.length - 1),
    };
    this.phase = h("span", { id: "phase", "aria-live": "polite" });
    this.slider = h("input", {
      id: "slider",
      type: "range",
      min: 0,
      max: 0,
      value: 0,
      "aria-label": "Phase",
      oninput: () => this.jump(Number(this.slider.value)),
    });
    this.speed = h(
      "select",
      {
        id: "speed",
        "aria-label": "Speed",
        onchange: () => {
          if (this.timer) {
            this.pause();
            this.toggle();
          }
        },
      },
      ...Object.entries(SPEEDS).map(([time, name]) =>
        h("option", { value: time, selected: time === "1000" }, name),
      ),
    );
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
    const { run } = this.buttons,
      name = this.timer ? "Pause" : "Play the phases one after another (space)";
    run.textContent = this.timer ? "❚❚" : "\u25B6\uFE0E";
    run.title = name;
    run.setAttribute("aria-label", name);
  }

  // Tell whether a key was one of the bar's, and do what it says.
  key(key) {
    const to = {
      ArrowLeft: this.at - 1,
      ArrowRight: this.at + 1,
      Home: 0,
      End: this.titles.length - 1,
    }[key];
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
    if ([" ", "Enter"].includes(event.key) && event.target.closest("button, summary, a")) return;
    const own = {
      t: () => theme.next(),
      n: () => board.toggleNames(),
      l: () => board.toggleLetters(),
      ...more,
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (own) own(event);
    else if (!bar.key(event.key)) return;
    event.preventDefault();
  });
}

// --- Beside the board ----------------------------------------------------------------------------

// The centers of all powers over the phases, as chart.py draws them; a click leads to a phase.
export class Chart {
  constructor(place, go) {
    this.place = place;
    place.addEventListener("click", (event) => {
      if (!this.svg) return;
      const box = this.svg.getBoundingClientRect(),
        { left, right, width } = this.sides;
      const x = ((event.clientX - box.left) / box.width) * width;
      const at = Math.round(((x - left) / (width - left - right)) * (this.count - 1));
      go(Math.max(0, Math.min(this.count - 1, at)));
    });
  }

  // text: the SVG; sides: its left, right and width; count: of phases.
  set(text, sides, count) {
    Object.assign(this, { sides, count }); // where nothing changes, one more phase looks the same
    if (this.text === text) return;
    Object.assign(this, { text, svg: picture(text) });
    this.cursor = drawn("path", { class: "victory cursor" });
    this.svg.append(this.cursor);
    this.place.replaceChildren(this.svg);
  }

  clear() {
    this.svg = this.text = null;
    this.place.replaceChildren();
  }

  show(at) {
    this.cursor.setAttribute("d", `M${this.x(at)} 8V204`);
  }

  x(at) {
    const { left, right, width } = this.sides;
    return left + ((width - left - right) * at) / Math.max(this.count - 1, 1);
  }

  // Write marks over phases: the number of one, and its mark.
  mark(marks) {
    for (const old of this.place.querySelectorAll(".turn")) old.remove();
    for (const [at, text] of marks)
      this.svg.append(drawn("text", { class: "tick turn", x: this.x(at), y: 11 }, text));
  }
}

export function legend(place, { signs, names }) {
  const lines = signs.map(([sign, meaning]) => h("li", {}, picture(sign), h("span", {}, meaning)));
  const codes = Object.entries(names).map(([code, name]) =>
    h("li", {}, h("b", {}, code), ` ${name}`),
  );
  place.replaceChildren(
    h("details", { id: "signs" }, h("summary", {}, "Legend"), h("ul", {}, ...lines)),
    h(
      "details",
      { id: "codes" },
      h("summary", {}, "Names of the provinces"),
      h("ul", {}, ...codes),
    ),
  );
}

const FATES = ["dislodged", "disband"]; // of units that may have done as they were told

// One order with its result, as text.py of replays gives it.
export function orderLine({ text, unit, words, result, sentence }, ...more) {
  const failed = result.some((word) => !FATES.includes(word));
  return h(
    "li",
    { class: failed ? "failed" : "", title: text, "data-line": text },
    h("span", {}, unit ? h("b", {}, unit) : null, `${unit ? ": " : ""}${words}`),
    sentence ? h("em", {}, ` ${sentence}`) : null,
    ...more,
  );
}

// The orders of a phase, power by power; `head` returns what stands behind a power's name, `more`
// what stands below an order.
export function orderLists(powers, lines, head = () => [], more = () => []) {
  return powers
    .map((power) => {
      const own = lines.filter((line) => line.power === power),
        beside = head(power);
      if (!own.length && !beside.length) return null;
      return h(
        "div",
        { class: "orders" },
        h("h3", {}, swatch(power), nice(power), ...beside),
        h("ul", {}, ...own.map((line) => orderLine(line, ...more(line)))),
      );
    })
    .filter(Boolean);
}

// What was said and declared before the orders; texts of the file, never HTML.
export function spoken(talk) {
  return h(
    "ul",
    {},
    ...talk.map(([sender, recipient, words]) =>
      h(
        "li",
        {},
        h("b", {}, nice(sender)),
        recipient ? ` to ${nice(recipient)}: ${words}` : ` ${words}`,
      ),
    ),
  );
}

// --- What was thought ----------------------------------------------------------------------------

// The likeliest orders beside the one that was given, which is in bold type.
export function choiceLines({ words }, choices = []) {
  const own = words.replace(" (no order)", "");
  return choices.map(([choice, share]) =>
    h(
      "div",
      { class: "thoughts" },
      h("meter", { min: 0, max: 1, value: share }),
      h("small", {}, h(choice === own ? "b" : "span", {}, `${percent(share)} ${choice}`)),
    ),
  );
}

export const unitOf = (text) => text.split(" ").slice(0, 2).join(" ");

// Never -0.00.
const hundredths = (value) => (Math.round(100 * value) / 100 || 0).toFixed(2);

// `expects 0.53, then 0.41`: what a power expected in a phase, and in its next decision.
export function expects(values, power, number) {
  const row = values[power] ?? [],
    value = row[number] ?? null;
  const after = row.slice(number + 1).find((one) => one !== null) ?? null;
  return value === null
    ? ""
    : `expects ${hundredths(value)}${after === null ? "" : `, then ${hundredths(after)}`}`;
}

// All orders of a game on one page; phases: {title, orders}; a title leads to its phase.
export function allOrders(phases, powers, go) {
  return phases.map(({ title, orders }, number) =>
    h(
      "section",
      {},
      h("h3", {}, h("button", { class: "link", onclick: () => go(number) }, title)),
      ...orderLists(powers, orders),
    ),
  );
}
