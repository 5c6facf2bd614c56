// The page of a game: asks the server how it stands, shows it, and sends what is clicked.

import { Board } from "/board.js";
import { OrderPanel } from "/orders.js";
import { TalkPanel } from "/talk.js";

const $ = (id) => document.getElementById(id);
const LONGEST = 90000; // bytes of what can be pasted
const EXAMPLE = "Fall 1901\nFrance: A Bur, A Spa, F MAO\nGermany: A Mun, F Hol, A Kie";
const WAIT = 1000; // milliseconds between questions to the server

const state = {
  token: location.hash.slice(1),
  view: null,
  shown: null, // number of the phase looked at; null: now
  playing: false, // watching: go on by itself
  busy: "", // what is being sent
  hint: null,
  hinting: false,
};

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

export function nice(power) {
  return power.charAt(0) + power.slice(1).toLowerCase();
}

// --- Asking the server ----------------------------------------------------------------------------

async function ask(path, body) {
  const options = { headers: { "X-Play-Token": state.token }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer, found;
  const slow = setInterval(tellWaiting, WAIT); // a player that takes its time holds the game up
  try {
    answer = await fetch(path, options);
    found = await answer.json();
  } catch {
    throw Object.assign(new Error("The connection to the game is lost. Trying again…"), { lost: true });
  } finally {
    clearInterval(slow);
  }
  if (!answer.ok) throw Object.assign(new Error(found.error), { status: answer.status });
  return found;
}

async function tellWaiting() {
  const options = { headers: { "X-Play-Token": state.token }, cache: "no-store" };
  try {
    const { asking } = await (await fetch("/api/waiting", options)).json();
    const names = Object.entries(asking).map(([name, powers]) => `${name} (${powers.map(nice).join(", ")})`);
    if (names.length) say(`Waiting for ${names.join(", ")}…`);
  } catch {
    // whoever asked says that the connection is lost
  }
}

// Send something; what was lost on the way is sent again, which the server counts once. Returns
// why it was refused, or nothing.
async function send(path, body) {
  const content = { step: state.view.step, ...body }, key = path + JSON.stringify(content);
  if (state.busy === key) return ""; // clicked twice
  while (state.busy) await sleep(50);
  state.busy = key;
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        take(await ask(path, content));
        connected();
        return "";
      } catch (error) {
        if (!error.lost || attempt >= 30) throw error;
        connected(error.message);
        await sleep(WAIT);
      }
    }
  } catch (error) {
    if (error.status === 409) await refresh();
    state.playing = false;
    say(sentence(error.message), true);
    return sentence(error.message);
  } finally {
    state.busy = "";
    draw();
  }
}

const sleep = (time) => new Promise((done) => setTimeout(done, time));
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.…!?]$/.test(text) ? "" : ".");

async function refresh() {
  const since = state.view ? `?since=${state.view.revision}` : "";
  const found = await ask(`/api/game${since}`);
  connected();
  if (!found.unchanged) take(found);
}

async function watchServer() {
  for (;;) {
    try {
      if (!state.busy) await refresh();
      if (state.playing && state.view.can_go_on && !state.busy) await send("/api/next", {});
    } catch (error) {
      connected(sentence(error.message));
      if (error.status === 401) return;
    }
    await sleep(WAIT);
  }
}

function connected(trouble = "") {
  $("connection").textContent = trouble;
  $("connection").hidden = !trouble;
}

// --- What is new ----------------------------------------------------------------------------------

function take(view) {
  const before = state.view;
  state.view = view;
  const played = view.phases.length - 1;
  const was = before ? before.phases.length - 1 : played;
  if (!before || view.step !== before.step) {
    panel.begin(view);
    state.hint = null;
    say("");
    talk.begin(view);
    if (before && played > was) state.shown = was; // first see what came of the orders
    else state.shown = null;
    if (view.over) state.playing = false;
    if (state.playing && played > 0) state.shown = played - 1;
  } else {
    if (before.given && !view.given && view.talk && !state.busy)
      say("A deal asks for other orders than those that you gave: please order again.", true);
    panel.update(view);
    talk.update(view);
  }
  draw();
  drawLegend(view);
}

function say(text, bad = false) {
  $("say").textContent = text;
  $("say").classList.toggle("bad", bad);
}

// --- Drawing --------------------------------------------------------------------------------------

const pictures = new Map(); // "step phase" -> picture of a phase that was played
let drawing = 0;

