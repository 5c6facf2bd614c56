// Choosing orders: by clicks on the board, or from lists.

import { $, counted, h, lock, nice, percent, sentence, swatch } from "/page.js";

// An offer that is being made up: peace; order of the helper -> how it helps; province -> who keeps
// out of it.
export const NO_OFFER = () => ({ peace: false, support: {}, closed: {} });

const MODES = {
  move: "Move",
  hold: "Hold",
  support: "Support",
  convoy: "Convoy",
  via: "Via convoy",
  retreat: "Retreat",
  disband: "Disband",
  build: "Build",
};

// What an order does; an army may reach a neighbor by land and by convoy.
const modeOf = ({ text, verb }) => (text.endsWith(" VIA") ? "via" : verb);

// Where somebody is on the page, which outlives a reload: of the page, then of a step and power.
export const cursor = {
  power: null, // whose orders are given, where one person gives everybody's
  playing: false, // watching: go on by itself
  open: {}, // id of what can be folded -> whether it is open
  ...history.state,
};
const AT = {
  unit: null, // selected
  mode: null,
  other: null, // province of the unit to be supported or convoyed
  narrowed: null, // orders that a click may have meant
  offered: [], // orders that the convoy just chosen needs
  typed: "",
  mistyped: "", // why
  hint: false,
  compared: [], // own orders when a hint was wanted
  conceding: false,
  note: "", // why the last thing that was clicked in the talk was refused
  partner: null, // to whom an offer is being made
  words: "", // what is being written to them
  picking: false, // the next click on the board closes a province
};

export class OrderPanel {
  constructor({ say, redraw, changed, submit, read, sandbox, outlook }) {
    Object.assign(this, { say, redraw, changed, sendOrders: submit, read, sandbox, outlook });
    this.view = null;
    this.chosen = {}; // unit -> order text, as the server has it or is going to
  }

  // Another game, step or power: nothing is selected, no offer is begun.
  begin(about) {
    Object.assign(cursor, structuredClone(AT), { about }, NO_OFFER());
  }

  update(view) {
    this.view = view;
    this.chosen = { ...view.decision?.draft };
    if (cursor.unit && !this.place(cursor.unit)) this.select(null);
  }

  // An order in words, such as `Army London: move to Wales`.
  words(text) {
    for (const { orders, unit, province } of this.view.decision?.units ?? []) {
      const order = orders.find((one) => one.text === text);
      if (order) return `${this.label(unit, province)}: ${order.words}`;
    }
    return text === "WAIVE" ? "waive a build" : text;
  }

  label(unit, province) {
    const kind = { A: "Army ", F: "Fleet " }[unit.length > 3 ? unit[0] : ""] ?? "";
    return kind + this.name(province) + unit.slice(unit.includes("/") ? -3 : unit.length);
  }

  orders() {
    return Object.values(this.chosen);
  }

  place(unit) {
    return this.view.decision?.units.find((place) => place.unit === unit);
  }

  name(province) {
    return this.view.names[province];
  }

  // --- Selecting ---------------------------------------------------------------------------------

  select(unit) {
    Object.assign(cursor, { unit, other: null, mode: null, narrowed: null, offered: [] });
    if (unit) {
      const modes = this.modes();
      cursor.mode = ["move", "retreat", "build"].find((mode) => modes.includes(mode)) ?? modes[0];
    }
  }

  // What the selected unit can do.
  modes() {
    const { orders } = this.place(cursor.unit);
    return Object.keys(MODES).filter((mode) => orders.some((order) => modeOf(order) === mode));
  }

  unselect() {
    this.select(null);
    this.say("");
    this.redraw();
  }

  setMode(mode) {
    if (!cursor.unit || !this.modes().includes(mode)) return;
    Object.assign(cursor, { mode, other: null, narrowed: null });
    const orders = this.inMode();
    if (mode === "hold" || mode === "disband") this.choose(orders[0]);
    else this.ask();
  }

