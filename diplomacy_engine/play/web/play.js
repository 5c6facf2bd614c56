// The page of a game: asks the server how it stands, shows it, and sends what is clicked.

import { OrderPanel } from "/orders.js";
import {
  $,
  Bar,
  Board,
  Chart,
  allOrders,
  breakable,
  h,
  legend,
  listen,
  nice,
  orderLists,
  sentence,
  spoken,
  swatch,
  theme,
} from "/page.js";
import { Review } from "/review.js";
import { TalkPanel } from "/talk.js";

const LONGEST = 90000; // bytes of what can be pasted
const EXAMPLE = "Fall 1901\nFrance: A Bur, A Spa, F MAO\nGermany: A Mun, F Hol, A Kie";
const WAIT = 1000; // milliseconds between questions to the server

const address = () => location.hash.slice(1).split("/"); // the token, and the phase linked to
const state = {
  token: address()[0],
  view: null,
  power: null, // whose orders are given, where one person gives everybody's
  shown: null, // number of the phase looked at; null: now
  playing: false, // watching: go on by itself
  busy: "", // what is being sent
  hint: null,
  outlook: null,
  compared: "", // own orders of the outlook
  hinting: false,
  review: null,
};

// --- Asking the server ---------------------------------------------------------------------------

const headers = () => ({
  "X-Play-Token": state.token,
  ...(state.power ? { "X-Play-Power": state.power } : {}),
});

async function ask(path, body) {
  const options = { headers: headers(), cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer, found;
  const waiting = new AbortController();
  const slow = setInterval(tellWaiting, WAIT, waiting.signal); // a player may hold the game up
  try {
    answer = await fetch(path, options);
    found = await answer.json();
  } catch {
    throw Object.assign(new Error("The connection to the game is lost. Trying again…"), {
      lost: true,
    });
  } finally {
    waiting.abort(); // an answer from now on comes too late
    clearInterval(slow);
  }
  if (!answer.ok) throw Object.assign(new Error(named(found.error)), { status: answer.status });
  return found;
}

// A message with the powers' names as the page writes them: `France`, not `FRANCE`.
const named = (text) =>
  (state.view?.powers ?? []).reduce(
    (told, { power }) => told.replace(new RegExp(`\\b${power}\\b`, "g"), nice(power)),
    text,
  );

async function tellWaiting(signal) {
  const options = { headers: headers(), cache: "no-store", signal };
  try {
    const { asking } = await (await fetch("/api/waiting", options)).json();
    const names = Object.entries(asking).map(
      ([name, powers]) => `${name} (${powers.map(nice).join(", ")})`,
    );
    if (names.length) say(`Waiting for ${names.join(", ")}…`);
  } catch {
    // it came too late, or whoever asked says that the connection is lost
  }
}

// Send something; what was lost on the way is sent again, which the server counts once. Returns
// why it was refused, or nothing.
async function send(path, body) {
  const content = { step: state.view.step, ...body },
    key = path + JSON.stringify(content);
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
    await sleep(state.playing ? Number(bar.speed.value) : WAIT);
  }
}

function connected(trouble = "") {
  $("connection").textContent = trouble;
  $("connection").hidden = !trouble;
}

// --- What is new ---------------------------------------------------------------------------------

function take(view) {
  const before = state.view;
  state.view = view;
  if (!view.started) pictures.clear(); // another game may be pasted
  const played = view.phases.length - 1;
  const was = before ? before.phases.length - 1 : played;
  if (!before || view.step !== before.step) {
    panel.begin(view);
    state.hint = state.outlook = null;
    showReview(null);
    say("");
    talk.begin(view);
    if (before && played > was)
      state.shown = was; // first see what came of the orders
    else state.shown = before ? null : phaseNumber(address()[1]);
    if (before) scrollTo(0, 0); // what is new stands beside the board, or below it
    if (view.over) state.playing = false;
    if (state.playing && played > 0) state.shown = played - 1;
    fetched.past = null;
  } else {
    if (before.given && !view.given && view.talk && !state.busy)
      say("A deal rules out an order you gave. Please give your orders again.", true);
    if (JSON.stringify(before.decision) !== JSON.stringify(view.decision))
      state.hint = state.outlook = null; // a deal was made, or it is another power's
    if (before.you === view.you) panel.update(view);
    else panel.begin(view); // in a sandbox the next power orders
    talk.update(view);
  }
  draw();
}

