// The page of a game: asks the server how it stands, shows it, and sends what is clicked.

import { OrderPanel, cursor } from "/orders.js";
import {
  $,
  Bar,
  Board,
  Chart,
  allOrders,
  breakable,
  copied,
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
const REVIEW = "review"; // in an address, in place of a phase: of a game that is over
const VOICES = { nash: "makes deals", dealer: "trades support", peaceful: "offers peace" };
const WAIT = 1000; // milliseconds between questions to the server

// The page shows a view of the server's: of a game, a phase, and who looks. It has nothing of its
// own but the cursor, which outlives a reload, and what is on its way to the server.
const address = () => location.hash.slice(1).split("/"); // the token, and the phase looked at
const [token] = address();
const state = {
  view: null,
  asked: "", // of which phase and power it is
  about: "", // what the answers are about
  answers: new Map(), // questions about this step -> what the server has answered
  reviewed: null, // as much of the review as there is yet
  busy: "", // what is being sent
  drafts: 0, // on their way
};

// --- Asking the server ---------------------------------------------------------------------------

// In a sandbox the header says whose orders are given.
const headers = (power) => ({ "X-Play-Token": token, ...(power ? { "X-Play-Power": power } : {}) });

async function ask(path, body, power = state.view?.you) {
  const options = { headers: headers(power), cache: "no-store" };
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
    // it came too late, or whoever asks says that the connection is lost
  }
}

// What changes or shows the game comes one after the other.
let last = Promise.resolve();
const inTurn = (work) => (last = last.then(work, work));
const sleep = (time) => new Promise((done) => setTimeout(done, time));

// Send something; what was lost on the way is sent again, which the server counts once. Returns
// why it was refused, or nothing.
async function send(path, body) {
  const content = { step: state.view.step, ...body },
    { you } = state.view,
    key = path + JSON.stringify(content);
  if (state.busy === key) return ""; // clicked twice
  state.busy = key;
  try {
    await inTurn(async () => {
      for (let attempt = 0; ; attempt++) {
        try {
          const view = await ask(`${path}?${looked()}`, content, you);
          state.asked = "";
          await take(view);
          return connected();
        } catch (error) {
          if (!error.lost || attempt >= 30) throw error;
          connected(error.message);
          await sleep(WAIT);
        }
      }
    });
    return "";
  } catch (error) {
    if (error.status === 409) await inTurn(refresh);
    cursor.playing = false;
    say(sentence(error.message), true);
    return sentence(error.message);
  } finally {
    if (state.busy === key) state.busy = "";
    draw();
  }
}

// Orders are listed as they are chosen, and drawn on the board as the server has them.
function sendDraft() {
  const number = ++state.drafts,
    { step, you } = state.view,
    orders = panel.orders();
  draw();
  return inTurn(async () => {
    if (number !== state.drafts) return; // others were chosen meanwhile
    try {
      const board = await ask("/api/draft", { step, orders }, you);
      if (step === state.view.step) state.view.board = board;
    } catch (error) {
      if (error.lost) connected(error.message);
      else if (error.status !== 409) say(sentence(error.message), true);
    }
    if (number === state.drafts) state.drafts = 0;
    draw();
  });
}

// The answer to a question about this step; null until it is there.
function answer(path, body) {
  const key = JSON.stringify([path, body]),
    { answers } = state;
  if (!answers.has(key)) {
    answers.set(key, null);
    ask(path, body).then(
      (found) => (answers.set(key, found), draw()),
      (error) => {
        answers.delete(key);
        if (path === "/api/hint") cursor.hint = false;
        say(sentence(error.message), true);
        draw();
      },
    );
  }
  return answers.get(key);
}

// The phase looked at, for an address.
const looked = () => new URLSearchParams(address()[1] ? { phase: address()[1] } : {});