  // Say over the board what to click next.
  ask() {
    this.say(this.guide().replace(", or pick from the list", ""));
    this.redraw();
  }

  inMode() {
    if (!cursor.unit) return [];
    const orders = this.place(cursor.unit).orders.filter((order) => modeOf(order) === cursor.mode);
    if (cursor.mode === "via")
      orders.sort((a, b) => this.partners(b).length - this.partners(a).length); // own fleets first
    return cursor.other ? orders.filter(({ other }) => other === cursor.other) : orders;
  }

  choose(order) {
    const { decision } = this.view;
    const winter = decision.kind === "builds" || decision.kind === "removals";
    if (winter && !(cursor.unit in this.chosen) && this.orders().length >= decision.count) {
      const [first] = Object.keys(this.chosen); // the first one makes room
      delete this.chosen[first];
    }
    this.chosen[cursor.unit] = order.text;
    this.say(`${this.words(order.text)}.`);
    const offered = this.partners(order).filter(({ unit, text }) => this.chosen[unit] !== text);
    this.select(null); // the next click selects
    cursor.offered = offered;
    this.changed();
  }

  // The orders of one's other units that an order of the selected one needs: a convoy is of two.
  partners(order) {
    const { province } = this.place(cursor.unit),
      mode = modeOf(order);
    const fits = {
      via: (one) => one.verb === "convoy" && one.other === province,
      convoy: (one, at) => modeOf(one) === "via" && at === order.other,
    }[mode];
    if (!fits) return [];
    return this.view.decision.units.flatMap((place) =>
      place.orders
        .filter((one) => one.place === order.place && fits(one, place.province))
        .map((one) => ({ ...one, unit: place.unit })),
    );
  }

  accept(order) {
    const rest = cursor.offered.filter(({ unit }) => unit !== order.unit);
    this.select(order.unit);
    this.choose(order);
    cursor.offered = rest;
    this.redraw();
  }

  // Enter: take what is offered, leave a unit as it is, or submit.
  enter() {
    if (cursor.offered.length) this.accept(cursor.offered[0]);
    else if (cursor.unit) this.unselect();
    else $("submit")?.click();
  }

  // Where one goes on when what was clicked in a list is gone: the next unit, or the end.
  next() {
    const next =
      this.view.decision?.kind === "orders" &&
      this.view.decision.units.find(({ unit }) => !(unit in this.chosen));
    return document.getElementById(next ? `unit-${next.unit.replace(" ", "-")}` : "submit");
  }

  forget(unit) {
    delete this.chosen[unit];
    this.select(unit);
    this.changed();
  }

  // A province of the board was clicked.
  clicked(province) {
    const { decision } = this.view;
    const own = decision.units.find((place) => place.province === province);
    const from = cursor.unit && this.place(cursor.unit).province;
    if (from && province !== from && this.target(province)) return;
    if (!own) {
      const goal = ({ text, place }) => place === province && this.orders().includes(text);
      if (!cursor.unit && decision.units.some(({ orders }) => orders.some(goal))) return; // again
      this.say(this.refusal(province), true);
      return;
    }
    if (own.unit !== cursor.unit) this.select(own.unit);
    if (decision.kind === "removals" || (decision.kind === "builds" && own.orders.length === 1)) {
      if (own.unit in this.chosen) this.forget(own.unit);
      else this.choose(own.orders[0]);
    } else this.redraw();
  }

  // Why a clicked province is none to order in, or for the selected unit.
  refusal(province) {
    const where = this.name(province),
      { kind } = this.view.decision;
    if (kind === "builds") return `You cannot build in ${where}: ${this.unbuildable(province)}.`;
    if (!cursor.unit || kind === "removals")
      return `You have ${kind === "orders" ? "no unit" : "nothing to order"} in ${where}.`;
    const who = this.label(cursor.unit, this.place(cursor.unit).province);
    if (cursor.other) return `${who} cannot help ${this.name(cursor.other)} to ${where}.`;
    return (
      {
        move:
          `${who} cannot move to ${where}` +
          `${this.ferries(province).length ? " by land: choose Via convoy" : ""}.`,
        via: `${who} cannot be convoyed to ${where}.`,
        retreat: `${who} cannot retreat to ${where}.`,
        support: `${who} cannot support a unit in ${where}.`,
        convoy: `${who} cannot convoy from ${where}.`,
      }[cursor.mode] ?? `${who} can only ${MODES[cursor.mode].toLowerCase()}.`
    );
  }

