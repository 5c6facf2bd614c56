// Making deals: offers to other powers, answers to theirs, and what was agreed upon.

import { NO_OFFER, cursor } from "/orders.js";
import { h, lock, nice, sentence, spoken, swatch } from "/page.js";

const WHO = { both: "both of you", they: "they", we: "you" }; // who keeps out of a closed province
const STATES = { deal: "agreed", declined: "declined", lapsed: "lapsed", open: "not answered yet" };

export class TalkPanel {
  constructor({ say, redraw, send, orders }) {
    Object.assign(this, { say, redraw, ask: send, orders });
    this.view = null;
  }

  // Say what is new: offers that came, and answers to one's own.
  update(before, view) {
    this.view = view;
    const { talk } = view;
    if (!talk?.partners.some(({ power }) => power === cursor.partner)) cursor.partner = null;
    if (!talk || !before?.talk || before.step !== view.step || before.you !== view.you) return;
    const heard = new Map(before.talk.offers.map((offer) => [offer.number, offer.state]));
    for (const { number, sender, receiver, state, reason } of talk.offers) {
      if (heard.get(number) === state) continue;
      if (sender !== view.you) {
        if (!heard.has(number) && state === "open") this.say(`${nice(sender)} makes you an offer.`);
      } else if (state === "deal") this.say(`${nice(receiver)} agrees: you have a deal.`);
      else if (state === "declined")
        this.say(`${nice(receiver)} declines${reason ? `: ${reason}` : ""}.`);
      else if (state === "lapsed") this.say(`Your offer to ${nice(receiver)} has lapsed.`);
      else this.say(`Your offer is with ${nice(receiver)}.`);
    }
    for (const [sender, , words] of talk.said.slice(before.talk.said.length))
      if (sender !== view.you) this.say(`${nice(sender)} says: ${words}`);
  }

  async sendTo(path, body) {
    cursor.note = "";
    if (body.terms) this.say(`Waiting for ${nice(body.to)}…`);
    const refused = await this.ask(path, body);
    cursor.note = refused;
    if (!refused && body.text) cursor.words = "";
    if (!refused && body.terms) {
      Object.assign(cursor, NO_OFFER(), { partner: null });
    }
    this.redraw();
  }

  // The provinces that are marked on the board while one is to be closed.
  marks() {
    return cursor.picking ? { picked: Object.keys(cursor.closed) } : null;
  }

  pick() {
    // On a phone it is far up.
    document.getElementById("board").scrollIntoView({ block: "nearest" });
    this.say("Click the province that you both keep out of.");
  }

  picked(province) {
    cursor.picking = false;
    this.close(province);
    document.getElementById("composer")?.scrollIntoView({ block: "nearest" });
  }

  close(province) {
    if (province) cursor.closed[province] ??= "both";
    this.redraw();
  }

  // --- Drawing -----------------------------------------------------------------------------------

  draw(frame, view) {
    const { talk } = view;
    if (!talk || !view.you) {
      frame.replaceChildren(
        ...(talk?.peace.length ? [h("h2", {}, "Deals"), this.peaceList(talk, view)] : []),
      );
      return;
    }
    const focus = document.activeElement?.id;
    const got = talk.offers.filter(
      ({ receiver, state }) => receiver === view.you && state === "open",
    );
    const sent = talk.offers.filter(({ sender, state }) => sender === view.you && state !== "deal");
    const deals = this.deals(talk);
    const parts = [h("h2", {}, "Deals")];
    if (!talk.binding) parts.push(h("p", { class: "quiet", id: "free" }, "Deals may be broken."));
    const refused = { class: "bad", id: "refused", role: "alert" };
    if (cursor.note) parts.push(h("p", refused, cursor.note));
    if (got.length)
      parts.push(h("ul", { id: "offers" }, ...got.map((offer) => this.received(offer))));
    if (deals.length)
      parts.push(h("ul", { id: "deals" }, ...deals.map((offer) => this.deal(offer))));
    if (sent.length)
      parts.push(h("ul", { id: "sent" }, ...sent.map((offer) => this.sentOffer(offer))));
    if (talk.said.length) parts.push(h("div", { id: "heard" }, spoken(talk.said)));
    parts.push(this.peaceList(talk, view));
    if (talk.open) parts.push(...this.offering(talk));
    else if (!deals.length)
      parts.push(h("p", { class: "quiet" }, "Deals are made in spring and fall, before orders."));
    frame.replaceChildren(...parts.filter(Boolean));
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  }