const say = (text, bad = false, province = null) => board.say(text, bad, province);

// --- Drawing -------------------------------------------------------------------------------------

const pictures = new Map(); // "step phase" -> a phase that was played
// The map's facts, all orders, at whom the board looks.
const fetched = { map: null, past: null, looked: "" };
let drawing = 0;

async function phase() {
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
    if (fetched.map?.name !== view.map || fetched.game !== view.game) {
      Object.assign(fetched, { map: await ask("/api/map"), game: view.game });
      legend($("legend"), fetched.map);
    }
    board.setMap(fetched.map);
    const now = state.shown === null;
    board.mark(now ? (talk.marks() ?? panel.marks()) : {});
    board.showFlyout(...(now && !talk.picking ? panel.flyout() : ["", []]));
    const found = await phase();
    if (number !== drawing) return; // something newer is being drawn
    board.show(found, found.title);
    board.lock(
      now
        ? (view.decision?.units ?? []).filter(({ bound }) => bound.length).map(({ unit }) => unit)
        : [],
    );
    board.layer(
      "hinted",
      now && state.hinting && view.decision && !view.given ? (state.hint?.marks ?? "") : "",
    );
    lookAtOwn(view);
    drawResults(found);
    drawPowers(view);
  } catch (error) {
    if (error.lost) connected(error.message);
    else say(sentence(error.message), true);
  }
}

// The board begins where one's own units are; who watches sees all of it.
function lookAtOwn(view) {
  const who = `${view.game} ${view.you}`;
  if (!view.you || !view.started || fetched.looked === who) return;
  fetched.looked = who;
  board.begin(view.powers.find(({ power }) => power === view.you).provinces);
}

// Draw all that stands beside the board; who worked at something there goes on working there.
function drawFrame(view) {
  const at = document.activeElement,
    inside = $("right").contains(at),
    id = at?.id;
  drawParts(view);
  if (!inside || $("right").contains(document.activeElement)) return;
  const found =
    (id && $(id)) || panel.next() || ["continue", "withdraw", "next"].map($).find(Boolean);
  found?.focus({ preventScroll: true });
}

function drawParts(view) {
  const now = view.phases.length - 1;
  const at = state.shown ?? now;
  const looking = state.shown !== null;
  $("title").textContent = looking ? phaseTitle(view.phases[at]) : view.title;
  const turn = view.started && view.decision && !view.given;
  notice.tell(Boolean(turn), view.title);
  document.title = `${turn ? "Your turn · " : ""}${view.title} · Diplomacy`;
  $("who").textContent = view.started ? whoPlays(view) : "";
  $("bar").hidden = !view.started;
  bar.show(view.phases.map(phaseTitle), at);
  $("chart").hidden = !view.started;
  chart.set(view.chart, view.sides, view.phases.length);
  chart.show(at);
  if (values.svg) values.show(at);
  review.show(at);
  document.body.classList.toggle("looking", looking);
  document.body.classList.toggle("deciding", Boolean(turn && !looking));
  history.replaceState(null, "", `#${state.token}${looking ? `/${view.phases[at]}` : ""}`);

  $("foot").replaceChildren();
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
  drawPast(view);
  drawShare(view);
  drawMore(view);
}

function whoPlays(view) {
  const parts = [
    view.sandbox
      ? "You order for all"
      : view.you
        ? `You play ${nice(view.you)}`
        : "You are watching",
    view.map,
    `${view.victory} centers win`,
  ];
  if (view.teams) parts.push(`teams ${view.teams}`);
  if (view.last_year) parts.push(`until ${view.last_year}`);
  return parts.join(" · ");
}

const phaseShown = () => state.view.phases[state.shown ?? state.view.phases.length - 1];

function phaseTitle(name) {
  if (name === "COMPLETED") return "Game over";
  const season = { S: "Spring", F: "Fall", W: "Winter" }[name[0]];
  const kind = { M: "movement", R: "retreats", A: "adjustments" }[name.at(-1)];
  return `${season} ${name.slice(1, -1)}, ${kind}`;
}