  unbuildable(province) {
    const board = $("board"),
      center = board.querySelector(`[data-center="${province}"]`);
    if (!center) return "it is no supply center";
    if (center.dataset.owner !== this.view.you) return "it is not yours";
    if (board.querySelector(`.unit:not(.built)[data-unit*=" ${province}"]`))
      return "a unit stands there";
    return "it is not one of your home centers";
  }

  // The selected unit's moves to a province by convoy.
  ferries(province) {
    return this.place(cursor.unit).orders.filter(
      (order) => modeOf(order) === "via" && order.place === province,
    );
  }

  // Orders that were typed, `;` between them, are read by the server.
  async type(text) {
    try {
      const { orders, wrong, notes } = await this.read(text, this.orders());
      this.take(orders);
      cursor.typed = Object.keys(wrong).join("; ");
      cursor.mistyped = [...Object.values(wrong), ...notes].map(sentence).join(" ");
    } catch (error) {
      cursor.typed = text;
      cursor.mistyped = sentence(error.message);
    }
    this.redraw();
    $("typed")?.focus({ preventScroll: true });
  }

  // Use a clicked province for the selected unit; tell whether that was possible.
  target(province) {
    const two = cursor.mode === "support" || cursor.mode === "convoy";
    const key = two && !cursor.other ? "other" : "place";
    const own = this.orders();
    let found = this.inMode().filter((order) => order[key] === province);
    if (cursor.other && found.length > 1) {
      const same = found.filter(({ text }) => own.includes(text.split(" S ")[1])); // its coast
      if (same.length) found = same;
    }
    if (found.length === 1) this.choose(found[0]);
    else if (found.length && key === "other") {
      cursor.other = province;
      this.ask();
    } else if (found.length) {
      cursor.narrowed = found; // several coasts: the unit asks
      this.redraw();
    } else if (
      cursor.mode === "move" &&
      !this.view.decision.units.some((place) => place.province === province)
    ) {
      const carried = this.ferries(province).find((order) => this.partners(order).length);
      if (carried) {
        this.choose(carried);
        return true;
      }
      const supports = this.place(cursor.unit).orders.some(
        ({ verb, other }) => verb === "support" && other === province,
      );
      if (!supports) return false;
      cursor.mode = "support";
      cursor.other = province;
      this.ask();
    } else return false;
    return true;
  }

  marks() {
    const { decision, given } = this.view;
    if (!decision || given) return {};
    if (!cursor.unit) {
      const open = decision.units.filter(({ unit }) => !(unit in this.chosen));
      return {
        todo: open.map(({ province }) => province),
        picked: cursor.offered.map(({ unit }) => this.place(unit).province),
      };
    }
    const two = cursor.mode === "support" || cursor.mode === "convoy";
    const key = two && !cursor.other ? "other" : "place";
    const reach = ["hold", "disband", "build"].includes(cursor.mode)
      ? []
      : this.inMode().map((order) => order[key]);
    return {
      reach,
      picked: [this.place(cursor.unit).province],
      other: cursor.other ? [cursor.other] : [],
    };
  }

