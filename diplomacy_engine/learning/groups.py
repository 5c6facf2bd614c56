"""Many frozen networks."""

import copy

import numpy as np


def frozen_copy(agent, model=None):
    frozen = copy.deepcopy(agent).requires_grad_(False).eval()
    if model is not None:
        frozen.load_state_dict(model)
    return frozen


def act_one(agent, obs, asked, noise):
    return agent.act(obs, asked, noise=noise)


def act(agents, who, obs, asked, noise, temperature):
    chosen = np.zeros(len(asked.slot_province), np.int64)
    starts = asked.order_start[asked.slot_start]
    for number in np.unique(who):
        rows = np.flatnonzero(who == number)
        a, b = rows[0], rows[-1] + 1
        found, _, _ = agents[number].act(obs.take(rows), asked.take(rows), noise=noise[starts[a]:starts[b]], temperature=temperature[rows])
        chosen[asked.slot_start[a]:asked.slot_start[b]] = found
    return chosen
