import { $, counted, h, nice, swatch } from "/page.js";

// The review of a game: what each decision was worth, the worst first; better orders as arrows.

const WORST = 5; // decisions that are listed before all others
const SIZES = {
  "??": "lost at least 15 points that the judge's own orders save",
  "?": "lost at least 7.5 points that the judge's own orders save",
  "?!": "lost at least 3 points",
  "!": "better than the judge's own",
};
// Points lost that the judge's own orders would have saved.
const avoidable = ({ loss, worth, own_worth: own }) => Math.min(loss, Math.max(0, own - worth));
const points = (value) => (Math.round(10 * value) / 10).toFixed(1);

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
      .sort((one, other) => avoidable(other) - avoidable(one) || other.loss - one.loss);
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
    const marked = this.marked(),
      listed = this.all ? marked : marked.slice(0, WORST);
    const parts = [
      h("h2", {}, "Review"),
      this.progress(),
      this.tabs(),
      decision ? this.card(decision) : h("p", { class: "quiet" }, this.nothing()),
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
            title: "Accuracy: 100 if no decision has lost anything",
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
        h("b", { class: "mark", title: SIZES[mark] }, mark),
        ` ${this.titles[number].replace(", movement", "")}: ${points(loss)} points`,
      ),
    );
  }

  card(decision) {
    const { mark, loss, uncertainty, worth, best_worth: best, own_worth: own } = decision,
      { changes, reasons } = decision;
    const lost =
      loss > 0
        ? `These orders lost ${points(loss)} ± ${points(uncertainty)} points: ` +
          `worth ${points(worth)}, the better ones ${points(best)}, ` +
          `the judge's likeliest ${points(own)}.`
        : `These orders are worth ${points(worth)} points; nothing tried is surely better.`;
    return h(
      "div",
      { class: "card" },
      h(
        "p",
        {},
        mark ? h("b", { class: "mark", title: SIZES[mark] }, mark) : null,
        ` ${lost}`,
      ),
      ...(changes.length
        ? [
            h(
              "table",
              {},
              h(
                "thead",
                {},
                h(
                  "tr",
                  {},
                  ...["Unit", "Order", "Better"].map((text) => h("th", { scope: "col" }, text)),
                ),
              ),
              h(
                "tbody",
                {},
                ...changes.map((row) => h("tr", {}, ...row.map((text) => h("td", {}, text)))),
              ),
            ),
          ]
        : []),
      reasons.length
        ? h("ul", { class: "reasons" }, ...reasons.map((text) => h("li", {}, text)))
        : null,
      loss > 0 ? h("p", { class: "quiet" }, this.hindsight(decision)) : null,
      this.tryIt?.(decision),
    );
  }

  hindsight({ hindsight, in_this_game: inThisGame }) {
    const more = hindsight >= 0 ? "more" : "less";
    return (
      `${inThisGame} In hindsight, against what the others did order, the better ones are worth ` +
      `${points(Math.abs(hindsight))} points ${more}.`
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
        "Orders are judged by what could be expected when they were given. They and others met " +
          "the same samples of what the judge expects the other powers to order. Each was played " +
          "on, and the judge's value of what came of it made into points: 100 for a solo, 0 if " +
          "another power solos, else the share of the squared center counts. What the judge's " +
          "own orders would have lost, too, is hard to see: it counts as ?! and comes last. " +
          Object.entries(SIZES)
            .map(([mark, text]) => `${mark} ${text}`)
            .join(", ") +
          ".",
      ),
      texts.length ? h("ul", {}, ...texts.map((text) => h("li", {}, text))) : null,
    );
  }

  // Marks over the slider.
  drawStrip() {
    const slider = $("slider"),
      marks = this.own().filter(({ mark }) => mark),
      last = Math.max(1, Number(slider.max));
    Object.assign(this.strip.style, {
      left: `${slider.offsetLeft + 8}px`,
      width: `${slider.offsetWidth - 16}px`,
      top: `${slider.offsetTop - 8}px`,
    });
    this.strip.replaceChildren(
      ...marks.map(({ number, mark }) => {
        const sign = h("span", { class: "mark" }, mark);
        sign.style.left = `${(100 * number) / last}%`;
        return sign;
      }),
    );
  }
}