  // What is asked beside a unit on the board: [its province, the provinces to click, parts].
  flyout() {
    const { decision, given } = this.view;
    if (!decision || given) return ["", []];
    if (cursor.offered.length)
      return [this.place(cursor.offered[0].unit).province, [], ...this.offers()];
    if (!cursor.unit) return ["", []];
    const at = this.place(cursor.unit).province,
      asked = cursor.narrowed ?? (cursor.mode === "build" ? this.inMode() : null);
    if (asked)
      return [at, [], ...asked.map((one) => offerButton(one, () => this.choose(one)))];
    // In whichever mode, so that nothing jumps.
    const marked = this.place(cursor.unit).orders.flatMap(({ place, other }) => [place, other]);
    const modes = this.modes().map((mode) =>
      h(
        "button",
        {
          "data-mode": mode,
          "aria-pressed": String(mode === cursor.mode),
          onclick: () => this.setMode(mode),
        },
        h("u", {}, MODES[mode][0]),
        MODES[mode].slice(1),
      ),
    );
    return [at, [...new Set(marked.filter(Boolean))], ...modes];
  }

  // The other half of a convoy.
  offers() {
    return [
      h("p", {}, "The convoy also needs:"),
      ...cursor.offered.map((order) =>
        offerButton({ ...order, words: this.words(order.text) }, () => this.accept(order)),
      ),
      h("button", { onclick: () => this.unselect() }, "Not now"),
    ];
  }

  // --- Drawing -----------------------------------------------------------------------------------

  draw(frame, hint) {
    const { decision } = this.view;
    const focus = document.activeElement?.id;
    const parts = [
      this.view.sandbox ? this.sandboxBox() : null,
      h("h2", {}, this.heading()),
      this.unitList(decision),
    ];
    if (cursor.offered.length) parts.push(h("div", { class: "buttons" }, ...this.offers()));
    if (cursor.unit) parts.push(this.orderList(hint));
    else if (!this.orders().length) parts.push(h("p", { class: "quiet" }, this.beginning()));
    parts.push(this.typing(decision));
    if (hint) parts.push(this.hintBox(hint));
    const open = (this.view.talk?.offers ?? []).filter(
      ({ receiver, state }) => receiver === this.view.you && state === "open",
    ).length;
    if (open)
      parts.push(
        h(
          "p",
          { id: "open-offers" },
          h(
            "a",
            { href: "#talk", onclick: toTalk },
            `${open === 1 ? "An offer waits" : `${open} offers wait`} for your answer`,
          ),
          ".",
        ),
      );
    const left = decision.count - this.orders().length;
    const rest = {
      orders: "unit holds|units hold",
      retreats: "unit disbands|units disband",
      builds: "build unused|builds unused",
      removals: "is chosen for you|are chosen for you",
    }[decision.kind];
    const note = left > 0 ? ` (${left} ${rest.split("|")[left > 1 ? 1 : 0]})` : "";
    $("foot").replaceChildren(
      h(
        "button",
        { class: "main", id: "submit", onclick: () => this.sendOrders(this.orders()) },
        `Submit orders${note}`,
      ),
    );
    frame.replaceChildren(...parts.filter(Boolean));
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  }

  boundBy(powers) {
    return `Bound by your deal with ${powers.map(nice).join(" and ")}`;
  }

  heading() {
    const { kind, count } = this.view.decision;
    const many = count > 1 ? "s" : "";
    const turn = this.view.sandbox ? nice(this.view.you) : "Your turn";
    return {
      orders: `${turn}: give orders`,
      retreats: `${turn}: retreat or disband ${count} unit${many}`,
      builds: `${turn}: build up to ${count} unit${many}`,
      removals: `${turn}: remove ${count} unit${many}`,
    }[kind];
  }

  beginning() {
    return {
      orders:
        "Click one of your units, on the board or in this list, then where it should go. " +
        "Keys: H hold, M move, S support, C convoy, V via convoy, Enter, Escape.",
      retreats: "Click a dislodged unit, then where it should retreat to.",
      builds: "Click a home center to build there. You may leave builds unused.",
      removals: "Click the units you want to remove.",
    }[this.view.decision.kind];
  }