function drawSetup(view) {
  $("powers").replaceChildren();
  if (!view.host) {
    $("panel").replaceChildren(h("p", {}, "The host is still choosing who plays which power."));
    return;
  }
  const key = `${view.map} ${view.settings.press} ${view.file}`,
    form = $("setup");
  if (form?.dataset.key === key) return;
  const old = form?.dataset.map === view.map ? form.elements : {}; // there is another talk
  const chosen = old.sandbox ? Object.fromEntries(new FormData(form)) : view.chosen;
  const players = () =>
    view.choices.map((name) =>
      h(
        "option",
        { value: name, title: name },
        breakable(name) + (view.meanings[name] ? `: ${view.meanings[name]}` : ""),
      ),
    );
  const seats = () => [...$("setup").querySelectorAll("select[name]")];
  const all = h(
    "select",
    {
      id: "seat-others",
      disabled: old.sandbox?.checked,
      onchange: () =>
        seats().forEach((one) => {
          if (!["me", "guest"].includes(one.value)) one.value = all.value;
        }),
    },
    ...players(),
  );
  const usual = view.opponents;
  all.value = usual[0];
  const rows = view.powers.map(({ power }, number) => {
    const before = old[power]?.dataset.before;
    const choose = h("select", { id: `seat-${power}`, name: power, "data-before": before });
    choose.append(
      h("option", { value: "me" }, "I play"),
      h("option", { value: "guest" }, "Somebody else (by link)"),
      ...players(),
    );
    if (["me", "guest", ...view.choices].includes(chosen[power])) choose.value = chosen[power];
    else if (number || chosen[power]) choose.value = usual[Math.max(number - 1, 0) % usual.length];
    choose.addEventListener("change", () => {
      if (choose.value !== "me" || $("sandbox").checked) return;
      for (const other of seats())
        if (other !== choose && other.value === "me") other.value = all.value;
    });
    return h(
      "div",
      { class: "row" },
      h("label", { for: choose.id }, swatch(power), nice(power)),
      choose,
    );
  });
  const maps = h(
    "select",
    { id: "map", onchange: () => chooseMap(maps.value) },
    ...view.maps.map((name) => h("option", { value: name, selected: name === view.map }, name)),
  );
  $("panel").replaceChildren(
    h(
      "form",
      { id: "setup", "data-key": key, "data-map": view.map, onsubmit: start },
      view.maps.length > 1
        ? h("div", { class: "row" }, h("label", { for: "map" }, "Map"), maps)
        : null,
      h("h2", {}, "Who plays?"),
      h("div", { class: "row" }, h("label", { for: "seat-others" }, "All others"), all),
      ...rows,
      h(
        "label",
        { class: "row" },
        h("input", {
          type: "checkbox",
          id: "sandbox",
          checked: old.sandbox?.checked,
          onchange: fillSandbox,
        }),
        "Sandbox: I give everybody's orders",
      ),
      h(
        "p",
        { class: "quiet" },
        "If you choose no power for yourself, you watch. Each guest gets a link.",
      ),
      settings(view),
      h("button", { class: "main", id: "start" }, "Begin"),
    ),
    h(
      "details",
      { id: "paste" },
      h("summary", {}, "Begin from another position"),
      h("label", { for: "pasted" }, "Units or orders by power, or a saved game:"),
      h("textarea", { id: "pasted", rows: 8, spellcheck: "false", placeholder: EXAMPLE }),
      h("p", { id: "taken", role: "status" }),
      h("button", { id: "take", onclick: paste }, "Use this position"),
    ),
  );
}

function settings(view) {
  const { press, binding, hints, draws_after: draws } = view.settings;
  const talk = h(
    "select",
    { id: "set-talk", onchange: sendSettings },
    ...Object.entries({
      "": "none",
      mutual: "peace with those who want it, too",
      offers: "deals of any kind",
    }).map(([value, name]) => h("option", { value, selected: value === (press ?? "") }, name)),
  );
  const year = (id, label, value, empty) =>
    h(
      "div",
      { class: "row" },
      h("label", { for: id }, label),
      h("input", {
        type: "number",
        id,
        min: view.settings.begins,
        max: 9999,
        value,
        placeholder: empty,
      }),
    );
  return h(
    "details",
    { id: "settings", open: $("settings")?.open },
    h("summary", {}, "Settings"),
    year("set-last", "Last year", view.last_year, "no limit"),
    year("set-draws", "Votes for a draw from", draws, "nobody votes"),
    h("div", { class: "row" }, h("label", { for: "set-talk" }, "Talk"), talk),
    h(
      "label",
      { class: "row" },
      h("input", {
        type: "checkbox",
        id: "set-free",
        checked: !binding,
        disabled: !press,
        onchange: sendSettings,
      }),
      "Deals may be broken",
    ),
    h(
      "div",
      { class: "row" },
      h("label", { for: "set-seed" }, "Seed"),
      h("input", { type: "number", id: "set-seed", min: 0, placeholder: "another every time" }),
    ),
    h(
      "label",
      { class: "row" },
      h("input", { type: "checkbox", id: "set-hints", checked: hints }),
      "Hints from a trained policy",
    ),
  );
}