// Get the view of the phase looked at, if it is another one or something has changed.
async function refresh() {
  const { view } = state,
    { power } = cursor,
    query = looked(),
    key = `${query} ${power}`;
  if (view && state.asked === key) query.set("since", view.revision);
  const found = await ask(`/api/game?${query}`, undefined, power);
  connected();
  if (found.unchanged) return;
  state.asked = key;
  await take(found);
}

async function watchServer() {
  let wanted = address()[1] === REVIEW;
  for (;;) {
    try {
      await inTurn(refresh);
      const { reviewed, view } = state;
      if (wanted && view.can_review && !view.reviewed) send("/api/review", {});
      wanted = false;
      if (view.reviewed && !(reviewed?.trouble || reviewed?.done >= reviewed?.total))
        await getReview();
      if (cursor.playing && view.can_go_on && !state.busy) await send("/api/next", {});
    } catch (error) {
      connected(sentence(error.message));
      if (error.status === 401) return;
    }
    await sleep(cursor.playing ? Number(bar.speed.value) : WAIT);
  }
}

function connected(trouble = "") {
  $("connection").textContent = trouble;
  $("connection").hidden = !trouble;
}

// --- What is new ---------------------------------------------------------------------------------

async function take(view) {
  const before = state.view,
    { game, step, you, decision, phases } = view,
    key = JSON.stringify([game, step, you]),
    about = key + JSON.stringify(decision && { ...decision, draft: 0 }), // deals change it
    was = before?.phases.length - 1;
  if (before && before.step !== step) {
    say("");
    state.reviewed = null;
    if (view.over) cursor.playing = false;
    scrollTo(0, 0); // what is new stands beside the board, or below it
    if (view.started && view.shown === null && phases.length - 1 > was) {
      goTo(phases[was]); // first see what came of the orders
      return take(await ask(`/api/game?phase=${phases[was]}`, undefined, cursor.power));
    }
  } else if (before?.given && !view.given && view.talk && !state.busy)
    say("A deal rules out an order you gave. Please give your orders again.", true);
  if (view.shown === null && address()[1]) goTo(""); // it has been taken back
  state.view = view;
  if (state.about !== about) Object.assign(state, { about, answers: new Map() });
  if (cursor.about !== key) panel.begin(key);
  if (!state.drafts) panel.update(view);
  talk.update(before, view);
  draw();
}

const say = (text, bad = false, province = null) => board.say(text, bad, province);

// --- Drawing -------------------------------------------------------------------------------------

const drawn = { map: null, game: "", past: null };

async function draw() {
  const { view } = state;
  if (!view) return;
  drawFrame(view);
  if (drawn.map?.name !== view.map || drawn.game !== view.game) {
    const map = answer("/api/map");
    if (!map) return; // it draws once it is there
    Object.assign(drawn, { map, game: view.game });
    legend($("legend"), map);
    unfold();
  }
  const first = !board.svg && cursor.lens;
  board.setMap(drawn.map);
  if (first) board.through(first);
  const now = view.shown === null;
  board.mark(now ? (talk.marks() ?? panel.marks()) : {});
  board.showFlyout(...(now && !cursor.picking ? panel.flyout() : ["", []]));
  board.show(view.board, view.titles[view.shown ?? view.titles.length - 1]);
  const bound = (now && view.decision?.units.filter(({ bound }) => bound.length)) || [];
  board.lock(bound.map(({ unit }) => unit));
  board.layer("hinted", hint()?.marks ?? "");
  lookAtOwn(view);
}