  unitList(decision) {
    const rows = decision.units.map(({ unit, province, orders, bound }) => {
      const text = this.chosen[unit];
      const order = orders.find((one) => one.text === text);
      const words = order
        ? order.words
        : decision.kind === "builds" || decision.kind === "removals"
          ? ""
          : "no order yet";
      const label = this.label(unit, province);
      return h(
        "li",
        {},
        h(
          "button",
          {
            class: "unit",
            id: `unit-${unit.replace(" ", "-")}`,
            "aria-pressed": String(unit === cursor.unit),
            onclick: () => (this.select(unit), this.redraw()),
          },
          h("b", {}, bound.length ? lock(this.boundBy(bound)) : null, label),
          h("span", { class: order ? "" : "quiet" }, words),
        ),
        order
          ? h(
              "button",
              {
                class: "drop",
                title: "Delete this order",
                "aria-label": `Delete ${text}`,
                onclick: () => this.forget(unit),
              },
              "✕",
            )
          : null,
      );
    });
    return h("ul", { id: "units" }, ...rows);
  }

  orderList(hint) {
    const { unit, bound } = this.place(cursor.unit);
    const tabs = this.modes().map((verb) =>
      h(
        "button",
        {
          id: `mode-${verb}`,
          "aria-pressed": String(verb === cursor.mode),
          onclick: () => this.setMode(verb),
        },
        MODES[verb],
      ),
    );
    const shares = new Map();
    for (const slot of hint?.slots ?? [])
      for (const { text, probability } of slot.orders)
        shares.set(text, Math.max(probability, shares.get(text) ?? 0));
    let list = cursor.narrowed ?? this.inMode();
    if (hint)
      list = [...list].sort((a, b) => (shares.get(b.text) ?? 0) - (shares.get(a.text) ?? 0));
    const items = list.map((order) => {
      const share = hint ? (shares.get(order.text) ?? 0) : null;
      const bar = share === null ? null : h("meter", { min: 0, max: 1, value: share });
      return h(
        "li",
        {},
        h(
          "button",
          {
            class: "order",
            "data-order": order.text,
            title: order.text,
            onclick: () => this.choose(order),
            "aria-pressed": String(this.chosen[unit] === order.text),
          },
          order.words,
          share === null ? null : h("span", { class: "share" }, bar, percent(share)),
        ),
      );
    });
    return h(
      "div",
      { id: "choices" },
      h("div", { class: "tabs" }, ...tabs),
      bound.length
        ? h(
            "p",
            { class: "bound" },
            lock(),
            `${this.boundBy(bound)}, which rules out other orders.`,
          )
        : null,
      h("p", { class: "quiet" }, this.guide()),
      h("ul", {}, ...items),
    );
  }

  guide() {
    const who = this.name(this.place(cursor.unit).province);
    if (cursor.narrowed) return "Which of these?";
    if (cursor.other)
      return (
        `${who} helps ${this.name(cursor.other)}. ` +
        "Click where that unit is going, or the unit itself if it stays."
      );
    return (
      {
        move: `Click a marked province to move ${who} there, or pick from the list.`,
        retreat: "Click a marked province to retreat there, or pick from the list.",
        support: `Click the unit that ${who} should support, or pick from the list.`,
        convoy: "Click the army to convoy, or pick from the list.",
        via: `Click where a convoy should bring ${who}, or pick from the list.`,
        build: `What do you want to build in ${who}?`,
      }[cursor.mode] ?? ""
    );
  }

  // A line in which orders can be typed, with all legal ones to complete it.
  typing(decision) {
    const legal = decision.units.flatMap(({ orders }) =>
      orders.map(({ text }) => h("option", { value: text })),
    );
    const [{ orders }] = decision.units,
      example = (orders.find(({ verb }) => verb === "move") ?? orders[0]).text;
    const line = h("input", {
      type: "text",
      id: "typed",
      list: "legal",
      autocomplete: "off",
      spellcheck: "false",
      value: cursor.typed ?? "",
      placeholder: `or type: ${example}`,
      "aria-label": "Type orders, with ; between them",
      "aria-describedby": "mistyped",
    });
    return h(
      "form",
      {
        id: "typing",
        class: "row",
        onsubmit: (event) => {
          event.preventDefault();
          if (line.value.trim()) this.type(line.value);
        },
      },
      line,
      h("button", { id: "add" }, "Add"),
      h("datalist", { id: "legal" }, ...legal),
      h("p", { id: "mistyped", class: "bad", role: "alert" }, cursor.mistyped ?? ""),
    );
  }