function sendSettings() {
  const number = (id) => ($(id).value === "" ? null : Number($(id).value));
  return send("/api/settings", {
    last_year: number("set-last"),
    draws_after: number("set-draws"),
    press: $("set-talk").value || null,
    binding: !$("set-free").checked,
    hints: $("set-hints").checked,
    seed: number("set-seed"),
  });
}

async function chooseMap(map) {
  say(`Loading map ${map}…`);
  if (!(await send("/api/map", { map }))) say("");
}

function fillSandbox({ target }) {
  $("seat-others").disabled = target.checked;
  for (const choose of $("setup").querySelectorAll("select[name]")) {
    if (target.checked) choose.dataset.before = choose.value;
    choose.value = target.checked ? "me" : choose.dataset.before;
  }
}

async function paste() {
  const text = $("pasted").value,
    told = $("taken");
  const tooLong = "This is too long to paste. Save it as a file and start with: play --resume FILE";
  const refused = new Blob([text]).size > LONGEST ? tooLong : await send("/api/paste", { text });
  say("");
  told.classList.toggle("bad", Boolean(refused));
  told.textContent =
    refused ||
    ["The game will begin from this position.", ...state.view.notes.map(sentence)].join(" ");
}

async function start(event) {
  event.preventDefault();
  const seats = Object.fromEntries(new FormData(event.target));
  say("Preparing the players…");
  if (!(await sendSettings()) && !(await send("/api/seats", { seats }))) say("");
  scrollTo(0, 0); // to the board
}

function drawContinue(view, at, now) {
  const next =
    at + 1 < now
      ? `Next: ${phaseTitle(view.phases[at + 1])}`
      : view.over
        ? "How it ended"
        : "Continue";
  const pause = () => {
    state.playing = false;
    draw();
  };
  $("foot").replaceChildren(
    state.playing
      ? h("button", { class: "main", id: "play", "aria-pressed": "true", onclick: pause }, "Pause")
      : h("button", { class: "main", id: "continue", onclick: () => look(at + 1) }, next),
  );
  $("panel").replaceChildren(h("div", { id: "results" }));
  if (pictures.has(pictureKey())) drawResults(pictures.get(pictureKey()));
}

// Powers, one's own first, then those that went against it, as orders tell.
function ownFirst(orders) {
  const { you, powers } = state.view;
  const own = orders.filter(({ power }) => power === you).map(({ text }) => text.slice(2, 5));
  const against = ({ power, text }) =>
    power !== you && text.includes(" - ") && own.includes(text.split(" - ")[1].slice(0, 3));
  const foes = orders.filter(against).map(({ power }) => power);
  const rank = (power) => (power === you ? 0 : foes.includes(power) ? 1 : 2);
  return powers.map(({ power }) => power).sort((one, other) => rank(one) - rank(other));
}

function drawResults(found) {
  const place = $("results");
  if (!place) return;
  const powers = ownFirst(found.orders);
  place.replaceChildren(
    h("h2", {}, `What happened in ${found.title}`),
    ...orderLists(powers, found.orders),
    found.talk.length
      ? h("div", { id: "said" }, h("h3", {}, "What you said and heard"), spoken(found.talk))
      : "",
  );
}

function drawEnd(view) {
  $("panel").replaceChildren(
    h("h2", { id: "end" }, sentence(view.result)),
    view.rank ? h("p", { id: "rank" }, `Among the members this game gives you ${view.rank}.`) : "",
  );
  $("panel").append(
    h(
      "div",
      { class: "buttons" },
      view.host
        ? h(
            "button",
            { class: "main", id: "another", onclick: () => send("/api/another", {}) },
            "New game",
          )
        : null,
      view.can_review && !state.review
        ? h("button", { id: "ask-review", onclick: fetchReview }, "Review")
        : null,
    ),
  );
}