  // A peace of two offers is one deal.
  deals({ offers, later }) {
    const found = new Map();
    for (const offer of [...offers.filter(({ state }) => state === "deal"), ...later])
      found.set(JSON.stringify([[offer.sender, offer.receiver].sort(), offer.clauses]), offer);
    return [...found.values()];
  }

  other({ sender, receiver }) {
    return sender === this.view.you ? receiver : sender;
  }

  received(offer) {
    const { number, sender } = offer;
    const answer = (agreed) => this.sendTo("/api/answer", { number, agreed });
    return h(
      "li",
      {},
      h("div", {}, swatch(sender), h("b", {}, nice(sender)), " offers you:"),
      this.clauses(offer),
      h(
        "div",
        { class: "buttons" },
        h(
          "button",
          {
            class: "main",
            id: `accept-${number}`,
            "aria-label": `Accept ${nice(sender)}'s offer`,
            onclick: () => answer(true),
          },
          "Accept",
        ),
        h(
          "button",
          {
            id: `decline-${number}`,
            "aria-label": `Decline ${nice(sender)}'s offer`,
            onclick: () => answer(false),
          },
          "Decline",
        ),
      ),
    );
  }

  deal(offer) {
    const other = this.other(offer);
    return h(
      "li",
      {},
      h(
        "div",
        {},
        this.view.talk.binding ? lock() : "",
        "Agreed with ",
        swatch(other),
        h("b", {}, nice(other)),
        ":",
      ),
      this.clauses(offer),
    );
  }

  sentOffer(offer) {
    return h(
      "li",
      { class: offer.state },
      h(
        "div",
        {},
        "To ",
        swatch(offer.receiver),
        h("b", {}, nice(offer.receiver)),
        `, ${STATES[offer.state]}:`,
      ),
      this.clauses(offer),
      offer.reason ? h("p", { class: "quiet reason" }, sentence(offer.reason)) : null,
    );
  }

  clauses({ clauses }) {
    const lines = new Map(); // what both sides do is said once
    for (const { power, words } of clauses) lines.set(words, [...(lines.get(words) ?? []), power]);
    return h(
      "ul",
      { class: "clauses" },
      ...[...lines].map(([words, powers]) => h("li", {}, this.line(powers, words))),
    );
  }

  line(powers, words) {
    if (!/^(keep|leave)/.test(words)) return words;
    const many = powers[0] === null || powers.length > 1;
    const who = many ? "both" : powers[0] === this.view.you ? "you" : nice(powers[0]);
    const single = who === nice(powers[0] ?? "");
    return `${who} ${single ? words : words.replace(/^(keep|leave)s/, "$1")}`;
  }

  peaceList({ peace }, { you }) {
    const others = peace.filter((pair) => !pair.includes(you));
    if (!others.length) return null;
    return h(
      "p",
      { id: "peace", class: "quiet" },
      `Peace between ${others.map((pair) => pair.map(nice).join(" and ")).join(", ")}.`,
    );
  }

  // --- Making an offer ---------------------------------------------------------------------------

