#!/usr/bin/env bash
# pettingzoo 1.27.0: MultiEpisodeParallelEnv, several games as one, for evaluation.
#
# Of three players `a` is out after the first of three moves. In the game itself its termination is
# reported. In the wrapper it never is: all flags are false at each move but the last of all games, and
# those of `b` and `c` at the end of a game, too; `a` is just not there any more. With seed 1 the second
# game is seeded with 2; with seed 0 it is not seeded at all, so that the whole cannot be repeated.
#
# Seen:
#   the game alone: a is terminated after move 1
#   in the wrapper: nobody is terminated, b, c truncated after move 6
#   seeds of the games from seed 1: [1, 2]
#   seeds of the games from seed 0: [0, None]
#
# One would guess otherwise: flags of players are kept but where a game ends for all, and 0 is a seed
# like others (`MultiEpisodeEnv` keeps the flags, and forgets seed 0, too).
#
# Here: games of seven players lose some on the way. Those are terminated at that step; evaluation plays
# whole games, each with its own seed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq pettingzoo==1.27.0 gymnasium==1.4.0 numpy==2.4.6
cat >see.py <<'PY'
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv
from pettingzoo.utils.wrappers import MultiEpisodeParallelEnv

OUT = {"a": 1, "b": 3, "c": 3}  # the move after which a player is out


class Game(ParallelEnv):
    metadata, render_mode, possible_agents = {"name": "game"}, None, list(OUT)

    def __init__(self):
        self.seeds = []

    def observation_space(self, agent):
        return Discrete(4)

    def action_space(self, agent):
        return Discrete(1)

    def reset(self, seed=None, options=None):
        self.seeds.append(seed)
        self.agents, self.move = list(OUT), 0
        return dict.fromkeys(OUT, 0), {agent: {} for agent in OUT}

    def step(self, actions):
        self.move += 1
        players = self.agents
        self.agents = [agent for agent in players if self.move < OUT[agent]]
        over = {agent: agent not in self.agents for agent in players}
        nothing = dict.fromkeys(players, 0)
        return dict.fromkeys(players, self.move), nothing, over, dict.fromkeys(players, False), {}


def play(env, seed):
    env.reset(seed=seed)
    terminated, truncated, move = {}, {}, 0
    while env.agents:
        move += 1
        _, _, over, cut, _ = env.step(dict.fromkeys(env.agents, 0))
        terminated.update({agent: move for agent in over if over[agent]})
        truncated.update({agent: move for agent in cut if cut[agent]})
    return terminated, truncated


alone, _ = play(Game(), 1)
print(f"the game alone: a is terminated after move {alone['a']}")
games = {seed: Game() for seed in (1, 0)}
for seed, game in games.items():
    terminated, truncated = play(MultiEpisodeParallelEnv(game, 2), seed)
print(
    f"in the wrapper: {', '.join(terminated) or 'nobody'} is terminated,",
    f"{', '.join(truncated)} truncated after move {truncated['b']}",
)
for seed, game in games.items():
    print(f"seeds of the games from seed {seed}: {game.seeds}")
assert (terminated, truncated) == ({}, {"b": 6, "c": 6}), "this has changed"
assert games[1].seeds == [1, 2] and games[0].seeds == [0, None], "this has changed"
PY
venv/bin/python -I see.py