function showReview(facts) {
  state.review = facts;
  if (facts?.chart) values.set(facts.chart, state.view.sides, state.view.phases.length);
  else values.clear();
  review.set(facts, state.view.phases.map(phaseTitle));
}

// It is computed meanwhile: the page fills as it goes.
async function fetchReview() {
  const { step } = state.view;
  say("Judging the decisions…");
  $("ask-review").disabled = true;
  try {
    for (let facts; !facts?.decisions || facts.done < facts.total; ) {
      if (facts) await sleep(WAIT);
      facts = await ask("/api/review");
      if (step !== state.view.step) return;
      if (facts.decisions) showReview(facts);
      say("");
      draw();
    }
  } catch (error) {
    say(sentence(error.message), true);
  }
  draw();
}

function drawWaiting(view) {
  const parts = view.sandbox ? [panel.sandboxBox()] : [];
  if (view.trouble) parts.push(h("p", { class: "bad" }, sentence(view.trouble)));
  if (view.given) {
    const list = view.given.map((text) => h("li", { title: text }, panel.words(text)));
    const rest = view.phase.endsWith("M") ? " Units without orders hold." : "";
    if (!list.length) list.push(h("li", { class: "quiet" }, `None.${rest}`));
    parts.push(h("h2", {}, "Your orders are in"), h("ul", {}, ...list));
    if (view.waiting.length)
      parts.push(
        h("button", { id: "withdraw", onclick: () => send("/api/withdraw", {}) }, "Change orders"),
      );
  }
  if (view.waiting.length)
    parts.push(h("p", { class: "waiting" }, `Waiting for ${view.waiting.map(nice).join(", ")}…`));
  else if (!view.can_go_on) parts.push(h("p", {}, "Waiting for the host to continue."));
  if (view.can_go_on)
    parts.push(
      h("p", {}, view.you ? "You have no orders to give in this phase." : "The players are ready."),
      h(
        "div",
        { class: "buttons" },
        h(
          "button",
          {
            class: "main",
            id: "next",
            disabled: Boolean(state.busy),
            onclick: () => send("/api/next", {}),
          },
          "Next phase",
        ),
        h(
          "button",
          {
            id: "play",
            "aria-pressed": String(state.playing),
            onclick: () => {
              state.playing = !state.playing;
              draw();
            },
          },
          state.playing ? "Pause" : "Play to the end",
        ),
      ),
    );
  $("panel").replaceChildren(...parts);
}

// A vote for a draw and giving up: both are said in a phase, beside the orders.
function drawVotes(view) {
  if (state.shown !== null || !view.can_concede) {
    $("votes").replaceChildren();
    return;
  }
  const parts = [],
    { votes } = view;
  if (votes) {
    parts.push(
      h("span", {}, `${votes.given} of ${votes.needed} for a draw`),
      h(
        "button",
        {
          id: "vote",
          title: "Once all have voted for a draw in a phase, the game ends",
          "aria-pressed": String(votes.mine),
          disabled: Boolean(state.busy),
          onclick: () => send("/api/vote", { draw: !votes.mine }),
        },
        votes.mine ? "Withdraw vote" : "Vote draw",
      ),
    );
  }
  const ask = (wanted) => () => {
    state.conceding = wanted;
    draw();
  };
  if (state.conceding === view.step)
    parts.push(
      h("p", {}, "You lose, and your units hold for the rest of the game. The others can play on."),
      h(
        "div",
        { class: "buttons" },
        h(
          "button",
          { id: "concede", disabled: Boolean(state.busy), onclick: () => send("/api/concede", {}) },
          `Concede as ${nice(view.you)}`,
        ),
        h("button", { id: "keep-on", onclick: ask(null) }, "Play on"),
      ),
    );
  else parts.push(h("button", { id: "give-up", onclick: ask(view.step) }, "Concede…"));
  $("votes").replaceChildren(...parts);
}

