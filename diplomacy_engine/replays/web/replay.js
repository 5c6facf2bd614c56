import {
  $,
  Bar,
  Board,
  Chart,
  allOrders,
  breakable,
  choiceLines,
  copied,
  counted,
  expects,
  h,
  legend,
  listed,
  listen,
  nice,
  orderLists,
  percent,
  spoken,
  swatch,
  theme,
  unitOf,
} from "./page.js";
import { Review } from "./review.js";

// The page of a replay: unpacks its games and shows their phases.

const facts = JSON.parse($("data").textContent);
const state = { game: 0, number: 0, frames: [], shown: null, loading: 0, talkOpen: true };

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

async function open(wanted, phase) {
  const mine = ++state.loading,
    entry = facts.games[wanted],
    map = facts.maps[entry.map];
  const [data, chartText, expected, reviewed, ground] = await Promise.all([
    unpack(entry.data),
    unpack(entry.chart),
    unpack(entry.expected),
    unpack(entry.review),
    state.shown === entry.map ? null : unpack(map.ground),
  ]);
  if (mine !== state.loading) return;
  const found = JSON.parse(reviewed);
  Object.assign(state, { game: wanted, frames: JSON.parse(data), shown: entry.map });
  if (ground !== null) {
    board.setMap({ ...map, ground });
    legend($("legend"), map);
  }
  chart.set(chartText, facts.chart, entry.phases.length);
  values.clear();
  const lines = found?.chart || expected;
  $("values").classList.toggle("thoughts", !found);
  if (lines) values.set(lines, facts.chart, entry.phases.length);
  $("game").value = String(wanted);
  $("title").textContent = document.title = entry.title;
  $("who").textContent = whoPlayed(entry, map);
  $("think").hidden = !state.frames.some(
    (frame) => frame.thoughts || Object.values(frame.powers).some((power) => power.thought),
  );
  $("past").querySelector("details").open = false;
  review.set(found, entry.titles);
  if (found && !phase) phase = entry.phases[review.marked()[0]?.number];
  show(Math.max(0, entry.phases.indexOf(phase)));
  board.begin(ofTheLargest(found ? [review.power ?? map.powers[0]] : map.powers));
}

// The provinces in this phase of the power that has most centers at the end, which is who won.
function ofTheLargest(powers) {
  const centers = (power) => state.frames.at(-1).powers[power].centers;
  const largest = powers.reduce((one, other) => (centers(other) > centers(one) ? other : one));
  return Object.entries(state.frames[state.number].owners)
    .filter(([, owner]) => owner.split(" ")[0] === largest)
    .map(([code]) => code);
}

// `dumbbot as England and France, random as Italy; map three, game 12`
function whoPlayed({ id, players }, { name, powers }) {
  const seats = new Map();
  for (const power of powers)
    if (players[power])
      seats.set(players[power], [...(seats.get(players[power]) ?? []), nice(power)]);
  const who = [...seats]
    .map(([player, names]) => `${breakable(player)} as ${listed(names)}`)
    .join(", ");
  return `${who ? `${who}; ` : ""}map ${name}, game ${id}`;
}

function show(wanted) {
  const { phases, titles, map } = facts.games[state.game];
  state.number = Math.min(Math.max(wanted, 0), phases.length - 1);
  const frame = state.frames[state.number],
    title = titles[state.number];
  board.show(frame, `Position in ${title}`);
  board.layer("thoughts", frame.thoughts);
  bar.show(titles, state.number);
  bar.phase.title = phases[state.number];
  chart.show(state.number);
  if (values.svg) values.show(state.number);
  review.show(state.number);
  list(frame, facts.maps[map].powers);
  const place =
    facts.games.length > 1
      ? `#${state.game + 1}/${phases[state.number]}`
      : `#${phases[state.number]}`;
  if (location.hash !== place) history.replaceState(null, "", place);
}

function list(frame, powers) {
  const { players, values } = facts.games[state.game];
  const head = (power) => {
    const { centers, units, thought } = frame.powers[power];
    if (!centers && !units) return [];
    const value =
      thought && thought.value !== null ? `, ${expects(values, power, state.number)}` : "";
    return [
      h("small", {}, players[power] ? breakable(players[power]) : ""),
      h(
        "small",
        { class: "count" },
        `${counted(centers, "center")}, ${counted(units, "unit")}${value}`,
      ),
    ];
  };
  const more = (line) =>
    choiceLines(line, frame.powers[line.power].thought?.orders[unitOf(line.text)]);
  const parts = frame.talk.length ? [talk(frame.talk)] : [];
  parts.push(...orderLists(powers, frame.orders, head, more));
  const thoughts = powers.flatMap((power) => considered(power, frame.powers[power].thought ?? {}));
  $("orders").replaceChildren(...parts, ...thoughts);
}