  // Whose orders are given now, and who else could give some.
  sandboxBox() {
    const { view } = this,
      choices = h(
        "select",
        { id: "let-who", "aria-label": "Player to ask" },
        ...view.choices.map((name) => h("option", { value: name }, name)),
      );
    choices.value = cursor.asked ?? choices.value;
    choices.addEventListener("change", () => {
      cursor.asked = choices.value;
    });
    const powers = view.powers
      .filter(({ alive }) => alive)
      .map(({ power, ready }) =>
        h(
          "button",
          {
            id: `as-${power}`,
            "aria-pressed": String(power === view.you),
            title: ready ? "Has its orders" : "Needs orders",
            onclick: () => this.sandbox.turnTo(power),
          },
          swatch(power),
          `${nice(power)}${ready ? " ✓" : ""}`,
        ),
      );
    const others = view.waiting.filter((power) => power !== view.you);
    return h(
      "div",
      { id: "sandbox-box" },
      h("div", { class: "buttons" }, ...powers),
      h("p", { class: "quiet" }, "What would this player order?"),
      choices,
      h(
        "div",
        { class: "buttons" },
        h(
          "button",
          { id: "let", onclick: () => this.sandbox.letOrder(choices.value, [view.you]) },
          `Order for ${nice(view.you)}`,
        ),
        others.length
          ? h(
              "button",
              { id: "let-others", onclick: () => this.sandbox.letOrder(choices.value, others) },
              "Order for the others",
            )
          : null,
      ),
    );
  }

  hintBox(hint) {
    const { tried } = hint,
      who = nice(this.view.you);
    const place = ({ unit }) => this.view.decision.units.findIndex((one) => one.unit === unit);
    const items = [...hint.slots]
      .sort((a, b) => place(a) - place(b))
      .map(({ orders: [{ text, probability, usual }] }) =>
        h(
          "li",
          { title: text },
          `${this.words(text)} `,
          h(
            "span",
            { class: "quiet" },
            percent(probability) + (usual === null ? "" : `, people ${percent(usual)}`),
          ),
        ),
      );
    const [these, other] = this.outlook(hint)?.outlooks ?? [],
      yours = cursor.compared.join() === this.orders().join() ? other : null;
    const share = ({ won, games }) =>
      won === 0
        ? `below ${percent(1 / games)}`
        : won === games
          ? `above ${percent(1 - 1 / games)}`
          : `about ${percent(won / games)}`;
    const told = (one) =>
      `chance of a solo ${share(one)}, ` +
      `about ${counted(Math.round(one.centers), "center")} at the end`;
    const chance = !these
      ? "Playing on from here…"
      : !yours
        ? sentence(told(these))
        : `${verdict(these, yours)} These: ${told(these)}. Yours: ${told(yours)}.`;
    const result = ({ won, centers }) =>
      `${who} won ${won} (${this.view.victory} centers win), ` +
      `and ended with ${centers.toFixed(1)} centers on average`;
    const what =
      these &&
      h(
        "details",
        { id: "what", open: cursor.open.what },
        h("summary", {}, "What are these numbers?"),
        h(
          "p",
          {},
          `The players of this table, with the one that gives hints in your place, have played ` +
            `${these.games} games from here after these orders: ${result(these)}.` +
            (yours ? ` After yours: ${result(yours)}.` : "") +
            " So few games can differ by chance: a difference is clear from twice its error on.",
        ),
      );
    return h(
      "div",
      { id: "hints" },
      ...(tried ? this.reasons(tried) : []),
      h(
        "h3",
        {},
        tried
          ? "Its first thought, without looking ahead"
          : `What a strong player would order as ${who}`,
      ),
      h("ul", {}, ...items),
      h("p", { id: "expects" }, chance),
      what,
      h(
        "button",
        {
          id: "fill",
          title: "A percentage says how often the player that gives hints would order this",
          onclick: () => this.take(hint.slots.map(({ orders }) => orders[0].text)),
        },
        "Use these orders",
      ),
    );
  }

