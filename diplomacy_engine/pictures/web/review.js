import { $, counted, h, nice, swatch } from "/page.js";

// The review of a game: what each decision lost, the worst first; better orders as arrows.

const WORST = 5; // decisions that are listed before all others
const APART = 16; // pixels between two marks over the slider
const SIZES = {
  "??": ["Blunder", "lost at least 35 % of the prospects"],
  "?": ["Mistake", "lost at least 18 %"],
  "?!": ["Inaccuracy", "lost at least 10 %"],
  "!": ["Strong", "all else that was tried is worse"],
};
const rounded = (value) => `${Math.round(value)}`;

export class Review {
  // parts: place, an element; board; values, a chart; bar; go, told the number of a phase; tryIt,
  // which returns what leads on from a decision.
  constructor(parts) {
    Object.assign(this, parts, { facts: null, power: null, at: 0, all: false });
    this.strip = h("div", { id: "marks", "aria-hidden": "true" });
    $("bar").append(this.strip);
    new ResizeObserver(() => this.drawStrip()).observe($("slider"));
  }

  // facts: as reviewed.py gives them, null for none; titles: of all phases.
  set(facts, titles) {
    Object.assign(this, { facts, titles });
    if (!facts?.powers[this.power]) this.power = this.worstPower();
    this.draw();
  }

  worstPower() {
    const powers = Object.entries(this.facts?.powers ?? {});
    return powers.sort(([, one], [, other]) => one.accuracy - other.accuracy)[0]?.[0] ?? null;
  }

  own() {
    return (this.facts?.decisions ?? []).filter(({ power }) => power === this.power);
  }

  // Marked decisions, the worst first.
  marked() {
    return this.own()
      .filter(({ mark }) => mark.includes("?"))
      .sort((one, other) => other.loss - one.loss);
  }

  show(number) {
    this.at = number;
    this.draw();
  }

  // Go to the next decision with a mark, or (-1) the one before.
  step(by) {
    const numbers = this.marked()
      .map(({ number }) => number)
      .sort((one, other) => by * (one - other));
    const next = numbers.find((number) => by * (number - this.at) > 0) ?? numbers[0];
    if (next !== undefined) this.go(next);
  }

  draw() {
    const { facts, place } = this,
      own = this.own(),
      decision = own.find(({ number }) => number === this.at);
    if (this.board.svg) this.board.layer("better", decision?.arrows ?? "");
    this.drawStrip();
    if (!facts) return place.replaceChildren();
    const chosen = [...this.values.place.querySelectorAll("[data-power]")];
    for (const line of chosen) line.classList.toggle("other", line.dataset.power !== this.power);
    this.values.mark(own.filter(({ mark }) => mark).map(({ number, mark }) => [number, mark]));
    const { losing_since: losing } = facts.powers[this.power] ?? {},
      marked = this.marked(),
      listed = this.all ? marked : marked.slice(0, WORST);
    const parts = [
      h("h2", {}, "Review"),
      this.progress(),
      this.tabs(),
      decision ? this.card(decision) : h("p", { class: "quiet" }, this.nothing()),
      losing ? h("p", {}, `Losing since ${losing}: no orders helped any more.`) : null,
      marked.length
        ? h("ol", { class: "blunders" }, ...listed.map((one) => this.line(one)))
        : h("p", {}, own.length ? "No decision has a mark that says it was bad." : ""),
      marked.length > listed.length
        ? h(
            "button",
            { class: "link", id: "all-marks", onclick: () => ((this.all = true), this.draw()) },
            `All ${marked.length} marked decisions`,
          )
        : null,
      this.notes(),
    ];
    place.replaceChildren(...parts.filter(Boolean));
  }

  nothing() {
    if (this.power) return `${nice(this.power)} had nothing to decide here, or it is not reviewed.`;
    return this.facts.done < this.facts.total ? "" : "There is no decision to review.";
  }

  progress() {
    const { done, total } = this.facts;
    if (done >= total) return null;
    return h(
      "p",
      { role: "status" },
      h("progress", { max: total || 1, value: done }),
      ` ${done} of ${counted(total, "decision")}`,
    );
  }

  tabs() {
    const powers = Object.entries(this.facts.powers);
    return h(
      "div",
      { class: "tabs", role: "group", "aria-label": "Power" },
      ...powers.map(([power, { accuracy }]) =>
        h(
          "button",
          {
            id: `review-${power}`,
            "aria-pressed": String(power === this.power),
            title: "Accuracy: 100 if nothing was lost, 0 if as much as with random orders",
            onclick: () => {
              Object.assign(this, { power, all: false });
              this.draw();
            },
          },
          swatch(power),
          `${nice(power)} ${Math.round(accuracy)}`,
        ),
      ),
    );
  }

