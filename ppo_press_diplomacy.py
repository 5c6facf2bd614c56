"""Self-play PPO with talk: before each movement phase powers say with whom they wish peace.

    python ppo_press_diplomacy.py --map three               # train
    python -m diplomacy_engine evaluate --map three --press mutual \\
        --player runs/three__ppo_press...  --against peaceful+dumbbot

Peace is made where both sides wish it, and it binds (docs/press.md). The wishes are the first part
of the same decision: a logit for each other power that can answer, from the codes of both; drawn by
all policies at once; then the lists of legal orders are cut down to what the peace leaves, and the
orders are drawn from these. One decision has one log-probability, of its wishes and its orders, so
that advantages, ratio and buffer are those of ppo_selfplay_diplomacy.py, of which this replaces
parts and which knows nothing of it: the network's head (`Agent`), the phase (`SelfPlay`), the
player (`PressPlayer`). Both stay readable, and runs without talk the same to the bit.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import VectorGame
from diplomacy_engine.constants import NONE
from diplomacy_engine.games import BoardViews, Decisions
from diplomacy_engine.players import PolicyPlayer
from diplomacy_engine.players.negotiation import Talk
from diplomacy_engine.players.negotiators.neighbors import (
    peace_answers,
    peace_choices,
    peace_offers,
    peace_proposals,
)
from diplomacy_engine.press.deals import Offers
from diplomacy_engine.press.table import Press, PressRules
from diplomacy_engine.press.views import TalkViews, who_can_answer
from diplomacy_engine.rules.map import Map
from diplomacy_engine.selfplay.talk_counts import TalkCounts
from diplomacy_engine.training import Clock
from diplomacy_engine.training.checks import NETWORK
from diplomacy_engine.training.parallel import Ranks
from diplomacy_engine.training.policy_files import PolicyFiles
from diplomacy_engine.training.ranges import NonNegative


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings. The defaults are those of --map, with its file in configs/; flags win over both."""

    exp_name: str = "ppo_press_diplomacy"
    """name of this experiment, part of the run folder's name"""

    # Talk
    wish_entropy: NonNegative = 1.0
    """what the entropy of the wishes counts beside that of the orders"""


