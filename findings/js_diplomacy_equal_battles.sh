#!/usr/bin/env bash
# js-diplomacy 0.1.5 (npm): two armies that attack one another with one support each.
#
# By the rules nobody moves. Here one of them wins and dislodges the other: the one whose order was
# listed second. Without supports both stay.
#
# Seen:
#   no supports: A RUH - HOL Bounced, A HOL - RUH Bounced
#   one each, A RUH - HOL listed first: A RUH - HOL Dislodged, A HOL - RUH Success
#   one each, A HOL - RUH listed first: A RUH - HOL Success, A HOL - RUH Dislodged
#
# One would guess otherwise: neither attack is stronger than the other, and `resolve` takes a Set, of
# which one expects no order.
#
# Here: a unit's order stands in an array at the unit's place, so none comes before another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-save --prefix . js-diplomacy@0.1.5 >/dev/null
cat >see.js <<'JS'
const assert = require("assert");
const { standardBoard, standardMap, standardRule } = require("js-diplomacy");

const { Board, MilitaryBranch, Order, Phase, Result, Rule, State, Unit } = standardRule;
const { Power, locations: at, map } = standardMap;
const spring = new State(new standardBoard.Turn(1901, standardBoard.Season.Spring), Phase.Movement);

function battle(supported, ruhrFirst) {
  const army = (place, power) => new Unit(MilitaryBranch.Army, place, power);
  const ruhr = army(at.Ruh, Power.Italy);
  const holland = army(at.Hol, Power.Germany);
  const attacks = [new Order.Move(ruhr, at.Hol), new Order.Move(holland, at.Ruh)];
  const supports = [
    new Order.Support(army(at.Bel, Power.Italy), attacks[0]),
    new Order.Support(army(at.Mun, Power.Germany), attacks[1]),
  ];
  const orders = ruhrFirst ? [...attacks] : [attacks[1], attacks[0]];
  if (supported) orders.push(...supports);
  const board = new Board(map, spring, orders.map((order) => order.unit), [], []);
  const { results } = new Rule().resolve(board, new Set(orders)).result;
  return attacks.map((attack) => Result[[...results].find((r) => r.target === attack).result]);
}

const seen = [battle(false, true), battle(true, true), battle(true, false)];
const titles = ["no supports", "one each, A RUH - HOL listed first", "one each, A HOL - RUH listed first"];
seen.forEach(([ruhr, holland], i) =>
  console.log(`${titles[i]}: A RUH - HOL ${ruhr}, A HOL - RUH ${holland}`));
assert.deepStrictEqual(seen, [
  ["Bounced", "Bounced"], ["Dislodged", "Success"], ["Success", "Dislodged"],
], "this has changed");
JS
node see.js