async function picture() {
  const { view, shown } = state;
  if (shown === null) {
    if (view.decision && !view.given) return ask("/api/draft", { orders: panel.orders() });
    return ask("/api/board");
  }
  const key = pictureKey();
  if (!pictures.has(key)) {
    if (pictures.size > 300) pictures.clear();
    pictures.set(key, await ask(`/api/board?phase=${shown}`));
  }
  return pictures.get(key);
}

const pictureKey = () => `${state.view.step} ${state.shown}`;

async function draw() {
  const { view } = state;
  if (!view) return;
  const number = ++drawing;
  drawFrame(view);
  try {
    const found = await picture();
    if (number !== drawing) return; // something newer is being drawn
    board.show(found.svg);
    board.mark(state.shown === null ? talk.marks() ?? panel.marks() : {});
    board.lock(state.shown === null ? (view.decision?.units ?? []).filter(({ bound }) => bound.length).map(({ unit }) => unit) : []);
    drawResults(found);
  } catch (error) {
    if (error.lost) connected(error.message);
    else say(sentence(error.message), true);
  }
}

// Draw all that stands beside the board; who worked at something there goes on working there.
function drawFrame(view) {
  const at = document.activeElement, inside = $("right").contains(at), id = at?.id;
  drawParts(view);
  if (!inside || $("right").contains(document.activeElement)) return;
  const found = (id && $(id)) || panel.next() || ["continue", "withdraw", "next"].map($).find(Boolean);
  found?.focus({ preventScroll: true });
}

function drawParts(view) {
  const now = view.phases.length - 1;
  const at = state.shown ?? now;
  const looking = state.shown !== null;
  $("title").textContent = looking ? phaseTitle(view.phases[at]) : view.title;
  const turn = view.started && view.decision && !view.given;
  document.title = `${turn ? "Your turn · " : ""}${view.title} · Diplomacy`;
  $("who").textContent = !view.started
    ? ""
    : view.you
      ? `You play ${nice(view.you)} on map ${view.map}; ${view.victory} centers win` +
        (view.teams ? `, teams ${view.teams}` : "") +
        (view.last_year ? `, at the latest in ${view.last_year} it is over.` : ".")
      : `You are watching a game on map ${view.map}.`;
  $("timeline").hidden = !view.started;
  $("slider").max = now;
  $("slider").value = at;
  $("slider").setAttribute("aria-valuetext", phaseTitle(view.phases[at]));
  for (const id of ["first", "back"]) $(id).disabled = at === 0;
  for (const id of ["forth", "last"]) $(id).disabled = at === now;
  document.body.classList.toggle("looking", looking);

  if (!view.started) drawSetup(view);
  else if (looking) drawContinue(view, at, now);
  else if (view.over) drawEnd(view);
  else if (view.decision && !view.given) panel.draw($("panel"), state.hint);
  else drawWaiting(view);
  if (looking) $("talk").replaceChildren();
  else talk.draw($("talk"), view);
  drawVotes(view);
  drawTools(view);
  drawPowers(view);
  drawMore(view);
}

function phaseTitle(name) {
  if (name === "COMPLETED") return "Game over";
  const season = { S: "Spring", F: "Fall", W: "Winter" }[name[0]];
  const kind = { M: "movement", R: "retreats", A: "adjustments" }[name.at(-1)];
  return `${season} ${name.slice(1, -1)}, ${kind}`;
}

function drawSetup(view) {
  $("powers").replaceChildren();
  if (!view.host) {
    $("panel").replaceChildren(h("p", {}, "Who started the game still chooses who plays what."));
    return;
  }
  if ($("panel").querySelector("#setup")?.dataset.map === view.map) return;
  const rows = view.powers.map(({ power }, number) => {
    const choose = h("select", { id: `seat-${power}`, name: power });
    choose.append(h("option", { value: "me" }, "I play"), h("option", { value: "guest" }, "somebody else, by link"));
    for (const name of view.choices) choose.append(h("option", { value: name, title: name }, breakable(name)));
    const players = view.opponents;
    choose.value = number === 0 ? "me" : players[(number - 1) % players.length];
    choose.addEventListener("change", () => {
      if (choose.value !== "me") return;
      for (const other of $("panel").querySelectorAll("select"))
        if (other !== choose && other.value === "me") other.value = players[0];
    });
    return h("div", { class: "row" }, h("label", { for: choose.id }, swatch(power), nice(power)), choose);
  });
  const maps = h("select", { id: "map", onchange: () => send("/api/map", { map: maps.value }) },
    ...view.maps.map((name) => h("option", { value: name, selected: name === view.map }, name)));
  $("panel").replaceChildren(
    h("form", { id: "setup", "data-map": view.map, onsubmit: start },
      view.maps.length > 1 ? h("div", { class: "row" }, h("label", { for: "map" }, "Map"), maps) : null,
      h("h2", {}, "Who plays?"), ...rows,
      h("p", { class: "quiet" }, "Nobody plays? Then you watch. A power for somebody else gets a link of its own."),
      h("button", { class: "main", id: "start" }, "Begin")),
    h("details", { id: "paste" }, h("summary", {}, "Begin from another position"),
      h("label", { for: "pasted" }, "Units or orders by power, or a saved game:"),
      h("textarea", { id: "pasted", rows: 8, spellcheck: "false", placeholder: EXAMPLE }),
      h("p", { id: "taken", role: "status" }),
      h("button", { id: "take", onclick: paste }, "Take this position")),
  );
}