// The board begins where one's own units are; who watches sees all of it.
function lookAtOwn(view) {
  const who = `${view.game} ${view.you}`;
  if (!view.you || !view.started || cursor.looked === who) return;
  cursor.looked = who;
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
  const now = view.phases.length - 1,
    at = view.shown ?? now,
    looking = view.shown !== null,
    turn = deciding();
  $("title").textContent = view.titles[at];
  notice.tell(turn, view.titles[now]);
  document.title = `${turn ? "Your turn · " : ""}${view.titles[now]} · Diplomacy`;
  $("who").textContent = view.started ? whoPlays(view) : "";
  $("bar").hidden = now === 0 && !view.started;
  bar.show(view.titles, at);
  $("chart").hidden = $("bar").hidden;
  chart.set(view.chart, view.sides, now + 1);
  chart.show(at);
  document.body.classList.toggle("looking", looking);
  document.body.classList.toggle("deciding", turn && !looking);

  $("foot").replaceChildren();
  if (looking) drawContinue(view, at, now);
  else if (!view.started) drawSetup(view);
  else if (view.over) drawEnd(view);
  else if (turn) panel.draw($("panel"), hint());
  else drawWaiting(view);
  if (looking) $("talk").replaceChildren();
  else talk.draw($("talk"), view);
  drawVotes(view);
  drawTools(view);
  drawPowers(view);
  drawPast(view);
  drawShare(view);
  drawMore(view);
  drawReview(view, at);
  drawGames(view);
  remember();
}

// What is on the page beside the view outlives a reload.
function remember() {
  cursor.judged = { power: review.power, all: review.all };
  if (board.svg) cursor.lens = board.lens();
  history.replaceState({ ...cursor }, "", location.hash);
}

document.addEventListener(
  "toggle",
  ({ target }) => {
    if (target.id) cursor.open[target.id] = target.open;
    remember();
  },
  true,
);

document.addEventListener("click", () => setTimeout(remember));

function unfold() {
  for (const fold of document.querySelectorAll("details[id]"))
    fold.open = cursor.open[fold.id] ?? fold.open;
}