  offering(talk) {
    const used = talk.left === 0;
    const buttons = talk.partners.map(({ power }) =>
      h(
        "button",
        {
          id: `partner-${power}`,
          "aria-pressed": String(power === cursor.partner),
          onclick: () => this.choose(power),
        },
        swatch(power),
        nice(power),
      ),
    );
    const left = talk.left === null ? "" : ` (${talk.left} left this phase)`;
    const parts = [
      h("h3", {}, used ? "Write to" : `Make an offer to${left}`),
      h("div", { class: "buttons", id: "partners" }, ...buttons),
    ];
    if (used)
      parts.unshift(h("p", { class: "quiet" }, "You have used up your offers for this phase."));
    const partner = talk.partners.find(({ power }) => power === cursor.partner);
    if (partner && !used)
      parts.push(
        talk.protocol === "mutual" ? this.peaceButton(talk, partner) : this.composer(partner),
      );
    if (partner) parts.push(this.writing(partner));
    return parts;
  }

  writing({ power }) {
    const field = h("input", {
      id: "words",
      maxlength: 200,
      value: cursor.words,
      "aria-label": `Your words to ${nice(power)}`,
      placeholder: `Write to ${nice(power)}`,
      oninput: () => {
        cursor.words = field.value;
      },
    });
    const send = (event) => {
      event.preventDefault();
      this.sendTo("/api/say", { to: power, text: cursor.words });
    };
    const { person } = this.view.powers.find((one) => one.power === power);
    return h(
      "form",
      { class: "row", onsubmit: send },
      field,
      h("button", { id: "write" }, "Send"),
      person ? null : h("small", { class: "quiet" }, `${nice(power)} does not read words.`),
    );
  }

  choose(power) {
    const partner = cursor.partner === power ? null : power;
    Object.assign(cursor, NO_OFFER(), { note: "", picking: false, partner });
    this.redraw();
  }

  peaceButton({ offers }, { power }) {
    const known = offers.find(
      (offer) => offer.receiver === power || (offer.sender === power && offer.state === "deal"),
    );
    const label = known
      ? `Peace with ${nice(power)}: ${STATES[known.state]}`
      : `Offer ${nice(power)} peace`;
    return h(
      "div",
      { id: "composer" },
      h(
        "button",
        {
          class: "main",
          id: "offer-peace",
          disabled: Boolean(known),
          onclick: () => this.sendTo("/api/offer", { to: power, terms: { peace: true } }),
        },
        label,
      ),
    );
  }

  composer(partner) {
    const who = nice(partner.power);
    const toggle = (help) => {
      if (help.support in cursor.support) delete cursor.support[help.support];
      else cursor.support[help.support] = help;
      this.redraw();
    };
    const option = (help) =>
      h(
        "button",
        {
          class: "order",
          "data-support": help.support,
          title: help.support,
          "aria-pressed": String(help.support in cursor.support),
          onclick: () => toggle(help),
        },
        help.words,
      );
    const wanted = new Set(this.orders());
    const asked = partner.help.filter(
      ({ order, support }) => wanted.has(order) || support in cursor.support,
    );
    const parts = [
      h(
        "button",
        {
          id: "offer-peace",
          "aria-pressed": String(cursor.peace),
          onclick: () => {
            cursor.peace = !cursor.peace;
            this.redraw();
          },
        },
        "Offer peace",
      ),
      h("h3", {}, "Ask for support of your orders"),
      asked.length
        ? h("div", { class: "list", id: "asked" }, ...asked.map(option))
        : h("p", { class: "quiet" }, this.noHelp(partner, wanted)),
    ];
    if (partner.favor.length) {
      const pick = h(
        "select",
        {
          id: "favor",
          "aria-label": `Offer ${who} your support`,
          onchange: () => toggle(partner.favor[pick.value]),
        },
        h("option", { value: "" }, `Offer ${who} your support…`),
        ...partner.favor.map(({ words, support }, number) =>
          h("option", { value: number, disabled: support in cursor.support }, words),
        ),
      );
      parts.push(pick);
    }
    parts.push(this.closing());
    const draft = this.draft();
    if (draft.length)
      parts.push(h("h3", {}, `Your offer to ${who}`), h("ul", { id: "draft" }, ...draft));
    parts.push(
      h(
        "button",
        { class: "main", id: "send-offer", disabled: !draft.length, onclick: () => this.send() },
        `Send the offer to ${who}`,
      ),
    );
    return h("div", { id: "composer" }, ...parts);
  }

