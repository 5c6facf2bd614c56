"""Self-play PPO with talk: before each movement phase powers wish peace, or offer each other deals.

    python ppo_press_diplomacy.py --map three                  # with whom to wish peace
    python ppo_press_diplomacy.py --map three --press offers   # what to offer, what to agree to
    python -m diplomacy_engine evaluate --map three --press mutual \\
        --player runs/three__ppo_press...  --against peaceful+dumbbot

Deals bind (docs/press.md). What a power says is the first part of the same decision as its orders:
drawn by all policies at once, from the codes of both sides and of what is offered; then the lists
of legal orders are cut down to what the deals leave, and the orders are drawn from these. One
decision has one log-probability, of its talk and its orders, so that advantages, ratio and buffer
are those of ppo_selfplay_diplomacy.py, of which this replaces parts and which knows nothing of it:
the network's head (`Agent`), the phase (`SelfPlay`), the player. Of each there is a class for
wishes and one for offers. The one-file trainer stays readable, and runs without talk the same to
the bit.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.constants import NONE
from diplomacy_engine.games import BoardViews, Decisions
from diplomacy_engine.players.negotiators.policies import OfferingPlayer, WishingPlayer
from diplomacy_engine.press.table import Press, PressRules
from diplomacy_engine.press.views import (
    SLOTS,
    TEMPLATE_OF,
    TEMPLATES,
    OfferViews,
    TalkViews,
    who_can_answer,
)
from diplomacy_engine.rules.map import Map
from diplomacy_engine.selfplay.offer_round import OfferRound
from diplomacy_engine.selfplay.talk_counts import OfferCounts, TalkCounts
from diplomacy_engine.training import Clock
from diplomacy_engine.training.checks import NETWORK
from diplomacy_engine.training.parallel import Ranks
from diplomacy_engine.training.policy_files import PolicyFiles
from diplomacy_engine._fields import NonNegative


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings. The defaults are those of --map, with its file in configs/; flags win over both."""

    exp_name: str = "ppo_press_diplomacy"
    """name of this experiment, part of the run folder's name"""

    # Talk
    press: Literal["mutual", "offers"] = "mutual"
    """mutual: peace where two wish it; offers: one offer a phase, to which the other may agree"""
    wish_entropy: NonNegative = 1.0
    """what the entropy of the wishes, or of offers and answers, counts beside that of the orders"""