// Who plays, with how it talks in words: `standard-human, makes deals`.
function playerName(name) {
  const drawn = name.match(/^population.*#(\d+)$/); // unknown until the game is over
  if (drawn) return `Opponent ${drawn[1]}`;
  const [, voice, player] = name.match(/^(\w+)(?:\(.*\))?\+(.*)$/) ?? [];
  return breakable(player ? `${player}, ${VOICES[voice] ?? voice}` : name);
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

const phaseShown = () => state.view.phases[state.view.shown ?? state.view.phases.length - 1];

// The form is drawn from the view alone; what is chosen goes to the server at once.
function drawSetup(view) {
  if (!view.host) {
    $("panel").replaceChildren(h("p", {}, "The host is still choosing who plays which power."));
    return;
  }
  if (!$("setup"))
    $("panel").replaceChildren(
      h(
        "form",
        { id: "setup", onsubmit: start },
        h("div", { id: "choosing" }),
        h("button", { class: "main", id: "start" }, "Begin"),
      ),
      h(
        "details",
        { id: "paste" },
        h("summary", {}, "Begin from another position, or review a game"),
        h("label", { for: "pasted" }, "Units or orders by power, or a saved game:"),
        h("textarea", {
          id: "pasted",
          rows: 8,
          spellcheck: "false",
          placeholder: EXAMPLE,
          onpaste: () => setTimeout(paste),
        }),
        h("p", { id: "taken", role: "status" }),
        h("button", { id: "take", onclick: paste }, "Use this position"),
      ),
      h("div", { id: "pasted-game" }),
    );
  unfold();
  const { map, maps, chosen, choices, levels, meanings, settings, last_year, powers } = view,
    key = JSON.stringify([map, maps, chosen, choices, settings, last_year]);
  $("pasted-game").replaceChildren(...reviewButton(view));
  if ($("setup").dataset.key === key) return;
  $("setup").dataset.key = key;
  const option = (name, words) => h("option", { value: name, title: meanings[name] }, words);
  const options = () => [
    ...Object.entries(levels).map(([level, name]) =>
      option(name, `${level[0].toUpperCase()}${level.slice(1)} (${playerName(name)})`),
    ),
    ...choices
      .filter((name) => !Object.values(levels).includes(name))
      .map((name) => option(name, playerName(name))),
  ];
  const people = { me: "I play", guest: "Somebody else (by link)" },
    sandbox = powers.every(({ power }) => chosen[power] === "me"),
    others = Object.values(chosen).find((name) => !(name in people)) ?? choices[0];
  const choose = (change) => {
    const seats = Object.fromEntries(powers.map(({ power }) => [power, change(power)]));
    send("/api/seats", { seats, begin: false });
  };
  const row = (id, label, value, change, ...children) => {
    const select = h("select", { id, onchange: () => change(select.value) }, ...children);
    for (const option of select.options)
      if (option.value === value) option.setAttribute("selected", "");
    return h("div", { class: "row" }, h("label", { for: id }, ...label), select);
  };
  const rows = powers.map(({ power }) =>
    row(
      `seat-${power}`,
      [swatch(power), nice(power)],
      chosen[power],
      (name) =>
        choose((one) =>
          one === power ? name : name === "me" && chosen[one] === "me" ? others : chosen[one],
        ),
      ...Object.entries(people).map(([value, words]) => h("option", { value }, words)),
      ...options(),
    ),
  );
  const typing = document.activeElement; // in a field that goes on being typed in
  $("choosing").replaceChildren(
    maps.length > 1
      ? row("map", ["Map"], map, chooseMap, ...maps.map((name) => h("option", {}, name)))
      : "",
    h("h2", {}, "Who plays?"),
    row(
      "seat-others",
      ["All others"],
      others,
      (name) => choose((power) => (chosen[power] in people ? chosen[power] : name)),
      ...options(),
    ),
    ...rows,
    h(
      "label",
      { class: "row" },
      h("input", {
        type: "checkbox",
        id: "sandbox",
        checked: sandbox,
        onchange: () => choose((power) => (sandbox && power !== powers[0].power ? others : "me")),
      }),
      "Sandbox: I give everybody's orders",
    ),
    view.can_rate || view.rated
      ? h(
          "label",
          { class: "row" },
          h("input", {
            type: "checkbox",
            id: "rated",
            checked: view.rated,
            onchange: () => send("/api/rated", { rated: !view.rated }),
          }),
          "Rated: against unknown opponents, without hints",
        )
      : "",
    h(
      "details",
      { id: "whom", open: cursor.open.whom },
      h("summary", {}, "Who are they?"),
      h(
        "ul",
        {},
        ...choices.map((name) =>
          h("li", {}, h("b", {}, playerName(name)), meanings[name] ? `: ${meanings[name]}` : ""),
        ),
      ),
    ),
    settingsForm(view),
    h("p", { class: "quiet" }, "If you choose no power, you watch. Each guest gets a link."),
  );
  if (typing.type === "number" && $(typing.id)) $(typing.id).value = typing.value;
}

function settingsForm(view) {
  const { press, binding, hints, draws_after: draws, seed, begins } = view.settings;
  const field = (id, label, value, more) =>
    h(
      "div",
      { class: "row" },
      h("label", { for: id }, label),
      h("input", { type: "number", id, value, onchange: sendSettings, ...more }),
    );
  const check = (id, checked, words, more) =>
    h(
      "label",
      { class: "row" },
      h("input", { type: "checkbox", id, checked, onchange: sendSettings, ...more }),
      words,
    );
  const years = { min: begins, max: 9999 };
  const talk = h(
    "select",
    { id: "set-talk", onchange: sendSettings },
    ...Object.entries({
      "": "none",
      mutual: "peace with those who want it, too",
      offers: "deals of any kind",
    }).map(([value, name]) => h("option", { value, selected: value === (press ?? "") }, name)),
  );
  return h(
    "details",
    { id: "settings", open: cursor.open.settings },
    h("summary", {}, "Settings"),
    field("set-last", "Last year", view.last_year, { ...years, placeholder: "no limit" }),
    field("set-draws", "Votes for a draw from", draws, { ...years, placeholder: "nobody votes" }),
    h("div", { class: "row" }, h("label", { for: "set-talk" }, "Talk"), talk),
    check("set-free", !binding, "Deals may be broken", { disabled: !press }),
    field("set-seed", "Seed", seed, { min: 0, title: "The same seed gives the same game again" }),
    check("set-hints", hints, "Hints"),
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

async function paste() {
  const text = $("pasted").value,
    told = $("taken");
  const tooLong = "This is too long to paste. Save it as a file and start with: play --resume FILE";
  const refused = new Blob([text]).size > LONGEST ? tooLong : await send("/api/paste", { text });
  say("");
  told.classList.toggle("bad", Boolean(refused));
  told.textContent =
    refused ||
    [
      "The game will begin from this position.",
      state.view.phases.length > 1 ? "The bar below the board steps through it." : "",
      ...state.view.notes.map(sentence),
    ].join(" ");
}

async function start(event) {
  event.preventDefault();
  say("Preparing the players…");
  const begin = () => send("/api/seats", { seats: state.view.chosen, begin: true });
  if (!(await sendSettings()) && !(await begin())) say("");
  scrollTo(0, 0); // to the board
}

function drawContinue(view, at, now) {
  const next =
    at + 1 < now
      ? `Next: ${view.titles[at + 1]}`
      : view.over
        ? "How it ended"
        : view.started
          ? "Continue"
          : "Back to the choice";
  $("foot").replaceChildren(
    cursor.playing
      ? h("button", { class: "main", id: "play", "aria-pressed": "true", onclick: play }, "Pause")
      : h("button", { class: "main", id: "continue", onclick: () => look(at + 1) }, next),
  );
  const alive = view.powers.filter((one) => one.alive && !one.conceded),
    canTry = view.host && (view.over || !view.started);
  $("panel").replaceChildren(
    h(
      "div",
      { id: "results" },
      h("h2", {}, `What happened in ${view.titles[at]}`),
      ...orderLists(ownFirst(view.orders), view.orders),
      view.said.length
        ? h("div", { id: "said" }, h("h3", {}, "What you said and heard"), spoken(view.said))
        : "",
      canTry ? h("h3", {}, "Try it from here as") : "",
      canTry
        ? h("div", { class: "buttons" }, ...alive.map(({ power }) => tryButton(at, power)))
        : "",
    ),
  );
}

const tryButton = (phase, power, words = nice(power)) =>
  h(
    "button",
    { id: `try-${power}`, onclick: () => visitNew("/api/try", { phase, power }) },
    swatch(power),
    words,
  );

// Watching: go on by itself, or stop that.
function play() {
  cursor.playing = !cursor.playing;
  draw();
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

function drawEnd(view) {
  const again = { class: "main", id: "another", onclick: () => send("/api/another", {}) };
  $("panel").replaceChildren(
    h("h2", { id: "end" }, sentence(view.result)),
    view.rank ? h("p", { id: "rank" }, `Your rank: ${view.rank}.`) : "",
    h(
      "div",
      { class: "buttons" },
      view.host ? h("button", again, "New game") : null,
      ...reviewButton(view),
    ),
  );
}

const reviewButton = ({ can_review: can, reviewed }) =>
  can && !reviewed
    ? [h("button", { id: "ask-review", onclick: () => send("/api/review", {}) }, "Review")]
    : [];

// The review as far as it is: the page fills as it goes.
function drawReview(view, at) {
  const facts = (view.reviewed && state.reviewed) || {},
    shown = facts.decisions ? facts : null;
  if (shown?.chart) values.set(shown.chart, view.sides, view.phases.length);
  else values.clear();
  if (values.svg) values.show(at);
  if (shown !== review.facts) review.set(shown, view.titles);
  review.show(at);
  if (view.reviewed && !shown)
    $("review").replaceChildren(
      facts.trouble
        ? h("p", { class: "bad" }, sentence(facts.trouble))
        : h("p", { role: "status" }, h("progress"), " Reading the game…"),
    );
}

async function getReview() {
  const { step } = state.view,
    facts = await ask("/api/review");
  if (step === state.view.step) state.reviewed = facts;
  draw();
}

function drawWaiting(view) {
  const parts = view.sandbox ? [panel.sandboxBox()] : [];
  if (view.trouble) parts.push(h("p", { class: "bad" }, sentence(view.trouble)));
  if (view.given) {
    const list = view.given.map((text) => h("li", { title: text }, panel.words(text)));
    const rest = view.phases.at(-1).endsWith("M") ? " Units without orders hold." : "";
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
            "aria-pressed": String(cursor.playing),
            onclick: play,
          },
          cursor.playing ? "Pause" : "Play to the end",
        ),
      ),
    );
  $("panel").replaceChildren(...parts);
}

// A vote for a draw and giving up: both are said in a phase, beside the orders.
function drawVotes(view) {
  if (view.shown !== null || !view.can_concede) {
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
    cursor.conceding = wanted;
    draw();
  };
  if (cursor.conceding === view.step)
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
  if (deciding() && view.shown === null && !view.rated)
    tools.push(
      h(
        "button",
        {
          id: "hint",
          "aria-pressed": String(Boolean(cursor.hint)),
          disabled: !view.can_hint,
          onclick: toggleHint,
          title: view.can_hint
            ? "What a strong player would order"
            : "Only trained players give hints: choose one as an opponent",
        },
        cursor.hint ? "Hide hint" : "Hint",
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
          "aria-pressed": String(Boolean(cursor.notice)),
          onclick: () => notice.toggle(),
          title: "A notice of the browser and a sound when it is your turn",
        },
        "Tell me",
      ),
    );
  if (view.parent)
    tools.push(
      h("button", { id: "to-game", onclick: () => visit(view.parent) }, "Back to the game"),
    );
  if (view.phases.length > 1 || view.started)
    if (!view.sandbox && (view.host || view.you) && !(view.rated && !view.over))
      tools.push(
        h(
          "button",
          {
            id: "try-out",
            onclick: () => visitNew("/api/sandbox", { phase: view.shown }),
            title: "Give everybody's orders from this phase on",
          },
          "Try out",
        ),
      );
  if (view.shown !== null && view.shown + 2 < view.phases.length)
    tools.push(
      h(
        "button",
        { id: "now", onclick: () => look(view.phases.length - 1) },
        "Back to the present",
      ),
    );
  $("tools").replaceChildren(h("div", { class: "buttons" }, ...tools));
}

// Powers with what they have, or had in the phase looked at.
function drawPowers(view) {
  if (!view.started) return $("powers").replaceChildren();
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
                : h("span", { title: p.player }, playerName(p.player)),
        h(
          "small",
          { class: "state" },
          p.conceded
            ? "conceded"
            : !p.alive
              ? "eliminated"
              : view.over || view.shown !== null || !p.person
                ? ""
                : p.ready
                  ? "ready"
                  : "ordering",
        ),
      ),
      h("td", {}, `${p.centers}`),
      h("td", {}, `${p.units}`),
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
  const fold = h(
    "details",
    { id: "all-orders", open: cursor.open["all-orders"], ontoggle: () => drawPast(state.view) },
    h("summary", {}, "All orders so far"),
    h("div", { class: "past" }),
  );
  const place = $("past");
  if (view.phases.length < 2) return place.replaceChildren();
  if (!place.firstElementChild) place.append(fold);
  const phases = place.firstElementChild.open && answer("/api/past");
  if (!phases || drawn.past === phases) return;
  drawn.past = phases;
  const powers = view.powers.map(({ power }) => power);
  place.querySelector(".past").replaceChildren(...allOrders(phases, powers, look));
}