  noHelp(partner, wanted) {
    const who = nice(partner.power);
    if (!partner.help.length) return `No unit of ${who} can support one of yours.`;
    if (!wanted.size)
      return `Choose your orders first. The ones ${who} can support then appear here.`;
    return `${who} cannot support any of the orders you have chosen.`;
  }

  closing() {
    const names = Object.entries(this.view.names).sort(([, a], [, b]) => (a < b ? -1 : 1));
    const pick = h(
      "select",
      {
        id: "close-list",
        "aria-label": "Province to keep out of",
        onchange: () => this.close(pick.value),
      },
      h("option", { value: "" }, "or from the list…"),
      ...names.map(([code, name]) =>
        h("option", { value: code, disabled: code in cursor.closed }, name),
      ),
    );
    const button = h(
      "button",
      {
        id: "close",
        "aria-pressed": String(cursor.picking),
        onclick: () => {
          cursor.picking = !cursor.picking;
          this.redraw();
          if (cursor.picking) this.pick();
        },
      },
      "Keep out of a province (DMZ)",
    );
    return h("div", { class: "row" }, button, pick);
  }

  // What the offer has so far, each with a button that takes it out.
  draft() {
    const drop = (label, remove) =>
      h(
        "button",
        {
          class: "drop",
          title: "Take out",
          "aria-label": `Take out: ${label}`,
          onclick: () => {
            remove();
            this.redraw();
          },
        },
        "✕",
      );
    const lines = [];
    if (cursor.peace)
      lines.push(
        h(
          "li",
          {},
          h("span", {}, "peace between you"),
          drop("peace", () => {
            cursor.peace = false;
          }),
        ),
      );
    for (const [support, { words, order }] of Object.entries(cursor.support))
      lines.push(
        h(
          "li",
          {},
          h("span", {}, words, h("small", {}, `for ${order}`)),
          drop(words, () => delete cursor.support[support]),
        ),
      );
    for (const [code, who] of Object.entries(cursor.closed)) {
      const select = h(
        "select",
        {
          id: `closed-${code}`,
          "aria-label": `Who keeps out of ${this.view.names[code]}`,
          onchange: () => {
            cursor.closed[code] = select.value;
            this.redraw();
          },
        },
        ...Object.entries(WHO).map(([key, words]) =>
          h("option", { value: key, selected: key === who }, words),
        ),
      );
      lines.push(
        h(
          "li",
          {},
          h("span", {}, select, ` keep out of ${this.view.names[code]}`),
          drop(this.view.names[code], () => delete cursor.closed[code]),
        ),
      );
    }
    return lines;
  }

  send() {
    const partner = this.view.talk.partners.find(({ power }) => power === cursor.partner);
    const theirs = new Set(partner.help.map(({ support }) => support));
    const terms = {
      ours: new Set(),
      theirs: new Set(),
      we_keep_out: [],
      they_keep_out: [],
      peace: cursor.peace,
    };
    for (const { support, order } of Object.values(cursor.support)) {
      const helps = theirs.has(support);
      terms[helps ? "theirs" : "ours"].add(support);
      terms[helps ? "ours" : "theirs"].add(order);
    }
    for (const [code, who] of Object.entries(cursor.closed)) {
      if (who !== "they") terms.we_keep_out.push(code);
      if (who !== "we") terms.they_keep_out.push(code);
    }
    this.sendTo("/api/offer", {
      to: cursor.partner,
      terms: { ...terms, ours: [...terms.ours], theirs: [...terms.theirs] },
    });
  }
}