async function paste() {
  const text = $("pasted").value, told = $("taken");
  const tooLong = "This is too long to be pasted: save it as a file and start with play --resume FILE.";
  const refused = new Blob([text]).size > LONGEST ? tooLong : await send("/api/paste", { text });
  say("");
  told.classList.toggle("bad", Boolean(refused));
  told.textContent = refused || ["This is the position now.", ...state.view.notes.map(sentence)].join(" ");
}

function start(event) {
  event.preventDefault();
  const seats = Object.fromEntries(new FormData(event.target));
  send("/api/seats", { seats });
}

function drawContinue(view, at, now) {
  const next = at + 1 < now ? `Next: ${phaseTitle(view.phases[at + 1])}` : view.over ? "How it ended" : "Go on playing";
  const pause = () => { state.playing = false; draw(); };
  $("panel").replaceChildren(
    state.playing
      ? h("button", { class: "main", id: "play", "aria-pressed": "true", onclick: pause }, "Pause")
      : h("button", { class: "main", id: "continue", onclick: () => look(at + 1) }, next),
    h("div", { id: "results" }),
  );
  if (pictures.has(pictureKey())) drawResults(pictures.get(pictureKey()));
}

function drawResults(found) {
  const place = $("results");
  if (!place) return;
  const lines = state.view.powers.map(({ power }) => {
    const orders = found.orders.filter((order) => order.power === power);
    if (!orders.length) return null;
    // A unit that is dislodged may have done what it was ordered to, such as to support.
    const items = orders.map(({ text, unit, words, result, said }) =>
      h("li", { class: result?.some((word) => word !== "dislodged") ? "failed" : "", title: text },
        unit ? h("b", {}, unit) : null, `${unit ? ": " : ""}${words}`, said ? h("em", {}, ` ${said}`) : null));
    return h("div", {}, h("h3", {}, swatch(power), nice(power)), h("ul", {}, ...items));
  });
  const talk = found.talk.map(([sender, recipient, words]) => h("li", {}, h("b", {}, nice(sender)), recipient ? ` to ${nice(recipient)}: ${words}` : ` ${words}`));
  place.replaceChildren(h("h2", {}, `What happened in ${found.title}`), ...lines.filter(Boolean),
    talk.length ? h("div", { id: "said" }, h("h3", {}, "What you said and heard"), h("ul", {}, ...talk)) : "");
}

function drawEnd(view) {
  const names = view.winners.map(nice);
  const won = names.length === 1 ? `${names[0]} wins.` : `${names.join(" and ")} win together.`;
  const how = view.agreed ? "A draw was agreed by" : "The years are over: a draw between";
  const text = view.draw ? `${how} ${names.join(", ")}.`
    : view.by_concession ? `${won} All others have conceded.` : won;
  $("panel").replaceChildren(h("h2", { id: "end" }, text));
}

function drawWaiting(view) {
  const parts = [];
  if (view.trouble) parts.push(h("p", { class: "bad" }, sentence(view.trouble)));
  if (view.given) {
    const list = view.given.map((text) => h("li", { title: text }, panel.words(text)));
    if (!list.length) list.push(h("li", { class: "quiet" }, "None: what has no order is decided by the rules."));
    parts.push(h("h2", {}, "Your orders are given"), h("ul", {}, ...list));
    if (view.waiting.length)
      parts.push(h("button", { id: "withdraw", onclick: () => send("/api/withdraw", {}) }, "Change them"));
  }
  if (view.waiting.length) parts.push(h("p", { class: "waiting" }, `Waiting for ${view.waiting.map(nice).join(", ")}…`));
  else if (!view.can_go_on) parts.push(h("p", {}, "The game waits for who started it."));
  if (view.can_go_on)
    parts.push(
      h("p", {}, view.you ? "You have nothing to order." : "Nobody at the board has anything to order."),
      h("div", { class: "buttons" },
        h("button", { class: "main", id: "next", disabled: Boolean(state.busy), onclick: () => send("/api/next", {}) }, "Next phase"),
        h("button", { id: "play", "aria-pressed": String(state.playing), onclick: () => { state.playing = !state.playing; draw(); } },
          state.playing ? "Pause" : "Play on")),
    );
  $("panel").replaceChildren(...parts);
}