// The phase looked at as text or pictures.
function drawShare(view) {
  if (!view.started) $("share").replaceChildren();
  if (!view.started) return;
  if ($("share").firstChild) return showShared();
  const show = async (text) => {
    cursor.shared = { text, about: shownNow() };
    showShared();
    remember();
    $("shared").select();
    $("copied").textContent = (await copied(text)) ? "Copied." : "Copy the text below.";
  };
  const take = (kind) => share(async (phase) => show((await ask(`/api/texts?${phase}`))[kind]));
  const save = (type) =>
    share(async (phase) => {
      say("Drawing…");
      const { data } = await ask(`/api/picture?${phase}&moving=${Number(type === "gif")}`);
      offer(
        new Blob([Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0))], {
          type: `image/${type}`,
        }),
        type,
      );
      say("");
    });
  const watching = view.links?.watch ?? (view.you ? null : token); // no seat is given away
  const link = share(() => show(`${location.origin}/#${watching}/${phaseShown()}`));
  $("share").replaceChildren(
    h(
      "details",
      { id: "copying", open: cursor.open.copying },
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
      h("p", { id: "copied", role: "status" }),
      h("textarea", {
        id: "shared",
        rows: 8,
        readonly: true,
        hidden: true,
        "aria-label": "Text of the phase",
      }),
    ),
  );
  showShared();
}

