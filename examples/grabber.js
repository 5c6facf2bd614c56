// A bot for docs/protocol.md in JavaScript, which needs Node and nothing of this project.
//
//     python -m diplomacy_engine evaluate --player "cmd:node examples/grabber.js" --games 20
//
// It gives the same orders as grabber.py.
const readline = require("readline");

function ordersOf(position, power) {
  const own = new Set(position.centers[power] || []);
  const centers = new Set(Object.values(position.centers).flat());
  const taken = new Set();
  const orders = [];
  for (const legal of Object.values(position.legal_orders[power])) {
    const goal = (order) => order.split(" ")[3].slice(0, 3);
    const moves = legal.filter((order) => order.includes(" - ") && !order.endsWith("VIA"));
    const free = moves.filter((order) => !taken.has(goal(order)));
    const wanted = free.filter((order) => centers.has(goal(order)) && !own.has(goal(order)));
    const turn = (position.turn || 0) % Math.max(1, free.length);
    const order = [...wanted, ...free.slice(turn), ...legal][0];
    taken.add(moves.includes(order) ? goal(order) : order.split(" ").pop().slice(0, 3));
    orders.push(order);
  }
  const builds = (position.builds || {})[power];
  return builds === undefined ? orders : orders.slice(0, Math.abs(builds));
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  let answer;
  if (message.hello) {
    answer = { hello: { protocol: 1, name: "grabber", wants: ["legal_orders"] } };
  } else if (message.request !== undefined) {
    const orders = message.positions.map((position) =>
      Object.fromEntries(position.powers.map((power) => [power, ordersOf(position, power)])),
    );
    answer = { reply: message.request, orders };
  } else {
    return; // a map's data
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