function drawTools(view) {
  const tools = [];
  const deciding = view.started && state.shown === null && view.decision && !view.given;
  if (deciding && view.you && !view.rated)
    tools.push(
      h(
        "button",
        {
          id: "hint",
          "aria-pressed": String(state.hinting),
          disabled: !view.can_hint,
          onclick: toggleHint,
          title: view.can_hint
            ? "What the trained policy would order"
            : "Only trained policies give hints: choose one as an opponent",
        },
        state.hinting ? "Hide hint" : "Hint",
      ),
    );
  if (view.host && view.started && !view.rated)
    tools.push(
      h(
        "button",
        {
          id: "takeback",
          disabled: !view.can_take_back || Boolean(state.busy),
          onclick: () => send("/api/back", {}),
          title: "Go back to your last orders",
        },
        view.sandbox ? "Step back" : "Take back",
      ),
    );
  if (view.started)
    tools.push(
      h(
        "button",
        { id: "download", onclick: download, title: "Save the game as a file, to replay or share" },
        "Download game",
      ),
    );
  if (view.started && view.you && !view.sandbox && !view.over)
    tools.push(
      h(
        "button",
        {
          id: "notice",
          "aria-pressed": String(notice.on),
          onclick: () => notice.toggle(),
          title: "A notice of the browser and a sound when it is your turn",
        },
        "Tell me",
      ),
    );
  const game = view.sandbox && sessionStorage.getItem("game");
  if (view.started && game)
    tools.push(
      h("button", { id: "to-game", onclick: () => (location.hash = game) }, "Back to the game"),
    );
  else if (view.started && !view.sandbox && (view.host || view.you) && !(view.rated && !view.over))
    tools.push(
      h(
        "button",
        { id: "try", onclick: tryOut, title: "Give everybody's orders from this phase on" },
        "Try out",
      ),
    );
  if (state.shown !== null && state.shown + 2 < view.phases.length)
    tools.push(
      h(
        "button",
        { id: "now", onclick: () => look(view.phases.length - 1) },
        "Back to the present",
      ),
    );
  $("tools").replaceChildren(h("div", { class: "buttons" }, ...tools));
  if (deciding && state.hinting && !state.hint) fetchHint();
}

// Powers with what they have, or had in the phase looked at, which the board shows.
function drawPowers(view) {
  if (!view.started) return;
  const counted = (p) => (state.shown === null ? p : board.counts(p.power));
  const rows = view.powers.map((p) =>
    h(
      "tr",
      { class: p.alive ? "" : "dead" },
      h("th", { scope: "row" }, swatch(p.power), nice(p.power)),
      h(
        "td",
        {},
        p.power === view.you
          ? h("b", {}, "you")
          : view.sandbox
            ? "you"
            : p.player === "host"
              ? "the host"
              : p.player === "guest"
                ? "a guest"
                : h("span", { title: p.player }, breakable(p.player)),
        h(
          "small",
          { class: "state" },
          p.conceded
            ? "conceded"
            : !p.alive
              ? "eliminated"
              : view.over || !p.person
                ? ""
                : p.ready
                  ? "ready"
                  : "ordering",
        ),
      ),
      h("td", {}, `${counted(p).centers}`),
      h("td", {}, `${counted(p).units}`),
    ),
  );
  const head = h(
    "tr",
    {},
    ...["Power", "Player", "Centers", "Units"].map((text) => h("th", { scope: "col" }, text)),
  );
  $("powers").replaceChildren(
    h("table", {}, h("caption", {}, "Powers"), h("thead", {}, head), h("tbody", {}, ...rows)),
  );
}

// All orders so far, which are asked for once somebody wants to see them.
function drawPast(view) {
  const place = $("past");
  if (!view.started || view.phases.length < 2) {
    place.replaceChildren();
    return;
  }
  if (!place.firstElementChild)
    place.replaceChildren(
      h(
        "details",
        { ontoggle: () => drawPast(state.view) },
        h("summary", {}, "All orders so far"),
        h("div", { class: "past" }),
      ),
    );
  const open = place.firstElementChild.open,
    list = place.querySelector(".past");
  if (!open || fetched.past === view.step) return;
  fetched.past = view.step;
  const powers = view.powers.map(({ power }) => power);
  ask("/api/past").then(
    (phases) => list.replaceChildren(...allOrders(phases, powers, look)),
    (error) => say(sentence(error.message), true),
  );
}

