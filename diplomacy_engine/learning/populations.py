"""Populations of policies of the plain learner: asked together, and taken from their runs."""

import importlib
import itertools
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ..games.decisions import Decisions, order_numbers, ragged_rows
from ..games.order_lists import matched
from ..games.vector_game import VectorGame
from ..players.policy.files import policy_file
from ..players.policy.player import PolicyPlayer
from ..players.population import Population, PopulationMember
from ..players.protocols import Player
from ..rules.map import Map
from . import checkpoints, frozen, ops, probes, registry
from .players import agent_of
from .ranks import keep_memory
from .settings import flags_of, with_file


class PolicyGroup:
    """Policies of one map that are asked together in threads; each orders what it would alone."""

    def __init__(self, players: Sequence[PolicyPlayer], threads: int):
        keep_memory()
        # Those that are alike but for their weights follow each other, for `frozen.ask`.
        settings = [repr(frozen.settings_of(agent_of(player))) for player in players]
        self.players = [players[n] for n in np.argsort(settings, kind="stable")]
        for number, player in enumerate(self.players):
            player.group, player.number = self, number
        self.agents = {number: agent_of(player) for number, player in enumerate(self.players)}
        self.greedy = np.array([player.greedy for player in self.players])
        self.temperature = np.array([player.temperature for player in self.players])
        self.threads = threads

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,))

    def __getstate__(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "pool"}

    def act(
        self, games: VectorGame, decisions: Decisions, players: Sequence[Player], who: np.ndarray
    ) -> np.ndarray:
        """Return order numbers (S,) int32; `players[who[d]]`, of this group, decides d."""
        own = (p if isinstance(p, PolicyPlayer) and p.group is self else None for p in players)
        mine = np.array([-1 if player is None else player.number for player in own])[who]
        order = np.argsort(mine, kind="stable")
        mine = mine[order]
        full = decisions.take(order)
        self.players[mine[0]].check_map(games)
        legal, obs = frozen.ask(self.agents, mine, games, full)
        _, firsts = np.unique(mine, return_index=True)
        # At a temperature of 0 the noise counts for nothing: so for those that are greedy.
        noise = ops.sample_noise(games, legal)
        temperature = np.where(self.greedy[mine], np.float32(0), self.temperature[mine])
        # Each thread has about as many decisions, and all those of a player.
        wanted = np.arange(1, self.threads) * len(mine) // self.threads
        cuts = np.unique([0, *firsts[np.searchsorted(firsts, wanted, "right") - 1], len(mine)])
        jobs = [
            self.pool.submit(self._choose, slice(first, last), mine, obs, legal, noise, temperature)
            for first, last in itertools.pairwise(cuts.tolist())
        ]
        chosen = np.concatenate([job.result() for job in jobs])
        numbers_of_slots = np.empty(len(chosen), np.int32)
        slots = ragged_rows(decisions.slot_start[order], legal.slot_start)
        numbers_of_slots[slots] = matched(full, legal, order_numbers(legal, chosen))
        return numbers_of_slots

    def _choose(self, rows: slice, who, obs, decisions, noise, temperature) -> np.ndarray:
        """Return (slots,) order positions of decisions `rows`; other arguments are of all D."""
        own = decisions.part(rows.start, rows.stop)
        begin = decisions.order_start[decisions.slot_start[rows.start]]
        noise = noise[begin : begin + len(own.order)]
        obs = obs.part(rows.start, rows.stop)
        return frozen.act(self.agents, who[rows], obs, own, noise, temperature[rows])


