"""Populations of policies of ppo_selfplay_diplomacy.py: kept in little room, asked in one batch.

    python -m diplomacy_engine population make --map small
    python -m diplomacy_engine population rank --player runs/small__...

The engine loads this file for what needs a network (docs/populations.md). A phase of a game among
many policies costs a call of each. Here networks of one shape compute together: their weights stand
one behind the other in tensors (K, ...), and each layer is one batched product.
"""

import os
import shlex

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import VectorGame
from diplomacy_engine.games import UNIT_OWNER, Decisions
from diplomacy_engine.games.decisions import order_numbers, ragged_rows
from diplomacy_engine.players import Player, PolicyPlayer, checkpoints
from diplomacy_engine.players.population import Population, PopulationMember
from diplomacy_engine.policy.stacked import StackedBoards
from diplomacy_engine.training.checks import NETWORK
from diplomacy_engine.training.settings import flags_of, parse_args

PROVINCES = 5000  # of all boards of a batch: more of them no longer fit into a core's cache


class Stack:
    """Networks of one shape, K of them.

    Args:
        agents: the networks.
    """

    def __init__(self, agents: Sequence[ppo.Agent]):
        first = agents[0]
        self.inputs, self.borders = first.inputs, first.borders
        self.layers, self.autoregressive = len(first.own), first.autoregressive
        states = [agent.state_dict() for agent in agents]
        self.weights = {name: torch.stack([s[name] for s in states]) for name in states[0]}

    @torch.no_grad()
    def act(
        self,
        networks: slice,
        boards: StackedBoards,
        decisions: Decisions,
        noise: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Return what some of the networks choose, as `StackedBoards.draw` does."""
        weights = {name: weight[networks] for name, weight in self.weights.items()}

        def linear(name: str, x: torch.Tensor) -> torch.Tensor:
            """Apply each network's own layer (K, out, in) to x (K, ..., in)."""
            weight, bias = weights[f"{name}.weight"].mT, weights.get(f"{name}.bias")
            flat = x.flatten(1, -2)
            if bias is None:
                return torch.bmm(flat, weight).view(*x.shape[:-1], -1)
            return torch.baddbmm(bias.unsqueeze(1), flat, weight).view(*x.shape[:-1], -1)

        def norm(number: int, x: torch.Tensor) -> torch.Tensor:
            weight, bias = (weights[f"norms.{number}.{part}"] for part in ("weight", "bias"))
            scaled = F.layer_norm(x, x.shape[-1:])
            return torch.addcmul(bias[:, None, None], scaled, weight[:, None, None])

        count, provinces, most = boards.shape
        x = torch.from_numpy(boards.feature_sums(weights["province_features.weight"].numpy()))
        x = x + linear("global_features", torch.from_numpy(boards.globals())).unsqueeze(1)
        for layer in range(self.layers):
            y = norm(layer, x)
            near = linear(f"near.{layer}", y).flatten(2)  # (K, V, M H)
            mixed = torch.baddbmm(
                linear(f"own.{layer}", y).flatten(2), self.borders.expand(count, -1, -1), near
            )
            x = x + linear(f"out.{layer}", F.relu(mixed).view_as(x))
        x = norm(self.layers, x)
        power = torch.from_numpy(boards.power).long()
        owner = torch.from_numpy(boards.views.board[..., UNIT_OWNER]).view(count, most, provinces)
        mine = (owner == power.unsqueeze(2) + 1).to(x.dtype)
        mine = mine / mine.sum(-1, keepdim=True).clamp(min=1)
        mine = torch.einsum("kmv,kvmh->kmh", mine, x)
        who = weights["power.weight"].gather(1, power.unsqueeze(2).expand(-1, -1, x.shape[-1]))
        contexts = linear("order_context", torch.cat([x.mean(1), mine, who], -1))
        board_table = linear("order_provinces", x).view(-1, x.shape[-1])
        earlier = (weights[f"earlier_orders.{part}"].numpy() for part in ("weight", "bias"))
        return boards.draw(
            decisions,
            board_table.numpy(),
            weights["order_kinds.weight"].numpy(),
            contexts.numpy(),
            weights["score.weight"][:, 0].numpy(),
            tuple(earlier),
            self.autoregressive,
            noise,
        )


class PolicyGroup:
    """A group of policies that are asked in batches (players/protocols.PlayerGroup).

    Args:
        players: of one map; they learn here that they belong to this group.
        threads: that share the batches.
    """

    def __init__(self, players: Sequence[PolicyPlayer], threads: int):
        shapes: dict[tuple, list[PolicyPlayer]] = {}
        for player in players:
            shape = tuple((n, *w.shape) for n, w in player.agent.state_dict().items())
            shapes.setdefault((shape, player.agent.autoregressive), []).append(player)
        self.stacks = [Stack([player.agent for player in alike]) for alike in shapes.values()]
        # Where a player's network stands, by the player's number in the group.
        self.place = [(s, n) for s, alike in enumerate(shapes.values()) for n in range(len(alike))]
        ordered = [player for alike in shapes.values() for player in alike]
        self.number = {id(player): number for number, player in enumerate(ordered)}
        self.players = ordered
        for player in players:
            player.group = self
        self.pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def act(
        self, games: VectorGame, decisions: Decisions, players: Sequence[Player], who: np.ndarray
    ) -> np.ndarray:
        """Return order numbers (S,) int32; `players[who[d]]`, of this group, decides d."""
        known = [self.number.get(id(player), -1) for player in players]
        mine = np.array(known)[who]
        order = np.argsort(mine, kind="stable")
        asked, mine = decisions.take(order), mine[order]
        one = self.players[mine[0]]
        views = one.observe(games, asked.game, asked.power)
        numbers, firsts = np.unique(mine, return_index=True)
        ends = np.append(firsts[1:], len(mine))
        most = max(1, PROVINCES // views.board.shape[1])
        jobs = [
            self.pool.submit(self._act, numbers[a:b], firsts[a:b], ends[a:b], views, asked)
            for a, b in self._batches(numbers, ends - firsts, most)
        ]
        chosen = np.concatenate([job.result() for job in jobs])
        found = np.empty(len(chosen), np.int32)
        slots = ragged_rows(decisions.slot_start[order], asked.slot_start)
        found[slots] = order_numbers(asked, chosen)
        return found

    def _batches(self, numbers: np.ndarray, counts: np.ndarray, most: int) -> list[tuple[int, int]]:
        """Return the first and last + 1 of the players of each batch.

        They have networks of one shape and, all that are filled up included, `most` boards, unless
        one player alone has more.
        """
        batches, first = [], 0
        for i in range(1, len(numbers) + 1):
            if (
                i == len(numbers)
                or (i + 1 - first) * counts[first : i + 1].max() > most
                or self.place[numbers[i]][0] != self.place[numbers[first]][0]
            ):
                batches.append((first, i))
                first = i
        return batches

    def _act(self, numbers, firsts, ends, views, asked) -> np.ndarray:
        """Return what the players `numbers` of a batch choose for their decisions."""
        rows = np.arange(firsts[0], ends[-1])
        decisions = asked.take(rows)
        part = views._replace(row=views.row[rows], power=views.power[rows])
        stack = self.stacks[self.place[numbers[0]][0]]
        boards = StackedBoards(stack.inputs, part, ends - firsts)
        starts = decisions.order_start[decisions.slot_start[[*(firsts - firsts[0]), len(rows)]]]
        noise = [
            np.zeros(0, np.float32)
            if self.players[number].greedy
            else draws(self.players[number].generator, int(size))
            for number, size in zip(numbers, np.diff(starts))
        ]
        at = [self.place[number][1] for number in numbers]
        networks = slice(at[0], at[-1] + 1) if at[-1] - at[0] < len(at) else at
        return stack.act(networks, boards, decisions, noise)


def draws(generator: torch.Generator, count: int) -> np.ndarray:
    """Return as many numbers in (0, 1) as ppo.draw_noise does of as many orders."""
    return torch.rand(count, generator=generator).clamp(1e-20, 1 - 1e-7).numpy()


def population_players(
    population: Population,
    members: Sequence[PopulationMember],
    weights: Sequence[Mapping[str, np.ndarray]],
    greedy: bool,
    seed: int,
    threads: int,
) -> list[PolicyPlayer]:
    """Return members as players that are asked together, in `threads` threads; see load_members."""
    game_map, known, players = population.map, {}, []
    own = checkpoints.policy_dict(ppo.__file__, {}, game_map, {}, 0)
    for number, (member, arrays) in enumerate(zip(members, weights)):
        path = population.folder / member.file
        settings = vars(ppo.Args()) | member.settings
        shape = tuple(settings[name] for name in NETWORK)
        model = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if shape not in known:
            saved = own | {"args": settings, "model": model}
            known[shape] = agent = ppo.FILES.network(saved, path).requires_grad_(False).eval()
        else:  # a new network takes longer to make than a copy of one that is there
            with checkpoints.fitting(path, ppo.__file__):
                agent = ppo.frozen_copy(known[shape], model)
        drawn = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)
        player = ppo.policy_player(agent, member.name, int(drawn[0] >> 1), greedy, settings)
        players.append(player)
    PolicyGroup(players, threads)
    return players


class Policy(NamedTuple):
    """A policy of a run, as a population keeps it."""

    decisions: int  # that it had learned from
    settings: dict[str, Any]  # of the run
    command: str  # that trains so
    seed: int
    weights: dict[str, np.ndarray]


# What a member's settings keep: what a network is made of, and what its values mean.
KEPT = (*NETWORK, "map", "reward", "reward_mix", "gamma", "year_limit", "teams")


def policies_of_run(folder: str | Path, copies: int) -> list[Policy]:
    """Return the policies of a run by age, `copies` of them at about even distances.

    They are its newest one, those of its pool, and, if these are too few, those of its earlier
    checkpoints. Untrained ones are left out.
    """
    newest = checkpoints.policy_file(folder)
    found: dict[int, Policy] = {}
    for path in (newest, *sorted(newest.parent.glob("checkpoints/*.pt"))):
        if len(found) >= copies:
            break
        saved = ppo.FILES.read(path)
        ppo.load_agent(saved, path)  # says what is wrong if it cannot be played
        settings = ppo.FILES.settings(saved)
        models = {saved["global_step"]: saved["model"]}
        for copy in saved.get("pool", {}).get("all", ()):
            if copy["model"] is not None and copy["frozen_at"] > 0:
                models.setdefault(copy["frozen_at"], copy["model"])
        kept, seed = {name: settings[name] for name in KEPT}, settings["seed"]
        for decisions, model in models.items():
            weights = {name: weight.float().cpu().numpy() for name, weight in model.items()}
            policy = Policy(
                decisions, kept, command_of(settings, saved["script_name"]), seed, weights
            )
            found.setdefault(decisions, policy)
    ages = np.array(sorted(found))
    wanted = ages[-1] * np.arange(1, copies + 1) / copies
    picked = {int(np.abs(ages - age).argmin()) for age in wanted}
    return [found[int(ages[i])] for i in sorted(picked)]


def command_of(settings: dict[str, Any], script: str) -> str:
    """Return the command line by which a script trains with some settings.

    Flags that only another script than the plain trainer has are left out.
    """
    game_map = settings["map"]
    defaults = parse_args(ppo.Args, ["--map", game_map], ppo.CONFIGS).args
    left_out = {"map", "config", "exp_name", "runs_folder", "resume"}
    flags = flags_of(defaults, {n: v for n, v in settings.items() if n not in left_out})
    return f"{script} --map {shlex.quote(game_map)} {flags}".strip()