class Agent(ppo.Agent):
    """The network, of whose decisions talk is the first part: `draw_talk`, `_score_talk`."""

    def __init__(self, game_map: Map, *network, wish_entropy: float = 1.0):
        super().__init__(game_map, *network)
        self.wish_entropy = wish_entropy

    @staticmethod
    def draw_noise(shape: tuple[int, ...], generator: torch.Generator | None = None) -> np.ndarray:
        """Return noise in (0, 1), by which talk is drawn; None for torch's own generator."""
        return torch.rand(shape, generator=generator).numpy()

    def act(self, obs: TalkViews | OfferViews, decisions: Decisions, *how, **more):
        """Choose orders after the talk of `obs`; as Agent.act, the log-probability of both."""
        chosen, logprob, value = super().act(obs, decisions, *how, **more)
        return chosen, logprob + obs.talk_logprob, value

    def get_logprob_entropy_value(
        self, obs: TalkViews | OfferViews, decisions: Decisions, chosen: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Score talk and orders already chosen.

        Returns:
            (D,) log-probability of all of a decision together; (D,) entropy of the orders, a share
            of the greatest possible one, and of the talk, too, times `wish_entropy`; (D,) value.
        """
        encoded = self.encode(obs)
        logprob, entropy = self._score_chosen(obs, encoded, decisions, chosen)
        of_talk, talk_entropy = self._score_talk(obs, encoded)
        return logprob + of_talk, entropy + self.wish_entropy * talk_entropy, encoded[-1]


class WishingAgent(Agent):
    """The network with a head for wishes, whose orders know with whom there is peace."""

    def __init__(self, game_map: Map, *network, wish_entropy: float = 1.0):
        super().__init__(game_map, *network, wish_entropy=wish_entropy)
        hidden = self.power.embedding_dim
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
    def draw_talk(
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
        return wish, answers_logprob_entropy(logits, wish)[0].sum(1).numpy()

    def _score_talk(self, obs: TalkViews, encoded: tuple) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability (D,) of the wishes, and their mean entropy (0..1)."""
        logprob, entropy = answers_logprob_entropy(self.wish_logits(obs, encoded), obs.wish)
        asked = torch.from_numpy(obs.wish != NONE).to(entropy.device).sum(1)
        return logprob.sum(1), entropy.sum(1) / asked.clamp(min=1)


class OfferingAgent(Agent):
    """The network with heads for offers and answers, whose orders know with whom there are deals.

    An offer is scored from the codes of both powers, what kind it is, and the codes of the
    provinces it is about: from where and to where a unit moves, and who supports it.
    """

    def __init__(self, game_map: Map, *network, wish_entropy: float = 1.0):
        super().__init__(game_map, *network, wish_entropy=wish_entropy)
        hidden = self.power.embedding_dim
        self.deal_own = ppo.layer_init(nn.Linear(3 * hidden, hidden))
        self.deal_other = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.deal_places = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.deal_kinds = nn.Embedding(2 * len(TEMPLATES) + 1, hidden)  # offered, heard, nothing
        nn.init.normal_(self.deal_kinds.weight, std=0.3)
        self.offer = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins with all alike
        self.agree = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins near one half
        self.peace, self.deal = (nn.Linear(3 * hidden, hidden, bias=False) for _ in range(2))
        nn.init.zeros_(self.peace.weight)
        nn.init.zeros_(self.deal.weight)

    def talk_logits(
        self,
        obs: BoardViews,
        encoded: tuple,
        able: np.ndarray,
        places: np.ndarray,
        heard: np.ndarray,
        heard_places: np.ndarray,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score what powers can offer, and what they are offered.

        Args:
            obs, encoded: (D,) of the powers, and what `encode` returns of them.
            able, places: as in OfferViews.
            heard: (D, P, any) templates of what each power offers, NONE for nothing.
            heard_places: (D, P, any, PLACES), what that is about.

        Returns:
            (D, P * SLOTS + 1) logits of the offers, of none last, -inf for those that cannot be
            made; (D, P, any) logits of agreeing, 0 for nothing.
        """
        x, powers, view, _ = encoded
        # All deals in one list, first what can be offered, then what is heard.
        d, q, slot = np.nonzero(able)
        to, sender, k = np.nonzero(heard != NONE)
        at, power = np.concatenate([d, to]), np.concatenate([q, sender])
        about = np.concatenate([places[d, q, slot], heard_places[to, sender, k]]).astype(np.int64)
        kind = np.concatenate([TEMPLATE_OF[slot], heard[to, sender, k] + len(TEMPLATES)])
        row = obs.row[at]
        # The sum of their codes: provinces, kind, both powers.
        rows = np.where(about == NONE, 0, about * len(obs.board) + row[:, None])
        known = torch.from_numpy(about != NONE).to(x.device, x.dtype).view(-1, 1)
        codes = (rows_of(x.flatten(0, 1), rows) * known).view(len(at), 2, 3 * x.shape[-1]).sum(1)
        codes = self.deal_places(codes)  # a swap's two moves are added up
        who, of_who = np.unique(at, return_inverse=True)  # most decisions have nothing to say
        whom, of_whom = np.unique(row * self.num_powers + power, return_inverse=True)
        own = self.deal_own(rows_of(view, who))
        codes = codes + rows_of(own, of_who) + rows_of(self.deal_kinds.weight, kind)
        codes = codes + rows_of(self.deal_other(rows_of(powers, whom)), of_whom)
        offered, answered = F.relu(codes).split([len(d), len(to)])
        nothing = F.relu(own + self.deal_kinds.weight[-1])
        last = self.num_powers * SLOTS
        offers = x.new_full((len(able), last + 1), -torch.inf)
        offers[:, last] = 0
        columns = np.concatenate([q * SLOTS + slot, np.full(len(who), last)])
        where = torch.from_numpy(np.concatenate([d, who])), torch.from_numpy(columns)
        offers = offers.index_put(where, self.offer(torch.cat([offered, nothing])).squeeze(-1))
        where = tuple(map(torch.from_numpy, (to, sender, k)))
        answers = x.new_zeros(heard.shape).index_put(where, self.agree(answered).squeeze(-1))
        return offers, answers

    def context(self, obs: OfferViews, powers: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
        """Return what all orders of a decision have in common, and with whom there are deals."""
        context = super().context(obs, powers, view)
        for made, layer in ((obs.peace, self.peace), (obs.dealt, self.deal)):
            at, power = np.nonzero(made)
            partner = rows_of(powers, obs.row[at] * self.num_powers + power)
            context = context.index_add(0, torch.from_numpy(at).to(view.device), layer(partner))
        return context

    @torch.no_grad()
    def draw_talk(
        self,
        obs: BoardViews,
        able: np.ndarray,
        places: np.ndarray,
        heard: np.ndarray,
        heard_places: np.ndarray,
        noise: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Choose what each power offers, and whether it would agree to what it could be offered.

        Args:
            obs, able, places, heard, heard_places: as for `talk_logits`.
            noise: (D, 1 + P) in (0, 1), by which offers and answers are drawn; None: the likeliest.

        Returns:
            (D,) int16, power * SLOTS + slot of the offer, NONE for none; (D,) float32, its
            log-probability; (D, P, any) bool, what is agreed to; (D, P, any) float32, the
            log-probability of each of these answers.
        """
        given = self.encode(obs), able, places, heard, heard_places
        offers, answers = (part.float().cpu() for part in self.talk_logits(obs, *given))
        logprobs, last = offers.log_softmax(1), offers.shape[1] - 1
        if noise is None:
            choice, noise = offers.argmax(1), np.full((len(able), 2), 0.5, np.float32)
        else:
            drawn = torch.from_numpy(noise[:, :1]).contiguous()
            choice = torch.searchsorted(logprobs.exp().cumsum(1), drawn, right=True).squeeze(1)
            choice = choice.clamp(max=last)
        logprob = logprobs.gather(1, choice.unsqueeze(1)).squeeze(1)
        agreed = (torch.from_numpy(noise[:, 1:, None]) < answers.sigmoid()).numpy()
        said = np.where(heard == NONE, NONE, agreed).astype(np.int8)
        choice = np.where(choice == last, NONE, choice).astype(np.int16)
        return choice, logprob.numpy(), said == 1, answers_logprob_entropy(answers, said)[0].numpy()

    def _score_talk(self, obs: OfferViews, encoded: tuple) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability (D,) of offer and answers, and their mean entropy (0..1)."""
        heard = obs.heard[:, :, None], obs.heard_places[:, :, None]
        offers, answers = self.talk_logits(obs, encoded, obs.able, obs.places, *heard)
        logprobs = offers.log_softmax(1)
        choice = np.where(obs.choice == NONE, offers.shape[1] - 1, obs.choice).astype(np.int64)
        choice = torch.from_numpy(choice).to(offers.device).unsqueeze(1)
        possible = torch.isfinite(logprobs)
        each = -torch.where(possible, logprobs.exp() * logprobs.masked_fill(~possible, 0), 0.0)
        count = possible.sum(1)
        share = each.sum(1) / count.clamp(min=2).log()
        logprob, entropy = answers_logprob_entropy(answers.squeeze(-1), obs.answer)
        asked = torch.from_numpy(obs.answer != NONE).to(offers.device).sum(1) + (count > 1)
        of_offer = logprobs.gather(1, choice).squeeze(1)
        return of_offer + logprob.sum(1), (share + entropy.sum(1)) / asked.clamp(min=1)


def rows_of(table: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
    """Return the rows of a table that integers of any shape name, in one list."""
    return table.index_select(0, torch.from_numpy(rows.ravel()).to(table.device))


def answers_logprob_entropy(
    logits: torch.Tensor, answer: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probabilities of answers of yes (1) and no (0), and their entropies (0..1).

    Both have the shape of the answers; they are 0 for those that are NONE and were not asked for.
    """
    answer = torch.from_numpy(answer).to(logits.device)
    asked, sign = (answer != NONE).to(logits.dtype), torch.where(answer == 1, 1.0, -1.0)
    logprob, share = asked * F.logsigmoid(sign * logits), logits.sigmoid()
    each = -(share * F.logsigmoid(logits) + (1 - share) * F.logsigmoid(-logits)) / np.log(2)
    return logprob, asked * each


def draw_talk(known: dict, number: int, *asked) -> tuple[np.ndarray, ...]:
    """Return what `draw_talk` of a policy does when asked this."""
    return known[number].draw_talk(*asked)


class SelfPlay(ppo.SelfPlay):
    """Self-play in which all policies talk; powers that order at random and bots are silent.

    In each phase `begin` is called, then `question` for each policy, then `note` for each, then
    `settle`.
    """

    def decisions(self, clock: Clock) -> Decisions:
        """Hold the talk; return all decisions, with the orders that the deals leave."""
        games, seats = self.games, self.seating.seats
        with clock("games"):
            decisions = games.decisions()
            talking = decisions.take(self.talk.talking()[decisions.game])
            self.begin(decisions, who_can_answer(talking, seats.member.shape))
            at = talking.game, talking.power
            who = np.where(seats.warm_up[at] > 0, NONE, seats.member[at])
            questions, whose = [], []
            for number in self.pool.players(Agent):
                asking = talking.take(who == number)
                if asking.count:
                    at = asking.game, asking.power
                    questions.append((number, games.view_boards(*at), *self.question(*at)))
                    whose.append(at)
        with clock("inference"):
            self.workers.know(self.pool.players(Agent))
            sizes = [len(obs.board) + 10 for _, obs, *_ in questions]  # a call costs ten boards
            answers = self.workers.map(draw_talk, questions, sizes)
        with clock("games"):
            for at, said in zip(whose, answers):
                self.note(*at, *said)
            if talking.count:
                self.settle()
            return self.talk.bound(decisions)

    def figures(self, ranks: Ranks, global_step: int) -> dict[str, dict[str, float]]:
        """Return what is to be logged of the games since the last call, by group."""
        return super().figures(ranks, global_step) | {"press": self.counts.take(ranks.total)}


class WishingSelfPlay(SelfPlay):
    """Self-play with wishes of peace."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.talk = Press(self.games, "mutual")
        self.counts = TalkCounts(self.games.map.powers)
        shape = self.games.num_games, self.games.num_powers
        self.wish = np.full((*shape, shape[1]), NONE, np.int8)
        self.logprob = np.zeros(shape, np.float32)

    def begin(self, decisions: Decisions, able: np.ndarray) -> None:
        """Forget what was said; in this phase those can talk who are `able` (E, P) bool."""
        self.wish[:], self.logprob[:], self.able = NONE, 0, able

    def question(self, game: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what `draw_talk` is to know of powers (n,) of games (n,), beside the boards."""
        others = self.able[game] & (np.arange(self.games.num_powers) != power[:, None])
        return others, Agent.draw_noise(others.shape)

    def note(self, game: np.ndarray, power: np.ndarray, wish: np.ndarray, logprob: np.ndarray):
        """Keep what `draw_talk` has said for powers (n,) of games (n,)."""
        self.wish[game, power], self.logprob[game, power] = wish, logprob

    def settle(self) -> None:
        """Make the deals of this phase."""
        self.talk.propose(self.wish == 1)
        learns = self.seating.seats.stream != NONE
        self.counts.add(self.able, self.wish, learns, self.talk.deals.peace)

    def view(self, asked: Decisions) -> TalkViews:
        """Return what those see who decide, and their wishes and peace."""
        at = asked.game, asked.power
        talk = self.wish[at], self.logprob[at], self.talk.deals.peace[at]
        return TalkViews.of(super().view(asked), *talk)


class OfferingSelfPlay(SelfPlay):
    """Self-play with offers: one of each power in a phase, to a power that says yes or no."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.talk = Press(self.games, "offers")
        self.counts = OfferCounts(self.games.map.powers)

    def begin(self, decisions: Decisions, able: np.ndarray) -> None:
        """Forget what was said; in this phase those can talk who are `able` (E, P) bool."""
        self.round = OfferRound(self.talk, decisions, able)

    def question(self, game: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what `draw_talk` is to know of powers (n,) of games (n,), beside the boards."""
        noise = Agent.draw_noise((len(game), 1 + self.games.num_powers))
        return *self.round.question(game, power), noise

    def note(self, game: np.ndarray, power: np.ndarray, *said: np.ndarray) -> None:
        """Keep what `draw_talk` has said for powers (n,) of games (n,)."""
        self.round.note(game, power, *said)

    def settle(self) -> None:
        """Make the deals of this phase."""
        self.round.settle()
        self.counts.add(self.round.able, self.round.told, self.seating.seats.stream != NONE)

    def view(self, asked: Decisions) -> OfferViews:
        """Return what those see who decide, and their offers, answers and deals."""
        talk = (array[asked.game, asked.power] for array in self.round.told.values())
        return OfferViews(*super().view(asked), *talk)


class Parts(NamedTuple):
    """What one kind of talk is made of."""

    agent: type[Agent]
    self_play: type[SelfPlay]
    player: type[WishingPlayer]


PARTS = {
    "mutual": Parts(WishingAgent, WishingSelfPlay, WishingPlayer),
    "offers": Parts(OfferingAgent, OfferingSelfPlay, OfferingPlayer),
}


def press_player(
    agent: Agent, name: str, seed: int = 0, greedy: bool = False, settings: dict | None = None
) -> WishingPlayer:
    """Return an agent as a player of matches; `settings` are those it was trained with."""
    (kind,) = (parts.player for parts in PARTS.values() if isinstance(agent, parts.agent))
    return kind(agent, name, torch.Generator().manual_seed(seed), greedy, settings)


def load_policy_player(
    path: str | Path, greedy: bool = False, seed: int = 0, device: str = "cpu"
) -> WishingPlayer:
    """Return the policy of a checkpoint as a player; UserError if it cannot be played."""
    saved = FILES.read(path)
    agent = FILES.network(saved, path).to(device).eval()
    return press_player(agent, str(path), seed, greedy, FILES.settings(saved))


def make_agent(settings: dict, game_map: Map) -> Agent:
    """Return a new agent with the network settings of `settings`."""
    network = [settings[name] for name in NETWORK]
    kind = PARTS[settings["press"]].agent
    return kind(game_map, *network, wish_entropy=settings["wish_entropy"])


FILES = PolicyFiles(__file__, Args, ppo.READ, make_agent, partial(torch.device, "meta"))
checkpoint_header = FILES.header


class Run(ppo.Run):
    """A training run with talk."""

    files, player = FILES, staticmethod(press_player)

    def __init__(self, args: Args, *more):
        self.press, self.self_play_class = PressRules(args.press), PARTS[args.press].self_play
        super().__init__(args, *more)

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