  // What a search has tried, and what it expects of the others.
  reasons({ candidates, expected, beliefs }) {
    const compared = candidates.some(({ value }) => value !== null);
    const worth = ({ value, error }) =>
      value === null
        ? "not tried"
        : value.toFixed(3) + (error === null ? "" : ` ± ${error.toFixed(3)}`);
    const notes = (found) =>
      [
        compared && worth(found),
        found.share > 0 && found.share < 1 && `played ${percent(found.share)}`,
        found.own && "its first thought",
      ]
        .filter(Boolean)
        .join(", ");
    const rows = candidates.map((found) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            class: "candidate",
            "aria-pressed": String(found.share > 0),
            "data-orders": found.orders.join(", "),
            onclick: () => this.take(found.orders),
          },
          found.orders.map((text) => this.words(text)).join("; "),
          h("span", { class: "quiet" }, notes(found)),
        ),
      ),
    );
    const answers = Object.entries(expected).map(([power, orders]) => {
      const taken = Object.entries(beliefs[power] ?? {})
        .sort((a, b) => b[1] - a[1])
        .filter(([, share]) => share >= 0.05);
      const whom = taken.length
        ? ", who plays like " +
          taken.map(([name, share]) => `${name} (${percent(share)})`).join(" or ")
        : "";
      return h(
        "li",
        {},
        h("b", {}, nice(power)),
        `${whom}: `,
        orders.map(({ text, probability }) => `${text} ${percent(probability)}`).join("; "),
      );
    });
    return [
      h("h3", {}, "What looking ahead found"),
      h("ul", { id: "candidates" }, ...rows),
      h(
        "p",
        { class: "quiet" },
        (compared
          ? "Each number is what it expects to gain, seen one phase ahead."
          : "It found only these orders, so it had nothing to compare.") +
          " Click a line to use its orders.",
      ),
      h(
        "details",
        { id: "expects-of-others", open: cursor.open["expects-of-others"] },
        h("summary", {}, "What it expects the others to order"),
        h("ul", { id: "expected" }, ...answers),
      ),
    ];
  }

  take(texts) {
    const wanted = new Set(texts);
    this.chosen = {};
    for (const { unit, orders } of this.view.decision.units) {
      const order = orders.find(({ text }) => wanted.has(text));
      if (order) this.chosen[unit] = order.text;
    }
    this.unselect();
    this.changed();
  }

  // The orders of a hint.
  hinted({ slots }) {
    return slots.map(({ orders }) => orders[0].text).filter((text) => text !== "WAIVE");
  }
}

// Which of two outlooks is better, if games show it beyond twice the error of a difference.
function verdict(these, yours) {
  const variance = ({ won, games }) => ((won + 0.5) * (games - won + 0.5)) / games;
  const wins = (these.won - yours.won) / Math.sqrt(variance(these) + variance(yours)),
    centers = (these.centers - yours.centers) / (Math.hypot(these.error, yours.error) || 0.01),
    by = Math.abs(wins) > 2 ? wins : centers;
  if (Math.abs(by) <= 2) return "No clear difference to your orders.";
  return by > 0 ? "These orders are better than yours." : "Your orders are better than these.";
}

function offerButton({ text, words }, act) {
  return h("button", { "data-offer": text, onclick: act }, words);
}

// The address has the seat's token after its #, so that a link within the page goes by script.
function toTalk(event) {
  event.preventDefault();
  document.getElementById("talk").scrollIntoView({ block: "nearest" });
}