def population_players(
    population: Population,
    members: Sequence[PopulationMember],
    weights: Sequence[Mapping[str, np.ndarray]],
    greedy: bool,
    threads: int,
) -> list[PolicyPlayer]:
    """Return a player for each of `members`, whose network has the arrays of `weights` by name."""
    learner, agents, players = registry.bundled(), {}, []
    for member, arrays in zip(members, weights):
        path = population.folder / member.file
        stored = {"probe": torch.tensor(member.probe)} if member.probe else {}
        settings = learner.settings(checkpoints.with_new_names(member.settings))
        shape = repr([settings[name] for name in learner.network_setting_names])
        model = {name: torch.from_numpy(array) for name, array in arrays.items()}
        saved = checkpoints.policy_dict(learner.file, settings, population.map, model, 0)
        saved = checkpoints.Checkpoint(path, saved | stored)
        if shape not in agents:
            agent = agents[shape] = learner.agent(saved).requires_grad_(False).eval()
        else:  # a new network takes longer to make than a copy of one that is there
            with checkpoints.fitting(path, learner.file):
                agent = frozen.frozen_copy(agents[shape], model)
                probes.check(saved, agent, learner.make_player, learner.file)
        players.append(learner.make_player(agent, member.name, greedy, settings))
    PolicyGroup(players, threads)
    return players


def member_probe(
    game_map: Map, settings: Mapping, weights: Mapping[str, np.ndarray]
) -> list[float]:
    """Return the probe of a policy with weights as a member keeps them, in float16."""
    learner = registry.bundled()
    with probes.kept_generators():
        agent = learner.make_agent(learner.settings(settings), game_map)
        halves = {name: weight.astype(np.float16) for name, weight in weights.items()}
        agent.load_state_dict({n: torch.from_numpy(w).float() for n, w in halves.items()})
        probe = probes.probe(learner.make_player, agent, game_map)
        return [round(float(part), 5) for part in probe]


class Policy(NamedTuple):
    decisions: int  # that it had learned from
    settings: dict  # of the run
    command: str  # that trains so
    seed: int
    weights: dict[str, np.ndarray]


# What a member's settings keep beside what its network is made of: what its values mean, and how it
# plays, where that is not at temperature 1.
KEPT = ("map", "reward", "gamma", "year_limit", "temperature")


def policies_of_run(folder: str | Path, copies: int) -> list[Policy]:
    newest, learner = policy_file(folder), registry.bundled()
    scripts = {path.name for path in newest.parent.glob("*.py")}  # the copy of what trained them
    policies: dict[int, Policy] = {}
    for path in (newest, *sorted(newest.parent.glob("checkpoints/*.pt"))):
        if len(policies) >= copies:
            break
        saved = checkpoints.read(path)
        registry.of_checkpoint(saved)  # not one of a script that is not bundled
        learner.agent(saved)  # says what is wrong if it cannot be played
        settings = learner.settings(saved["args"])
        name = saved["script_name"]
        # A script plays what another program, such as distill, has trained by no such command.
        by_other = "temperature" in settings or (scripts and name not in scripts)
        command = "" if by_other else command_of(settings, name)
        names = (name for name in (*learner.network_setting_names, *KEPT) if name in settings)
        member_settings = {name: settings[name] for name in names}
        with checkpoints.fitting(path, learner.file):
            for decisions, model in _models(saved).items():
                weights = {name: weight.float().cpu().numpy() for name, weight in model.items()}
                policy = Policy(decisions, member_settings, command, settings["seed"], weights)
                policies.setdefault(decisions, policy)
    ages = np.array(sorted(policies))
    wanted = ages[-1] * np.arange(1, copies + 1) / copies
    picked = {int(np.abs(ages - age).argmin()) for age in wanted}
    return [policies[int(ages[i])] for i in sorted(picked)]


def _models(saved: dict) -> dict[int, dict[str, torch.Tensor]]:
    models = {saved["global_step"]: saved["model"]}
    for decisions, model in saved.get("copies", {}).items():
        checkpoints.check_weights(model, saved["model"])
        if type(decisions) is not int:
            raise ValueError("its pool has impossible ages")
        if decisions > 0:
            models.setdefault(decisions, model)
    return models


def command_of(settings: dict, script: str) -> str:
    game_map, module = settings["map"], registry.BUNDLED.get(script, registry.PPO_SCRIPT)
    defaults = with_file(importlib.import_module(module).Args, game_map)
    left_out = {"map", "config", "exp_name", "runs_folder", "resume"}
    flags = flags_of(defaults, {n: v for n, v in settings.items() if n not in left_out})
    script = script if module == registry.PPO_SCRIPT else f"-m {module}"
    return f"{script} --map {shlex.quote(game_map)} {flags}".strip()