// The phase looked at as text or pictures.
function drawShare(view) {
  if (!view.started) $("share").replaceChildren();
  if (!view.started || $("share").firstChild) return;
  const show = async (text) => {
    $("shared").hidden = false;
    $("shared").value = text;
    $("shared").select();
    await navigator.clipboard?.writeText(text).catch(() => {});
  };
  const take = (kind) => share(async (phase) => show((await ask(`/api/texts${phase}`))[kind]));
  const save = (type) =>
    share(async (phase) => {
      say("Drawing…");
      const { data } = await ask(`/api/picture${phase || "?"}${type === "gif" ? "&moving=1" : ""}`);
      offer(
        new Blob([Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0))], {
          type: `image/${type}`,
        }),
        type,
      );
      say("");
    });
  const watching = view.links?.watch ?? (view.you ? null : state.token); // no seat is given away
  const link = share(() => show(`${location.origin}/#${watching}/${phaseShown()}`));
  $("share").replaceChildren(
    h(
      "details",
      {},
      h("summary", {}, "Copy and pictures"),
      h(
        "div",
        { class: "buttons" },
        watching
          ? h(
              "button",
              {
                id: "copy-link",
                title: "Copy a link to this phase, for those who watch",
                onclick: link,
              },
              "Link",
            )
          : null,
        h("button", { id: "copy-position", onclick: take("position") }, "Copy position"),
        h("button", { id: "copy-orders", onclick: take("orders") }, "Copy all orders"),
        h("button", { id: "save-png", onclick: save("png") }, "Picture"),
        h("button", { id: "save-gif", onclick: save("gif") }, "GIF of the game"),
      ),
      h("textarea", {
        id: "shared",
        rows: 8,
        readonly: true,
        hidden: true,
        "aria-label": "Text of the phase",
      }),
    ),
  );
}

const share = (work) => async () => {
  try {
    await work(state.shown === null ? "" : `?phase=${state.shown}`);
  } catch (error) {
    say(sentence(error.message), true);
  }
};

function offer(blob, suffix) {
  const address = URL.createObjectURL(blob);
  h("a", {
    href: address,
    download: `${state.view.map}-${phaseShown()}.${suffix}`,
  }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function drawMore(view) {
  if (!view.host || !view.started) {
    $("more").replaceChildren();
    return;
  }
  const key = JSON.stringify([view.links, view.file]);
  if ($("more").dataset.key === key) return; // keep it open
  $("more").dataset.key = key;
  const links = Object.entries(view.links).map(([who, token]) => {
    const address = `${location.origin}/#${token}`;
    const field = h("input", {
      readonly: true,
      value: address,
      id: `link-${who}`,
      onfocus: (event) => event.target.select(),
    });
    return h(
      "div",
      { class: "row" },
      h("label", { for: field.id }, who === "watch" ? "To watch" : nice(who)),
      field,
      h(
        "button",
        {
          onclick: () => {
            field.select();
            navigator.clipboard?.writeText(address);
          },
        },
        "Copy",
      ),
    );
  });
  $("more").replaceChildren(
    h(
      "details",
      { open: links.length > 1 },
      h("summary", {}, "Links and file"),
      ...links,
      h(
        "p",
        { class: "quiet" },
        "Anyone with a link can play that power, so give each link only to its player. " +
          `The game is saved after every step in ${view.file}.`,
      ),
    ),
  );
}

// A notice and a sound when it is one's turn, for who wants them.
const notice = {
  on: false,
  turn: true, // whether it was one's turn before; the first time says nothing
  tell(turn, title) {
    if (this.on && turn && !this.turn) {
      if (document.hidden) new Notification("Your turn", { body: title, icon: "/icon.svg" });
      const sound = new AudioContext(),
        tone = sound.createOscillator();
      tone.connect(sound.destination);
      tone.start();
      tone.stop(sound.currentTime + 0.15);
    }
    this.turn = turn;
  },
  async toggle() {
    this.on = !this.on && (await window.Notification?.requestPermission?.()) === "granted";
    draw();
  },
};

// --- What is clicked -----------------------------------------------------------------------------

// The number of a phase that was played; null: there is none of this name.
function phaseNumber(name) {
  const at = state.view.phases.indexOf(name);
  return at >= 0 && at < state.view.phases.length - 1 ? at : null;
}

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
    const { you } = state.view,
      found = await ask("/api/hint");
    if (found.step !== state.view.step || you !== state.view.you) return;
    state.hint = found;
    fetchOutlook();
  } catch (error) {
    state.hinting = false;
    say(sentence(error.message), true);
  } finally {
    fetchingHint = false;
    draw();
  }
}