// What a player tried before it ordered, and what a language model was asked and said.
function considered(power, thought) {
  const parts = [];
  if (thought.tried?.length)
    parts.push(
      h("h3", {}, swatch(power), `${nice(power)} tried`),
      h("p", { class: "quiet" }, "What each line is worth, after one phase:"),
      h(
        "ul",
        {},
        ...thought.tried.map(([choice, worth, share]) =>
          h(
            "li",
            {},
            `${choice} `,
            h(
              "small",
              {},
              (worth === null ? "" : worth.toFixed(3)) +
                (share ? `, played ${percent(share)}` : ""),
            ),
          ),
        ),
      ),
    );
  for (const name of ["prompt", "reply"])
    if (thought[name] !== undefined)
      parts.push(
        h("details", {}, h("summary", {}, `${nice(power)}: ${name}`), h("pre", {}, thought[name])),
      );
  return parts.length ? [h("div", { class: "thoughts" }, ...parts)] : [];
}

function talk(said) {
  const box = h(
    "details",
    { class: "talk", open: state.talkOpen },
    h("summary", {}, `What was said (${said.length})`),
    spoken(said),
  );
  box.addEventListener("toggle", () => {
    state.talkOpen = box.open;
  });
  return box;
}

function think() {
  const off = document.body.classList.toggle("nothoughts");
  $("think").setAttribute("aria-pressed", String(!off));
}

async function copyLink() {
  const done = await copied(location.href);
  board.say(done ? "The address of this phase is copied." : location.href);
}

function fromHash() {
  let text = location.hash.slice(1);
  try {
    text = decodeURIComponent(text);
  } catch {
    text = "";
  } // a lone %
  const parts = text.split("/");
  const phase = parts.pop(),
    wanted = parts.length ? Number(parts[0]) - 1 : state.game;
  const index = facts.games[wanted] ? wanted : 0,
    { phases } = facts.games[index];
  if (index !== state.game || !state.frames.length) return open(index, phase);
  if (phases.includes(phase) && phases[state.number] !== phase) show(phases.indexOf(phase));
}

const stage = h("div", { id: "stage" });
$("left").prepend(stage);
const board = new Board(stage, (province) =>
  board.say(`${province} ${facts.maps[state.shown].names[province]}`),
);
const bar = new Bar($("bar"), show);
const chart = new Chart($("chart"), (number) => bar.jump(number));
const values = new Chart($("values"), (number) => bar.jump(number));
const review = new Review({
  place: $("review"),
  board,
  values,
  go: (number) => bar.jump(number),
  tryIt({ number, power }) {
    if (!facts.file) return null; // play resumes no run folder
    const phase = facts.games[state.game].phases[number],
      game = facts.games.length > 1 ? ` --game ${state.game + 1}` : "",
      command = `--resume ${facts.file}${game} --phase ${phase} --power ${power}`;
    return h(
      "p",
      { class: "quiet" },
      "Try it from here: ",
      h("code", {}, `python -m diplomacy_engine play ${command}`),
    );
  },
});
$("game").addEventListener("change", () => {
  bar.pause();
  open(Number($("game").value), "");
});
$("think").addEventListener("click", think);
$("link").addEventListener("click", copyLink);
$("past")
  .querySelector("details")
  .addEventListener("toggle", ({ target }) => {
    const { titles, map } = facts.games[state.game],
      { powers } = facts.maps[map];
    const phases = state.frames.map(({ orders }, number) => ({ title: titles[number], orders }));
    const lists = target.open ? allOrders(phases, powers, (number) => bar.jump(number)) : [];
    target.replaceChildren(target.firstElementChild, h("div", { class: "past" }, ...lists));
  });
facts.games.forEach((entry, index) =>
  $("game").append(h("option", { value: index }, `${index + 1}: ${entry.title} (${entry.id})`)),
);
$("game").hidden = facts.games.length < 2;
theme.begin();
listen(bar, board, {
  p: () => {
    if (!$("think").hidden) think();
  },
  b: ({ shiftKey }) => review.step(shiftKey ? -1 : 1),
});
window.addEventListener("hashchange", fromHash);
if (typeof DecompressionStream === "undefined")
  $("stage").replaceChildren(
    h(
      "p",
      { class: "bad" },
      "This browser is too old for this page: it needs DecompressionStream " +
        "(Chrome 80, Firefox 113, Safari 16.4 or newer).",
    ),
  );
else fromHash();