const shownNow = () => JSON.stringify([cursor.about, state.view.shown]);

function showShared() {
  const { shared } = cursor,
    text = shared?.about === shownNow() ? shared.text : "";
  $("shared").hidden = !text;
  if ($("shared").value !== text) $("shared").value = text;
  if (!text) $("copied").textContent = "";
}

const share = (work) => async () => {
  try {
    await work(state.view.shown === null ? "" : `phase=${phaseShown()}`);
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
            copied(address);
          },
        },
        "Copy",
      ),
    );
  });
  $("more").replaceChildren(
    h(
      "details",
      { id: "links", open: cursor.open.links ?? links.length > 1 },
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

// The host's games, each with what was tried from it.
function drawGames(view) {
  const place = $("games");
  if (!view.host) return place.replaceChildren();
  if (!place.firstChild)
    place.append(
      h(
        "details",
        { id: "my-games", open: cursor.open["my-games"], ontoggle: () => drawGames(state.view) },
        h("summary", {}, "Your games"),
        h("div", { class: "games" }),
      ),
    );
  const wanted = place.firstChild.open || !view.started,
    games = (wanted && answer("/api/games")) || [],
    files = new Set(games.map(({ file }) => file)),
    own = ({ token }) => token === address()[0];
  if (!view.started && view.shown === null)
    drawLast(games.find((one) => one.begun && !one.over && !own(one)));
  const item = (game) =>
    h(
      "li",
      {},
      own(game)
        ? h("b", {}, `${gameTitle(game)} (this one)`)
        : h("button", { class: "link", onclick: () => visit(game.token) }, gameTitle(game)),
      game.over && !own(game)
        ? h(
            "button",
            { class: "link", onclick: () => visit(`${game.token}/${REVIEW}`) },
            "review",
          )
        : null,
      ...tried(game.file),
    );
  const tried = (file) => {
    const trials = games.filter(({ parent }) => parent === file);
    return trials.length ? [h("ul", {}, ...trials.map(item))] : [];
  };
  const first = games.filter(({ begun, parent, token }) => begun && !files.has(parent));
  place
    .querySelector(".games")
    .replaceChildren(
      first.length ? h("ul", {}, ...first.map(item)) : h("p", { class: "quiet" }, "None yet."),
    );
}

function gameTitle({ map, phase, powers, over, time }) {
  const whose = powers.length === 1 ? ` as ${nice(powers[0])}` : powers.length ? ", sandbox" : "";
  const form = { day: "numeric", month: "short" };
  const when = new Date(1000 * time).toLocaleDateString(undefined, form);
  return `${map}${whose}, ${over ? "over" : phase.replace(", movement", "")} (${when})`;
}

// The last game that is not over, to continue it.
function drawLast(game) {
  $("go-on")?.remove();
  if (game)
    $("panel").prepend(
      h(
        "button",
        { id: "go-on", onclick: () => visit(game.token) },
        `Continue: ${gameTitle(game)}`,
      ),
    );
}

// A notice and a sound when it is one's turn, for who wants them.
const notice = {
  turn: true, // whether it was one's turn before; the first time says nothing
  tell(turn, title) {
    if (cursor.notice && turn && !this.turn) {
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
    cursor.notice =
      !cursor.notice && (await window.Notification?.requestPermission?.()) === "granted";
    draw();
  },
};

// --- What is clicked -----------------------------------------------------------------------------

// Look at a phase by its number; the last one is the present.
function look(number) {
  const { phases, titles } = state.view,
    now = phases.length - 1,
    at = Math.max(0, Math.min(now, number));
  if (at !== now) cursor.playing = false;
  goTo(at === now ? "" : phases[at]);
  bar.show(titles, at);
  return inTurn(refresh).catch((error) => connected(sentence(error.message)));
}

function goTo(phase) {
  state.asked = "";
  history.replaceState(history.state, "", `#${token}${phase ? `/${phase}` : ""}`);
}

// The second click hides it again; the next phase begins without one.
function toggleHint() {
  cursor.hint = !cursor.hint;
  cursor.compared = panel.orders();
  draw();
}

const hint = () =>
  cursor.hint && deciding() && state.view.shown === null ? answer("/api/hint") : null;

// How games end after a hint's orders, and after one's own as they were when it was wanted. Games
// are played for it, which takes seconds: the hint does not wait.
function outlook(found) {
  const hinted = panel.hinted(found),
    own = cursor.compared,
    differ = own.length && [...own].sort().join() !== [...hinted].sort().join();
  return answer("/api/outlook", {
    step: state.view.step,
    orders: differ ? [hinted, own] : [hinted],
  });
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
  if (view.shown === null && cursor.picking) talk.picked(province);
  else if (view.shown === null && deciding()) panel.clicked(province);
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
    state.view.host ? tryButton(number, power, "Try it from here") : null,
});
Object.assign(review, cursor.judged);
const panel = new OrderPanel({
  say,
  redraw: draw,
  changed: sendDraft,
  submit: async (orders) => {
    await send("/api/orders", { orders });
    if (state.view.sandbox && state.view.given) turnTo(null); // the next one without orders
  },
  read: (text, orders) => ask("/api/read", { text, orders }),
  sandbox: { turnTo, letOrder },
  outlook,
});

// Go to another game by the token in its link; the browser's way back leads here again.
function visit(token) {
  location.hash = token;
}

async function visitNew(path, body) {
  try {
    visit((await ask(path, body)).token);
  } catch (error) {
    say(sentence(error.message), true);
  }
}

// In a sandbox: give another power's orders, or let a player give some.
function turnTo(power) {
  cursor.power = power;
  return inTurn(refresh);
}

async function letOrder(player, powers) {
  say(`Waiting for ${player}…`);
  if (await send("/api/let", { player, powers })) return;
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
// Whether orders are to be given, even if another phase is looked at.
function deciding() {
  const { view } = state;
  return Boolean(view.started && view.decision && !view.given);
}
const mode = (name) => () => {
  if (deciding() && state.view.shown === null) panel.setMode(name);
};
listen(bar, board, {
  h: mode("hold"),
  m: mode("move"),
  s: mode("support"),
  c: mode("convoy"),
  v: mode("via"),
  Enter: ({ repeat }) => {
    if (repeat) return; // it was meant for what is gone
    if (deciding() && state.view.shown === null) panel.enter();
    else ["continue", "next"].map($).find(Boolean)?.click();
  },
  b: ({ shiftKey }) => review.step(shiftKey ? -1 : 1),
  Escape: () => {
    cursor.picking = false;
    panel.unselect();
  },
});
window.addEventListener("hashchange", () => {
  if (address()[0] !== token || !state.view) location.reload();
  else inTurn(refresh);
});

if (token) watchServer();
else say("This link is incomplete: the part after the # is missing.", true);