// Games are played for it, which takes seconds: the hint does not wait.
async function fetchOutlook() {
  const { hint } = state,
    { step } = state.view,
    hinted = panel.hinted(hint),
    own = panel.orders();
  const differ = own.length && [...own].sort().join() !== [...hinted].sort().join();
  const orders = differ ? [hinted, own] : [hinted];
  const found = await ask("/api/outlook", { step, orders }).catch(() => null);
  if (hint !== state.hint) return;
  state.outlook = found?.outlooks;
  state.compared = own.join();
  draw();
}

async function download() {
  try {
    const found = await ask("/api/saved");
    offer(new Blob([JSON.stringify(found) + "\n"], { type: "application/jsonl" }), "jsonl");
  } catch (error) {
    say(sentence(error.message), true);
  }
}

const board = new Board($("stage"), (province) => {
  const { view } = state;
  if (!view) return;
  say("");
  if (state.shown === null && talk.picking) talk.picked(province);
  else if (state.shown === null && view.decision && !view.given) panel.clicked(province);
  else say(`${province} ${view.names[province]}`);
});
const bar = new Bar($("bar"), look);
const chart = new Chart($("chart"), (number) => bar.jump(number));
const values = new Chart($("values"), (number) => bar.jump(number));
const review = new Review({
  place: $("review"),
  board,
  values,
  go: (number) => bar.jump(number),
  tryIt: ({ number, power }) =>
    state.view.host
      ? h(
          "button",
          { id: "try", onclick: () => send("/api/try", { phase: number, power }) },
          "Try it from here",
        )
      : null,
});
const panel = new OrderPanel({
  say,
  redraw: draw,
  submit: async (orders) => {
    await send("/api/orders", { orders });
    if (state.view.sandbox && state.view.given) turnTo(null); // the next one without orders
  },
  read: (text, orders) => ask("/api/read", { text, orders }),
  sandbox: { turnTo, letOrder },
  hint: () => (state.hinting ? state.hint : null),
  outlook: () =>
    state.compared === panel.orders().join() ? state.outlook : state.outlook?.slice(0, 1),
});

// Go on from the phase looked at in a sandbox, whose page leads back.
async function tryOut() {
  try {
    const { token } = await ask("/api/sandbox", { phase: state.shown });
    sessionStorage.setItem("game", location.hash);
    location.hash = token;
  } catch (error) {
    say(sentence(error.message), true);
  }
}

// In a sandbox: give another power's orders, or let a player give some.
async function turnTo(power) {
  state.power = power;
  state.hint = state.outlook = null;
  try {
    take(await ask("/api/game"));
  } catch (error) {
    say(sentence(error.message), true);
  }
}

async function letOrder(player, powers) {
  say(`Waiting for ${player}…`);
  const kept = Object.fromEntries(powers.map((power) => [power, panel.kept(power)]));
  if (await send("/api/let", { player, powers, kept })) return;
  say("");
  if (state.view.given) turnTo(null);
}

const talk = new TalkPanel({
  say,
  redraw: draw,
  send,
  orders: () => state.view.given ?? panel.orders(),
});

// The second click of a double click would be meant for what stood there before the first.
$("right").addEventListener(
  "click",
  (event) => {
    if (
      event.detail < 2 ||
      !event.target.closest(
        "#panel button, #foot button, #talk button, #votes button, #tools button",
      )
    )
      return;
    event.stopPropagation();
    event.preventDefault();
  },
  true,
);

theme.begin();
const deciding = () =>
  state.shown === null && state.view.started && state.view.decision && !state.view.given;
const mode = (name) => () => {
  if (deciding()) panel.setMode(name);
};
listen(bar, board, {
  h: mode("hold"),
  m: mode("move"),
  s: mode("support"),
  c: mode("convoy"),
  v: mode("via"),
  Enter: ({ repeat }) => {
    if (repeat) return; // it was meant for what is gone
    if (deciding()) panel.enter();
    else ["continue", "next"].map($).find(Boolean)?.click();
  },
  b: ({ shiftKey }) => review.step(shiftKey ? -1 : 1),
  Escape: () => {
    talk.picking = false;
    panel.unselect();
  },
});
window.addEventListener("hashchange", () => {
  const [token, phase] = address();
  if (token !== state.token || !state.view) return location.reload();
  look(phaseNumber(phase) ?? Infinity);
});

if (state.token) watchServer();
else say("This link is incomplete: the part after the # is missing.", true);
