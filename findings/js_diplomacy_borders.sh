#!/usr/bin/env bash
# js-diplomacy 0.1.5 (npm): the borders of its standard board.
#
# It has all provinces of the board game and its 34 supply centers, but four borders are missing: an
# army cannot go from Galicia to Silesia, nor a fleet from the Adriatic Sea to Albania, from the Baltic
# Sea to Kiel or from the North Sea to the Skagerrak, and back. Such an order is replaced by a hold.
#
# Seen:
#   provinces: 75, supply centers: 34
#   A GAL - SIL: false, F ADR - ALB: false, F BAL - KIE: false, F NTH - SKA: false
#   beside them: A GAL - WAR: true, F ADR - TRI: true, F BAL - BER: true, F NTH - DEN: true
#
# One would guess otherwise: the board is what engines agree on. The `diplomacy` package, pydip and the
# printed board have these four.
#
# Here: a test holds the number of borders of every map.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-save --prefix . js-diplomacy@0.1.5 >/dev/null
cat >see.js <<'JS'
const assert = require("assert");
const { standardMap, standardRule } = require("js-diplomacy");

const { map, locations } = standardMap;
const { Army, Fleet } = standardRule.MilitaryBranch;

function canMove([branch, from, to]) {
  return map.movableLocationsOf(locations[from], branch).has(locations[to]);
}

function show(moves) {
  const texts = moves.map((move) => {
    const [branch, from, to] = move;
    const order = `${branch === Army ? "A" : "F"} ${from} - ${to}`.toUpperCase();
    return `${order}: ${canMove(move)}`;
  });
  return texts.join(", ");
}

const centers = [...map.provinces].filter((province) => province.isSupplyCenter);
const missing = [[Army, "Gal", "Sil"], [Fleet, "Adr", "Alb"], [Fleet, "Bal", "Kie"], [Fleet, "Nth", "Ska"]];
const there = [[Army, "Gal", "War"], [Fleet, "Adr", "Tri"], [Fleet, "Bal", "Ber"], [Fleet, "Nth", "Den"]];
console.log(`provinces: ${map.provinces.size}, supply centers: ${centers.length}`);
console.log(show(missing));
console.log(`beside them: ${show(there)}`);
assert.deepStrictEqual([map.provinces.size, centers.length], [75, 34]);
assert(!missing.some(canMove) && there.every(canMove), "this has changed");
JS
node see.js