// A vote for a draw and giving up: both are said in a phase, beside the orders.
function drawVotes(view) {
  if (state.shown !== null || !view.can_concede) { $("votes").replaceChildren(); return; }
  const parts = [], { votes } = view;
  if (votes) {
    const text = `${votes.given} of ${votes.needed} powers have voted for one in this phase. With all of them the game ends as it stands, without its orders.`;
    parts.push(h("h2", {}, "A draw?"), h("p", {}, text),
      h("button", { id: "vote", "aria-pressed": String(votes.mine), disabled: Boolean(state.busy), onclick: () => send("/api/vote", { draw: !votes.mine }) },
        votes.mine ? "Take my vote back" : "Vote for a draw"));
  }
  const open = $("votes").querySelector("details")?.open;
  parts.push(h("details", { id: "give-up", open }, h("summary", {}, "Give up"),
    h("p", {}, "Your units hold from now on, and you have lost. Others may play on."),
    h("button", { id: "concede", disabled: Boolean(state.busy), onclick: () => send("/api/concede", {}) }, `Concede as ${nice(view.you)}`)));
  $("votes").replaceChildren(...parts);
}

function drawTools(view) {
  const tools = [];
  const deciding = view.started && state.shown === null && view.decision && !view.given;
  if (deciding && view.you)
    tools.push(h("button", { id: "hint", "aria-pressed": String(state.hinting), disabled: !view.can_hint, onclick: toggleHint,
      title: view.can_hint ? "What the trained policy would order" : "Only a trained policy gives hints: play against a checkpoint" },
      state.hinting ? "Hide hint" : "Hint"));
  if (view.host && view.started)
    tools.push(h("button", { id: "takeback", disabled: !view.can_take_back || Boolean(state.busy), onclick: () => send("/api/back", {}),
      title: "Go back to your last orders" }, "Take back"));
  if (view.started) tools.push(h("button", { id: "download", onclick: download, title: "The game as a file to replay or share" }, "Download game"));
  if (state.shown !== null) tools.push(h("button", { id: "now", onclick: () => look(view.phases.length - 1) }, "Skip to now"));
  $("tools").replaceChildren(h("div", { class: "buttons" }, ...tools));
  if (deciding && state.hinting && !state.hint) fetchHint();
}

function drawPowers(view) {
  if (!view.started) return;
  const rows = view.powers.map((p) =>
    h("tr", { class: p.alive ? "" : "dead" },
      h("th", { scope: "row" }, swatch(p.power), nice(p.power)),
      h("td", {}, p.power === view.you ? h("b", {}, "you") : p.player === "host" ? "the host" : p.player === "guest" ? "a guest" : h("span", { title: p.player }, breakable(p.player))),
      h("td", {}, `${p.centers}`), h("td", {}, `${p.units}`),
      h("td", {}, !p.alive ? "eliminated" : p.conceded ? "conceded" : view.over || !p.person ? "" : p.ready ? "ready" : "to order")));
  const head = h("tr", {}, ...["Power", "Player", "Centers", "Units", ""].map((text) => h("th", { scope: "col" }, text)));
  $("powers").replaceChildren(h("table", {}, h("caption", {}, "Powers now"), h("thead", {}, head), h("tbody", {}, ...rows)));
}

function drawMore(view) {
  if (!view.host || !view.started) { $("more").replaceChildren(); return; }
  const key = JSON.stringify(view.links);
  if ($("more").dataset.key === key) return; // keep it open
  $("more").dataset.key = key;
  const links = Object.entries(view.links).map(([who, token]) => {
    const address = `${location.origin}/#${token}`;
    const field = h("input", { readonly: true, value: address, id: `link-${who}`, onfocus: (event) => event.target.select() });
    return h("div", { class: "row" }, h("label", { for: field.id }, who === "watch" ? "To watch" : nice(who)), field,
      h("button", { onclick: () => { field.select(); navigator.clipboard?.writeText(address); } }, "Copy"));
  });
  $("more").replaceChildren(
    h("details", { open: links.length > 1 }, h("summary", {}, "Links and file"), ...links,
      h("p", { class: "quiet" }, `Each link is one seat: give it only to who shall sit there. The game is saved after every step in ${view.file}.`)));
}