class Agent(ppo.Agent):
    """The network with a head for wishes, whose orders know with whom there is peace."""

    def __init__(self, game_map: Map, *network, wish_entropy: float = 1.0):
        super().__init__(game_map, *network)
        self.wish_entropy, hidden = wish_entropy, self.power.embedding_dim
        self.wish_own = ppo.layer_init(nn.Linear(3 * hidden, hidden))
        self.wish_other = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.wish = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins near one half
        self.peace = nn.Linear(3 * hidden, hidden, bias=False)
        nn.init.zeros_(self.peace.weight)

    def _by_view(self, obs: BoardViews, of_powers: torch.Tensor) -> torch.Tensor:
        """Return what powers (G * P, H) of boards are for those who see them, (D, P, H)."""
        boards = of_powers.view(-1, self.num_powers, of_powers.shape[-1])
        return boards.index_select(0, torch.from_numpy(obs.row).to(boards.device))

    def wish_logits(self, obs: BoardViews, encoded: tuple) -> torch.Tensor:
        """Return the logit (D, P) of wishing peace with each power; `encoded` is from `encode`."""
        _, powers, view, _ = encoded
        others = self._by_view(obs, self.wish_other(powers))
        return self.wish(F.relu(self.wish_own(view).unsqueeze(1) + others)).squeeze(-1)

    def context(self, obs: TalkViews, powers: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
        """Return what all orders of a decision have in common, with whom there is peace as well."""
        partners = torch.from_numpy(obs.peace).to(view.device, view.dtype).unsqueeze(-1)
        at_peace = (partners * self._by_view(obs, self.peace(powers))).sum(1)
        return super().context(obs, powers, view) + at_peace

    @torch.no_grad()
    def draw_wishes(
        self, obs: BoardViews, asked: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Say with whom each power wishes peace.

        Args:
            obs: (D,) of the powers.
            asked: (D, P) bool, about which others.
            noise: (D, P) in (0, 1), by which it is drawn; 0.5 everywhere: what is likelier.

        Returns:
            (D, P) int8, 1 for a wish, 0 for none, NONE where not asked; (D,) float32, the
            log-probability of these.
        """
        logits = self.wish_logits(obs, self.encode(obs)).float().cpu()
        wish = torch.from_numpy(noise) < logits.sigmoid()
        wish = np.where(asked, wish.numpy(), NONE).astype(np.int8)
        return wish, wishes_logprob_entropy(logits, wish)[0].numpy()

    def act(self, obs: TalkViews, decisions: Decisions, *how, **more):
        """Choose orders after the wishes of `obs`; as Agent.act, the log-probability of both."""
        chosen, logprob, value = super().act(obs, decisions, *how, **more)
        return chosen, logprob + obs.wish_logprob, value

    def get_logprob_entropy_value(
        self, obs: TalkViews, decisions: Decisions, chosen: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Score wishes and orders already chosen.

        Returns:
            (D,) log-probability of all of a decision together; (D,) entropy of the orders, a share
            of the greatest possible one, and of the wishes, too, times `wish_entropy`; (D,) value.
        """
        encoded = self.encode(obs)
        logprob, entropy = self._score_chosen(obs, encoded, decisions, chosen)
        logits = self.wish_logits(obs, encoded)
        of_wishes, wish_entropy = wishes_logprob_entropy(logits, obs.wish)
        return logprob + of_wishes, entropy + self.wish_entropy * wish_entropy, encoded[-1]


def wishes_logprob_entropy(
    logits: torch.Tensor, wish: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probability (D,) of wishes (D, P), and their mean entropy as a share (0..1).

    Those that are NONE were not asked for and do not count.
    """
    wish = torch.from_numpy(wish).to(logits.device)
    asked, sign = (wish != NONE).to(logits.dtype), torch.where(wish == 1, 1.0, -1.0)
    logprob = (asked * F.logsigmoid(sign * logits)).sum(1)
    share = logits.sigmoid()
    each = -(share * F.logsigmoid(logits) + (1 - share) * F.logsigmoid(-logits)) / np.log(2)
    return logprob, (asked * each).sum(1) / asked.sum(1).clamp(min=1)


def draw_wishes(known: dict, number: int, *asked) -> tuple[np.ndarray, np.ndarray]:
    """Return what `Agent.draw_wishes` of a policy does when asked this."""
    return known[number].draw_wishes(*asked)


class SelfPlay(ppo.SelfPlay):
    """Self-play in which all policies talk; powers that order at random and bots are silent."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.talk = Press(self.games, "mutual")
        self.counts = TalkCounts(self.games.map.powers)
        shape = self.games.num_games, self.games.num_powers
        self.wish = np.full((*shape, shape[1]), NONE, np.int8)
        self.wish_logprob = np.zeros(shape, np.float32)

    def decisions(self, clock: Clock) -> Decisions:
        """Hold the talk; return all decisions, with the orders that the peace leaves."""
        games, seats = self.games, self.seating.seats
        self.wish[:], self.wish_logprob[:] = NONE, 0
        with clock("games"):
            decisions = games.decisions()
            talking = decisions.take(self.talk.talking()[decisions.game])
            able = who_can_answer(talking, self.wish.shape[:2])
            at = talking.game, talking.power
            who = np.where(seats.warm_up[at] > 0, NONE, seats.member[at])
            questions, whose = [], []
            for number in self.pool.players(Agent):
                asking = talking.take(who == number)
                if asking.count:
                    game, power = asking.game, asking.power
                    others = able[game] & (np.arange(games.num_powers) != power[:, None])
                    noise = torch.rand(others.shape).numpy()
                    questions.append((number, games.view_boards(game, power), others, noise))
                    whose.append((game, power))
        with clock("inference"):
            self.workers.know(self.pool.players(Agent))
            sizes = [len(obs.board) + 10 for _, obs, *_ in questions]  # a call costs ten boards
            answers = self.workers.map(draw_wishes, questions, sizes)
        with clock("games"):
            for at, (wish, logprob) in zip(whose, answers):
                self.wish[at], self.wish_logprob[at] = wish, logprob
            if talking.count:
                self.talk.propose(self.wish == 1)
                self.counts.add(able, self.wish, seats.stream != NONE, self.talk.deals.peace)
            return self.talk.bound(decisions)

    def view(self, asked: Decisions) -> TalkViews:
        """Return what those see who decide, and their wishes and peace."""
        at = asked.game, asked.power
        talk = self.wish[at], self.wish_logprob[at], self.talk.deals.peace[at]
        return TalkViews.of(super().view(asked), *talk)

    def figures(self, ranks: Ranks, global_step: int) -> dict[str, dict[str, float]]:
        """Return what is to be logged of the games since the last call, by group."""
        return super().figures(ranks, global_step) | {"press": self.counts.take(ranks.total)}


class PressPlayer(PolicyPlayer):
    """A policy as a player that talks: it wishes peace as it did in training.

    Where deals are offered, it offers and accepts peace alone, by the same wishes.
    """

    _peace: tuple | None = None

    def wishes(self, talk: Talk) -> np.ndarray:
        """Return with whom each power wishes peace, (n, P) bool."""
        shape = talk.games.num_games, talk.games.num_powers
        others = who_can_answer(talk.decisions, shape)[talk.game]
        others &= np.arange(shape[1]) != talk.power[:, None]
        noise = np.full(others.shape, 0.5, np.float32)
        if not self.greedy:
            noise = torch.rand(others.shape, generator=self.generator).numpy()
        obs = self.observe(talk.games, talk.game, talk.power)
        return self.agent.draw_wishes(obs, others, noise)[0] == 1

    def offers(self, talk: Talk) -> Offers:
        """Return an offer of peace to the most dangerous neighbor that it wishes peace with."""
        return peace_offers(talk, self.wishes(talk))

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Agree to peace alone, where it wishes it."""
        return peace_answers(talk, offers, self.wishes(talk))

    def proposals(self, talk: Talk) -> Offers:
        """Return an offer of peace to everybody it wishes it of."""
        return peace_proposals(talk, self.wishes(talk))

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Pick peace alone, where it wishes it."""
        return peace_choices(talk, offers, self.wishes(talk))

    def hear(self, talk: Talk) -> None:
        """Learn with whom there is peace, before it orders."""
        state, n = talk.games.state, np.arange(len(talk.game))
        peace = np.zeros((talk.games.num_games, *[talk.games.num_powers] * 2), bool)
        peace[talk.game, talk.power] = talk.known.peace[n, talk.power]
        self._peace = talk.games, state.seed.copy(), state.turn.copy(), peace

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> TalkViews:
        """Return what `powers` (n,) see in `rows` (n,), the peace of this phase, too."""
        views, peace = super().observe(games, rows, powers), None
        if self._peace is not None and self._peace[0] is games:
            _, seed, turn, known = self._peace
            now = (seed[rows] == games.state.seed[rows]) & (turn[rows] == games.state.turn[rows])
            peace = known[rows, powers] & now[:, None]
        return TalkViews.of(views, peace=peace, num_powers=games.num_powers)


def press_player(
    agent: Agent, name: str, seed: int = 0, greedy: bool = False, settings: dict | None = None
) -> PressPlayer:
    """Return an agent as a player of matches; `settings` are those it was trained with."""
    return PressPlayer(agent, name, torch.Generator().manual_seed(seed), greedy, settings)


def load_policy_player(
    path: str | Path, greedy: bool = False, seed: int = 0, device: str = "cpu"
) -> PressPlayer:
    """Return the policy of a checkpoint as a player; UserError if it cannot be played."""
    saved = FILES.read(path)
    agent = FILES.network(saved, path).to(device).eval()
    return press_player(agent, str(path), seed, greedy, FILES.settings(saved))


def make_agent(settings: dict, game_map: Map) -> Agent:
    """Return a new agent with the network settings of `settings`."""
    network = [settings[name] for name in NETWORK]
    return Agent(game_map, *network, wish_entropy=settings["wish_entropy"])


FILES = PolicyFiles(__file__, Args, ppo.READ, make_agent, partial(torch.device, "meta"))
checkpoint_header = FILES.header


class Run(ppo.Run):
    """A training run with talk."""

    files, self_play_class, player = FILES, SelfPlay, staticmethod(press_player)
    press = PressRules("mutual")

    def state_dict(self) -> dict:
        """Return a whole checkpoint."""
        talk = self.ranks.gather(self.self_play.counts.state_dict())
        return super().state_dict() | {"talk": talk}

    def load_state_dict(self, saved: dict) -> None:
        """Continue exactly from a `state_dict()` of as many ranks."""
        super().load_state_dict(saved)
        self.self_play.counts.load_state_dict(saved["talk"][self.ranks.rank])


def main(argv: list[str] | None = None) -> int:
    """Train; return the exit status, of what the user did wrong as well."""
    return ppo.main(argv, Run)


if __name__ == "__main__":
    sys.exit(main())
