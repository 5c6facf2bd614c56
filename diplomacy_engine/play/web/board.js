// The picture of the board: shows an SVG, tells which province was clicked, marks provinces.

import { lock } from "/talk.js";

const sheets = new Map(); // style text -> sheet; the page's policy refuses <style> in the picture

export class Board {
  constructor(frame, onProvince) {
    this.frame = frame;
    this.svg = null;
    this.marks = {};
    this.zoom = 1;
    frame.addEventListener("click", (event) => {
      if (event.detail > 1) return; // a double click is one order, not a second one's, too
      const province = provinceOf(event.target);
      if (province) onProvince(province);
    });
  }

  show(text) {
    const bare = text.replace(/<style>(.*?)<\/style>/gs, (_, style) => {
      adopt(style);
      return "";
    });
    const parsed = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    this.frame.replaceChildren(this.svg);
    this.mark(this.marks);
  }

  // Show the board so many times as large, around the same middle.
  enlarge(zoom) {
    const { frame } = this, was = this.zoom;
    if (was === 1) {
      const tall = Math.max(frame.offsetHeight, Math.min(innerHeight * 0.6, frame.offsetWidth));
      frame.style.setProperty("--height", `${tall}px`);
    }
    const x = frame.scrollLeft + frame.clientWidth / 2, y = frame.scrollTop + frame.clientHeight / 2;
    this.zoom = zoom;
    frame.style.setProperty("--zoom", zoom);
    frame.classList.toggle("zoomed", zoom > 1);
    frame.scrollTo(x * zoom / was - frame.clientWidth / 2, y * zoom / was - frame.clientHeight / 2);
  }

  // Set classes: {"reach": [provinces], "picked": [...], ...} on province outlines.
  mark(marks) {
    this.marks = marks;
    if (!this.svg) return;
    for (const old of this.svg.querySelectorAll(".play-mark")) old.remove();
    const layer = document.createElementNS("http://www.w3.org/2000/svg", "g");
    layer.setAttribute("class", "play-mark");
    for (const [name, provinces] of Object.entries(marks)) {
      for (const code of new Set(provinces)) {
        const outline = this.svg.querySelector(`.province[data-province="${code}"]`);
        if (!outline) continue;
        const copy = outline.cloneNode(false);
        copy.setAttribute("class", name);
        copy.removeAttribute("data-owner");
        copy.removeAttribute("data-province");
        copy.setAttribute("data-mark", code);
        layer.append(copy);
      }
    }
    this.svg.querySelector(".provinces").after(layer);
  }

  // Put a padlock on units, by their texts.
  lock(units) {
    for (const old of this.svg?.querySelectorAll(".play-lock") ?? []) old.remove();
    for (const text of units) {
      const unit = this.svg.querySelector(`[data-unit="${text}"]`);
      if (!unit) continue;
      const matrix = this.svg.getScreenCTM().inverse(), box = unit.getBoundingClientRect();
      const corner = new DOMPoint(box.right, box.top).matrixTransform(matrix);
      const sign = lock();
      for (const [name, value] of [["class", "play-lock"], ["x", corner.x - 9], ["y", corner.y - 9], ["width", 18], ["height", 18]])
        sign.setAttribute(name, value);
      this.svg.append(sign);
    }
  }
}

export function adopt(text) {
  if (sheets.has(text)) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  sheets.set(text, sheet);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

function provinceOf(target) {
  const found = target.closest("[data-unit], [data-location], [data-province], [data-center]");
  if (!found) return null;
  const { unit, location, province, center } = found.dataset;
  if (unit) return unit.slice(2, 5);
  return (location ?? province ?? center).slice(0, 3);
}
