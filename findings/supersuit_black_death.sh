#!/usr/bin/env bash
# SuperSuit 3.11.0 with PettingZoo 1.27.0: `black_death_v3` around a game that ends for all at once.
#
# The step with which the game ends is passed on with its reward, but not as an end. One more step,
# with zeros for observations and rewards, is then given as terminated and truncated at once.
#
# Seen:
#   step 1: rewards [1.0, 0.0], terminated [0.0, 0.0], truncated [0.0, 0.0]
#   step 2: rewards [5.0, 0.0], terminated [0.0, 0.0], truncated [0.0, 0.0]
#   step 3: rewards [0.0, 0.0], terminated [1.0, 1.0], truncated [1.0, 1.0]
#
# One would guess otherwise: the wrapper is for agents that go before others, and a game that ends for
# everybody needs nothing of it. Nor can both ways to end be true of one game: a value beyond the end
# is added after the one and not after the other.
#
# Here: the reward of a game of Diplomacy comes with its end. The table of docs/other_libraries.md
# says what the wrapper does; parallel_env itself drops powers that are out, as PettingZoo wants it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq supersuit==3.11.0 pettingzoo==1.27.0 gymnasium==1.4.0 numpy==2.4.6
cat >see.py <<'PY'
import numpy as np
import supersuit
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv


class Game(ParallelEnv):
    """Two powers: the second is out after the first step, and the second step ends the game."""

    metadata, render_mode, possible_agents = {"name": "game"}, None, ["first", "second"]

    def observation_space(self, agent):
        return Box(0, 9, (1,))

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self.turn = list(self.possible_agents), 0
        return {a: np.ones(1, np.float32) for a in self.agents}, {a: {} for a in self.agents}

    def step(self, actions):
        self.turn += 1
        rewards = {a: [1.0, 5.0][self.turn - 1] * (a == "first") for a in self.agents}
        over = {a: self.turn == 2 or a == "second" for a in self.agents}
        seen = {a: np.ones(1, np.float32) for a in self.agents}
        never, infos = dict.fromkeys(self.agents, False), {a: {} for a in self.agents}
        self.agents = [a for a in self.agents if not over[a]]
        return seen, rewards, over, never, infos


game, steps = supersuit.black_death_v3(Game()), []
game.reset()
while game.agents:
    rows = game.step(dict.fromkeys(game.agents, 0))[1:4]
    steps.append([[float(row[a]) for a in sorted(row)] for row in rows])
for number, (rewards, terminated, truncated) in enumerate(steps, 1):
    print(f"step {number}: rewards {rewards}, terminated {terminated}, truncated {truncated}")
assert steps[1] == [[5, 0], [0, 0], [0, 0]], "this has changed"
assert steps[2] == [[0, 0], [1, 1], [1, 1]] and len(steps) == 3, "this has changed"
PY
venv/bin/python -I see.py