  line({ number, mark, loss }) {
    return h(
      "li",
      {},
      h(
        "button",
        {
          class: "link",
          "aria-current": String(number === this.at),
          onclick: () => this.go(number),
        },
        h("b", { class: "mark", title: SIZES[mark].join(": ") }, mark),
        ` ${this.titles[number].replace(", movement", "")}: ${rounded(loss)} %`,
      ),
    );
  }

  card(decision) {
    const { mark, loss, changes, reasons, opening, in_this_game: inThisGame } = decision,
      bad = mark.includes("?");
    const lines = [
      h(
        "p",
        {},
        mark ? h("b", { class: "mark", title: SIZES[mark]?.[1] }, mark) : null,
        bad
          ? ` ${SIZES[mark][0]}: these orders lost ${rounded(loss)} % of what you had.`
          : mark
            ? ` ${SIZES[mark][0]}: all else that was tried is worse.`
            : " Nothing that was tried is clearly better.",
      ),
      h("p", {}, this.outlook(decision)),
      opening ? h("p", {}, opening) : null,
    ];
    if (bad) {
      const heads = ["Unit", "Your order", "Better"].map((text) => h("th", { scope: "col" }, text));
      lines.push(
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ...heads)),
          h(
            "tbody",
            {},
            ...changes.map((row) => h("tr", {}, ...row.map((text) => h("td", {}, text)))),
          ),
        ),
        h("ul", { class: "reasons" }, ...reasons.slice(0, 2).map((text) => h("li", {}, text))),
        inThisGame ? h("p", { class: "quiet" }, inThisGame) : null,
      );
    }
    return h("div", { class: "card" }, ...lines, this.tryIt?.(decision));
  }

  outlook(decision) {
    const { centers, survival, best_centers: best, best_survival: alive, mark } = decision,
      bad = mark.includes("?"),
      change = (from, to) => (bad ? `${from}, with the better orders ${to}` : from),
      lives = bad ? Math.min(survival, alive) : survival,
      chance = change(`${rounded(survival)} %`, `${rounded(alive)} %`);
    return (
      `Centers ${counted(this.facts.years, "year")} later: ` +
      `${change(centers.toFixed(1), best.toFixed(1))}.` +
      (lives < 95 ? ` Chance to survive: ${chance}.` : "")
    );
  }

  notes() {
    const { judge, left_out: leftOut } = this.facts;
    const texts = leftOut.map(
      ({ phase, power, reason }) => `${phase}${power ? `, ${nice(power)}` : ""}: ${reason}`,
    );
    return h(
      "details",
      { class: "quiet", id: "about-review", open: leftOut.length > 0 },
      h(
        "summary",
        {},
        `Judged by ${judge}`,
        leftOut.length ? `; ${counted(leftOut.length, "thing")} left out` : "",
      ),
      h(
        "p",
        {},
        "Orders are judged by what could be expected when they were given: they and others were " +
          "tried against the same orders of the other powers, and played on. " +
          Object.entries(SIZES)
            .map(([mark, [, text]]) => `${mark}: ${text}`)
            .join("; ") +
          ". Accuracy: 100 if nothing was lost, 0 if as much as by random orders.",
      ),
      texts.length ? h("ul", {}, ...texts.map((text) => h("li", {}, text))) : null,
    );
  }

  // Marks over the slider.
  drawStrip() {
    const slider = $("slider"),
      width = slider.offsetWidth - 16,
      last = Math.max(1, Number(slider.max)),
      shown = []; // marks that would lie upon a worse one are left out
    Object.assign(this.strip.style, {
      left: `${slider.offsetLeft + 8}px`,
      width: `${width}px`,
      top: `${slider.offsetTop - 8}px`,
    });
    for (const { number, mark } of this.own()
      .filter(({ mark }) => mark)
      .sort((one, other) => other.loss - one.loss)) {
      const near = shown.some((other) => (Math.abs(number - other.number) * width) / last < APART);
      if (!near) shown.push({ number, mark });
    }
    this.strip.replaceChildren(
      ...shown.map(({ number, mark }) => {
        const sign = h("span", { class: "mark" }, mark);
        sign.style.left = `${(100 * number) / last}%`;
        return sign;
      }),
    );
  }
}