// What the signs on the board mean; drawn in the colors of the game's map.
async function drawLegend(view) {
  const place = $("legend");
  if (place.dataset.map === view.map) return;
  place.dataset.map = view.map;
  try {
    const lines = (await ask("/api/signs")).map(([sign, meaning]) => {
      const parsed = new DOMParser().parseFromString(sign, "image/svg+xml").documentElement;
      return h("li", {}, document.importNode(parsed, true), h("span", {}, meaning));
    });
    place.replaceChildren(h("details", {}, h("summary", {}, "What the signs on the board mean"), h("ul", {}, ...lines)));
  } catch {
    delete place.dataset.map; // asked again with the next change
  }
}

export function swatch(power) {
  const holder = h("span", { class: "dip-board swatch", "data-theme": "auto", "aria-hidden": "true" });
  holder.style.backgroundColor = `var(--p-${power})`;
  return holder;
}

// A player's name, which may go on in another line after a negotiator or a folder.
function breakable(name) {
  return name.replace(/[+/]/g, "$&\u200b");
}

// --- What is clicked ------------------------------------------------------------------------------

function look(number) {
  const now = state.view.phases.length - 1;
  const at = Math.max(0, Math.min(now, number));
  state.shown = at === now ? null : at;
  if (state.shown !== null) state.playing = false;
  draw();
}

async function toggleHint() {
  state.hinting = !state.hinting;
  if (state.hinting) await fetchHint();
  draw();
}

let fetchingHint = false;

async function fetchHint() {
  if (fetchingHint) return;
  fetchingHint = true;
  try {
    const found = await ask("/api/hint");
    if (found.step === state.view.step) state.hint = found;
  } catch (error) {
    state.hinting = false;
    say(sentence(error.message), true);
  } finally {
    fetchingHint = false;
    draw();
  }
}

async function download() {
  try {
    const found = await ask("/api/saved");
    const address = URL.createObjectURL(new Blob([JSON.stringify(found) + "\n"], { type: "application/jsonl" }));
    h("a", { href: address, download: `${state.view.map}-${state.view.phase}.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  } catch (error) {
    say(sentence(error.message), true);
  }
}

const board = new Board($("board"), (province) => {
  const { view } = state;
  if (state.shown !== null || !view) return;
  if (talk.picking) talk.picked(province);
  else if (view.decision && !view.given) panel.clicked(province);
});
const panel = new OrderPanel({
  say,
  redraw: draw,
  submit: (orders) => send("/api/orders", { orders }),
  hint: () => (state.hinting ? state.hint : null),
});
const talk = new TalkPanel({ say, redraw: draw, send, orders: () => state.view.given ?? panel.orders() });

// The second click of a double click would be meant for what stood there before the first.
$("right").addEventListener("click", (event) => {
  if (event.detail < 2 || !event.target.closest("#panel button, #talk button, #votes button, #tools button")) return;
  event.stopPropagation();
  event.preventDefault();
}, true);

const ZOOMS = [1, 1.5, 2, 3, 4, 6];
for (const [id, step] of [["zoom-in", 1], ["zoom-out", -1]])
  $(id).addEventListener("click", () => {
    const at = ZOOMS.indexOf(board.zoom) + step;
    board.enlarge(ZOOMS[at]);
    $("zoom-out").disabled = at === 0;
    $("zoom-in").disabled = at === ZOOMS.length - 1;
  });
$("first").addEventListener("click", () => look(0));
$("back").addEventListener("click", () => look((state.shown ?? state.view.phases.length - 1) - 1));
$("forth").addEventListener("click", () => look((state.shown ?? state.view.phases.length - 1) + 1));
$("last").addEventListener("click", () => look(state.view.phases.length - 1));
$("slider").addEventListener("input", (event) => look(Number(event.target.value)));
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || !state.view?.started) return;
  if (event.target.closest("input, select, textarea")) return;
  const at = state.shown ?? state.view.phases.length - 1;
  const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: state.view.phases.length - 1 };
  if (event.key in moves) look(moves[event.key]);
  else if (event.key === "Escape") {
    talk.picking = false;
    panel.unselect();
  }
  else return;
  event.preventDefault();
});
window.addEventListener("hashchange", () => location.reload());

if (state.token) watchServer();
else say("This page needs the whole link that was printed when the game began, with what follows the #.", true);
