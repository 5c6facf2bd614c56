"""Self-play PPO for no-press Diplomacy, in one file.

    python ppo_selfplay_diplomacy.py --map small                       # learn to beat DumbBot
    python ppo_selfplay_diplomacy.py --resume runs/small__...          # go on where a run stopped
    python ppo_selfplay_diplomacy.py --map small --track               # log to W&B as well
    torchrun --nproc_per_node=2 ppo_selfplay_diplomacy.py --map three --threads 1   # two ranks
    python -m diplomacy_engine evaluate --map small --player runs/small__.../checkpoint.pt

Many games run at once. In each, a few seats (one by default) are the learner's; every other seat is
played by a frozen copy of an earlier learner, drawn from a pool when the game starts and kept until
it ends. A *decision* is one power's orders in one phase. Powers skip phases in which they have
nothing to order, so each learner seat fills its own buffer, a *stream*, at its own pace; as soon as
one stream is full, PPO learns from every finished transition of all of them.

The loop is `train`, near the end. Before it: Args, Agent, GAE, the PPO loss, the update, self-play,
evaluation, checkpoints, the run. What needs no network is in diplomacy_engine. Its constants.py
explains the letters of shapes, such as D decisions, S order slots, V provinces, H hidden units.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import copy
import io
import signal
import sys
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from tensorboard.compat.proto.summary_pb2 import Summary
from torch import distributed, nn
from torch.nn import functional as F
from torch.utils.tensorboard import SummaryWriter

from diplomacy_engine import VectorGame, evaluate_player, load_player, vocabulary
from diplomacy_engine.constants import NONE
from diplomacy_engine.games import UNIT_OWNER, BoardViews, Decisions, StepResult, order_numbers
from diplomacy_engine.players import Explanation, PolicyPlayer, ask_player, checkpoints, orders_of
from diplomacy_engine.policy import FIRST_CLASS, FIRST_RELATION, NetworkInputs
from diplomacy_engine.policy.order_logits import RowSums, SlotScores, draw_orders
from diplomacy_engine.rules.map import Map
from diplomacy_engine.scoring import make_reward_mix
from diplomacy_engine.selfplay import Batch, Experience, League, RolloutBuffer, Seating, payment
from diplomacy_engine.selfplay.opponent_pool import LEARNER, Member, OpponentPool
from diplomacy_engine.selfplay.rollout_buffer import explained_variance
from diplomacy_engine.training import Clock, RunLog, StopSignals, launch
from diplomacy_engine.training.checks import NETWORK
from diplomacy_engine.training.nested import with_arrays, with_tensors
from diplomacy_engine.training.parallel import Ranks, TrainingError, Workers, keep_memory
from diplomacy_engine.training.policy_files import PolicyFiles
from diplomacy_engine.training.ranges import Between, Natural, NonNegative, Positive, Share
from diplomacy_engine.training.sample_games import thoughts

CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class Args:
    """Settings. The defaults are those of --map, with its file in configs/; flags win over both."""

    map: str = "small"
    """small, three, standard, or the path of a map file of your own"""
    config: str | None = None
    """settings file (TOML); default: configs/{map}.toml if there is one"""
    exp_name: str = "ppo_selfplay_diplomacy"
    """name of this experiment, part of the run folder's name"""
    seed: Annotated[int, Between(0, 2**62)] = 1
    """seed of all random numbers"""
    resume: str | None = None
    """run folder to continue; only --total-timesteps, --track and --cuda may be given with it"""
    start_from: str | None = None
    """checkpoint or run folder of a policy to begin with, instead of a random one"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""
    cuda: bool = False
    """use a GPU if there is one"""
    threads: Annotated[int, Between(1, 1024)] = 2
    """cores to use, by processes and by threads of the games; another number is another run"""
    track: bool = False
    """log to Weights & Biases as well"""
    wandb_project_name: str = "diplomacy-selfplay"
    """W&B project"""
    wandb_entity: str | None = None
    """W&B team or user"""
    wandb_mode: Literal["online", "offline"] = "online"
    """offline needs no account; upload later with `wandb sync`"""
    wandb_tags: tuple[str, ...] = ()
    """tags of the W&B run, besides the map"""

    # Games
    num_envs: Annotated[int, Between(1, 10**6)] = 256
    """games played at once, by all ranks of torchrun together"""
    max_years: Natural | None = None
    """game years after which a game ends (default: the map's; 0: never)"""
    year_limit: Literal["draw", "truncate"] = "draw"
    """draw: a draw by rule, which pays end rewards; truncate: a cut, the value is bootstrapped"""
    reward: str = "sum_of_squares"
    """reward by name, or module:function"""
    reward_mix: str = ""
    """several rewards with weights that may change over the run, instead of --reward"""
    teams: str = ""
    """powers that win and lose together: ENGLAND+ITALY, or more teams with commas between"""
    team_victory: Natural = 0
    """centers with which a team wins after a fall, if no other has as many; 0: none does"""
    learner_seats: Positive = 1
    """seats of each game that the learner plays and learns from; with --teams one team"""
    learner_powers: tuple[str, ...] = ()
    """powers that the learner plays in every game, instead of seats that are drawn"""
    partners: Literal["self", "pool"] = "self"
    """with --teams, who plays the learner's partners: itself, or a copy or bot of the pool"""
    weak_seats: Share = 0.0
    """how much more often the learner plays powers with which it wins less; 0: not at all"""
    opponent_temperature: Annotated[float, Between(0.01, 100)] = 1.0
    """opponents draw orders at a temperature between 1 and this, drawn for each seat"""
    warm_up_share: Share = 0.0
    """probability that a power begins a game with some phases of random orders"""
    warm_up_phases: Positive = 8
    """the most such phases; their number is drawn for each power"""
    finish_games: bool = False
    """play a game out after the learner's last power has been eliminated"""

    # PPO
    total_timesteps: Positive = 1_000_000
    """learner decisions in all; one is all orders of one power in one phase"""
    learning_rate: NonNegative = 1e-3
    """step size of Adam"""
    anneal_lr: bool = True
    """let the learning rate fall linearly to 0"""
    num_steps: Annotated[int, Between(2, 10**6)] = 32  # one alone is followed by no other
    """an update comes once a seat of the learner (a stream) has so many decisions"""
    gamma: Share = 0.99
    """discount per decision"""
    gae_lambda: Share = 0.95
    """lambda of generalised advantage estimation"""
    num_minibatches: Positive = 4
    """minibatches of one epoch"""
    update_epochs: Positive = 2
    """epochs of one update"""
    norm_adv: bool = True
    """normalise advantages in each minibatch"""
    clip_coef: NonNegative = 0.2
    """clipping range of the policy ratio (and of the value)"""
    clip_vloss: bool = False
    """clip the value loss"""
    ent_coef: NonNegative = 0.02
    """weight of the entropy, measured as a share (0..1) of the greatest possible one"""
    anneal_ent: bool = False
    """let the weight of the entropy fall linearly to 0"""
    vf_coef: NonNegative = 0.5
    """weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """clipping norm of the gradient"""
    target_kl: NonNegative | None = None
    """stop an update's epochs once the mean KL divergence of one passes this"""
    average: NonNegative = 0.0
    """keep averaged weights, those of update n counting as n ** AVERAGE; 0: the newest weights"""
    kl_coef: NonNegative = 0.0
    """pull towards that average's policy: weight of a KL term that is added to the advantages"""

    # Network
    hidden: Annotated[int, Between(1, 10**6)] = 64
    """width of the network's layers"""
    num_layers: Annotated[int, Between(0, 1024)] = 2
    """rounds of exchange between neighboring provinces"""
    autoregressive: bool = True
    """a unit's orders see those already given to earlier units of the decision"""
    value_shares: bool = False
    """values are the powers' shares of one whole, scaled, instead of each power's own number"""

    # Opponents
    pool_size: Positive = 10
    """frozen copies kept"""
    pool_interval: Positive = 50_000
    """learner decisions between two copies"""
    pool_sampling: Literal["latest", "uniform", "recency", "pfsp"] = "latest"
    """how a copy is drawn: newest with --latest-prob, uniformly, by age, or by how hard it is"""
    latest_prob: Share = 0.5
    """probability of the newest copy; the older ones share the rest"""
    recency_decay: Share = 0.8
    """weight of a copy relative to the next newer one, for --pool-sampling recency"""
    pool_bots: tuple[str, ...] = ()
    """bots, and players that search, added to the opponents"""
    pool_bot_prob: Share = 0.2
    """probability that an opponent's seat gets one of them, if there are any"""
    pool_schedule: Literal["rolling", "staged"] = "rolling"
    """rolling: the last --pool-size copies; staged: one copy, replaced as the --staged flags say"""
    staged_interval: Positive = 200_000
    """staged: learner decisions after which the copy is replaced at the latest"""
    staged_threshold: Share = 0.7
    """staged: score (win 1, draw 0.5) over the last --staged-games that replaces it sooner"""
    staged_games: Positive = 400
    """staged: games over which that score is taken"""
    exploit: str | None = None
    """train against this policy (checkpoint or run folder) alone: how far can it be exploited?"""
    exploit_greedy: bool = False
    """with --exploit: that policy gives its likeliest orders, as with `evaluate --greedy`"""

    # Evaluation and records
    eval_interval: Positive = 100_000
    """learner decisions between evaluations against the bots"""
    eval_games: Annotated[int, Between(1, 10**6)] = 200
    """games of one evaluation against one bot, all seats equally often"""
    eval_bots: tuple[str, ...] = ("random", "dumbbot")
    """players to evaluate against, by name or path; by default never used for training"""
    league_games: Natural = 28
    """games of one evaluation that rate the learner, three copies and those bots; 0: none"""
    eval_population: Natural = 0
    """games of one evaluation that rank the learner in the map's base population; 0: none"""
    save_interval: Positive = 250_000
    """learner decisions between checkpoints"""
    save_games: Natural = 2
    """sample games of each evaluation against one bot, kept in the run folder"""
    capture_games: Natural = 1
    """how many of these also get a replay page and TensorBoard images"""
    capture_thoughts: bool = False
    """whether sample games keep the policy's order probabilities and values, for the page"""


def layer_init(layer: nn.Linear, std: float = 2**0.5) -> nn.Linear:
    """Initialise a layer orthogonally with zero bias, as PPO implementations do."""
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    """Policy and value network; its size does not depend on the number of orders of the map.

    Each board is encoded once for all its powers, per province, with the map's borders as the
    wiring of a small graph network. An order is scored from what it is (kind, unit's province,
    place, supported or convoyed unit), from those provinces' codes and from how they stand to the
    deciding power. With `autoregressive`, a unit's scores also see the orders already given to
    earlier units of the same decision.
    """

    def __init__(
        self,
        game_map: Map,
        hidden: int = 64,
        num_layers: int = 2,
        autoregressive: bool = True,
        value_shares: bool = False,
    ):
        super().__init__()
        self.vocabulary_hash, self.inputs = vocabulary(game_map).hash, NetworkInputs(game_map)
        self.autoregressive, self.value_shares = autoregressive, value_shares
        self.num_powers = len(game_map.powers)
        self.register_buffer("borders", torch.from_numpy(self.inputs.borders), False)
        self.province_features = nn.Embedding(self.inputs.num_features, hidden)
        self.global_features = layer_init(nn.Linear(self.inputs.num_globals, hidden))

        def layers(std: float = 2**0.5, bias: bool = True) -> nn.ModuleList:
            made = (nn.Linear(hidden, hidden, bias) for _ in range(num_layers))
            return nn.ModuleList(layer_init(layer, std) for layer in made)

        self.own, self.near, self.out = layers(), layers(bias=False), layers(0.5)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(num_layers + 1))

        self.power = nn.Embedding(self.num_powers, hidden)
        self.order_provinces = layer_init(nn.Linear(hidden, 3 * hidden))  # source, place, other
        self.order_kinds = nn.Embedding(self.inputs.num_kinds, hidden)
        self.order_context = layer_init(nn.Linear(3 * hidden, hidden))
        self.earlier_orders = layer_init(nn.Linear(hidden, hidden), 0.5)
        for table in (self.province_features, self.power):
            nn.init.normal_(table.weight, std=0.3)
        kinds = self.order_kinds.weight.data
        nn.init.normal_(kinds[:FIRST_CLASS], std=0.1)
        nn.init.normal_(kinds[FIRST_CLASS:FIRST_RELATION], std=0.3)
        nn.init.zeros_(kinds[FIRST_RELATION:])
        self.score = layer_init(nn.Linear(hidden, 1, bias=False), 0.1)
        first = layer_init(nn.Linear(3 * hidden, hidden))
        self.critic = nn.Sequential(first, nn.ReLU(), layer_init(nn.Linear(hidden, 1), 1.0))
        if value_shares:  # rewards need not be shares themselves
            self.share_scale = nn.Parameter(torch.tensor([0.0, 1.0]))

    def encode(self, obs: BoardViews) -> tuple[torch.Tensor, ...]:
        """Return the boards' codes of provinces (V, G, H) and powers (G * P, 3 H).

        And of the viewing powers the codes (D, 3 H) and values (D,).
        """
        device = self.borders.device
        sums = RowSums(self.inputs.features(obs))
        x = Kernel.apply(sums, self.province_features.weight.cpu())[0].to(device)
        x = x.view(-1, len(obs.board), x.shape[-1])
        x = x + self.global_features(torch.from_numpy(self.inputs.globals(obs)).to(device))
        for norm, own, near, out in zip(self.norms, self.own, self.near, self.out):
            y = norm(x)
            mixed = torch.addmm(own(y).flatten(1), self.borders, near(y).flatten(1)).view_as(x)
            x = x + out(F.relu(mixed))
        x = self.norms[-1](x)
        powers = torch.arange(1, self.num_powers + 1, device=device)
        owner = torch.from_numpy(obs.board[..., UNIT_OWNER]).to(device).unsqueeze(1)
        mine = (owner == powers[:, None]).to(x.dtype)  # (G, P, V)
        mine = mine / mine.sum(-1, keepdim=True).clamp(min=1)
        mine = torch.bmm(mine, x.transpose(0, 1))
        whole = x.mean(0).unsqueeze(1).expand_as(mine)
        codes = torch.cat([whole, mine, self.power.weight.expand_as(mine)], -1).flatten(0, 1)
        of_view = torch.from_numpy(obs.row * self.num_powers + obs.power).to(device)
        view = codes.index_select(0, of_view)
        if not self.value_shares:
            return x, codes, view, self.critic(view).squeeze(-1)
        shares = self.critic(codes).view(-1, self.num_powers).softmax(1).flatten()
        least, whole = self.share_scale
        return x, codes, view, least + whole * shares.index_select(0, of_view)

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        """Return the value (D,) of the boards for the powers that view them."""
        return self.encode(obs)[-1]

    def context(self, obs: BoardViews, powers: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
        """Return what all orders of a decision have in common, (D, H); arguments as of `encode`."""
        return self.order_context(view)

    @torch.no_grad()
    def values(self, obs: BoardViews) -> np.ndarray:
        """Return the same as an array, float32."""
        return self.get_value(obs).float().cpu().numpy()

    def _tables(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tables that orders' codes are summed up from (policy/order_logits.py)."""
        return self.order_provinces(x).view(-1, x.shape[-1]).cpu(), self.order_kinds.weight.cpu()

    @torch.no_grad()
    def act(
        self,
        obs: BoardViews,
        decisions: Decisions,
        generator: torch.Generator | None = None,
        greedy: bool = False,
        temperature: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Choose orders, unit by unit.

        Args:
            obs: (D,) of the deciding powers.
            decisions: D of them.
            generator: of the draws; None for torch's own.
            greedy: choose the likeliest orders instead of drawing.
            temperature: (D,), divides the scores of the orders that are drawn from; None for 1.
            noise: (N,) as `draw_noise` returns it; None: draw it now.

        Returns:
            chosen (S,) int64, positions in the slots' lists; (D,) log-probability of all orders of
            a decision together, at temperature 1; (D,) value.
        """
        if temperature is None:
            temperature = np.ones(decisions.count, np.float32)
        if greedy or noise is None:
            noise = np.zeros(0, np.float32) if greedy else draw_noise(decisions, generator)
        (chosen, logprob, _), value = self._draw(obs, decisions, noise, temperature)
        return chosen, logprob, value

    @torch.no_grad()
    def explain(self, obs: BoardViews, decisions: Decisions) -> Explanation:
        """Return the probability of every legal order, and the values."""
        likeliest, cold = np.zeros(0, np.float32), np.ones(decisions.count, np.float32)
        (_, _, probability), value = self._draw(obs, decisions, likeliest, cold)
        return Explanation(probability, value)

    def _draw(self, obs: BoardViews, decisions: Decisions, noise: np.ndarray, heat: np.ndarray):
        """Return what `draw_orders` (policy/order_logits.py) finds, and the values (D,)."""
        x, powers, view, value = self.encode(obs)
        layer, score = self.earlier_orders, self.score.weight[0]
        context = self.context(obs, powers, view)
        tables = (*self._tables(x), context, score, layer.weight, layer.bias)
        boards, kinds, context, score, *layer = (table.cpu().numpy() for table in tables)
        rows, columns = self.inputs.orders(obs, decisions), self.inputs.columns
        tables = boards, kinds, context, score, tuple(layer), self.autoregressive
        found = draw_orders(columns, decisions, rows, *tables, noise, heat)
        return found, value.float().cpu().numpy()

    def get_logprob_entropy_value(
        self, obs: BoardViews, decisions: Decisions, chosen: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Score orders already chosen.

        Returns:
            (D,) log-probability of all orders of a decision; (D,) entropy along the chosen path as
            a share (0..1) of the greatest possible one; (D,) value.
        """
        encoded = self.encode(obs)
        return *self._score_chosen(obs, encoded, decisions, chosen), encoded[-1]

    def _score_chosen(self, obs: BoardViews, encoded: tuple, decisions: Decisions, chosen):
        """Return log-probability and entropy, as above, of what `encode` has returned."""
        x, powers, view, _ = encoded
        boards, kinds = self._tables(x)
        picked = decisions.order_start[:-1] + chosen
        rows = self.inputs.orders(obs, decisions, picked, self.autoregressive)
        decision = decisions.slot_decision
        of_decision = torch.from_numpy(decision)
        bases = self.context(obs, powers, view).cpu().index_select(0, of_decision)
        if self.autoregressive:
            of_boards, of_kinds = rows.of_chosen(picked)
            codes = bases + Kernel.apply(RowSums(of_boards), boards)[0]
            codes = codes + Kernel.apply(RowSums(of_kinds), kinds)[0]
            codes = self.earlier_orders(F.relu(codes).to(x.device)).cpu()
            most = int(np.diff(decisions.slot_start).max(initial=0))
            rank = np.arange(len(picked)) - decisions.slot_start[:-1][decision]
            place = torch.from_numpy(decision * most + rank)
            memory = codes.new_zeros(decisions.count * most, codes.shape[1])
            memory = memory.index_copy(0, place, codes).view(-1, most, codes.shape[1])
            memory = (memory.cumsum(1) - memory).flatten(0, 1)  # of the slots before
            bases = bases + memory.index_select(0, place)
        weight = self.score.weight[0].cpu()
        scores = SlotScores(decisions, rows, picked)
        of_slots = Kernel.apply(scores, boards, kinds, bases, weight)
        zeros = bases.new_zeros(decisions.count)
        logprob, entropy, greatest = (
            zeros.index_add(0, of_decision, part).to(x.device) for part in of_slots
        )
        return logprob, entropy / greatest.clamp(min=1e-6)


def draw_noise(decisions: Decisions, generator: torch.Generator | None = None) -> np.ndarray:
    """Return (N,) uniform in (0, 1), by which orders are drawn; None for torch's own generator."""
    return torch.rand(len(decisions.order), generator=generator).clamp(1e-20, 1 - 1e-7).numpy()


class Kernel(torch.autograd.Function):
    """RowSums or SlotScores of policy/order_logits.py as an operation of PyTorch."""

    @staticmethod
    def forward(ctx, operation, *inputs):
        """Return the operation's results."""
        ctx.operation = operation
        results = operation.forward(*(tensor.detach().contiguous().numpy() for tensor in inputs))
        return tuple(map(torch.from_numpy, results))

    @staticmethod
    def backward(ctx, *slopes):
        """Return the gradients of the inputs."""
        gradients = ctx.operation.backward(*(slope.contiguous().numpy() for slope in slopes))
        return None, *map(torch.from_numpy, gradients)


def compute_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    next_values: np.ndarray,
    ends: np.ndarray,
    closed: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Generalised advantage estimates (Schulman et al. 2016) of ragged streams.

    Args:
        rewards, values: (T, streams).
        next_values: (T, streams), value of the stream's next decision; 0 after a terminal
            transition, the final position's value after a truncated one.
        ends: (T, streams) bool, the transition is the last of its game.
        closed: (T, streams) bool, which entries are transitions to learn from.

    Returns:
        (T, streams) float32 advantages, 0 where `closed` is false.
    """
    advantages = np.zeros_like(rewards)
    lastgaelam = np.zeros(rewards.shape[1], np.float32)
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * next_values[t] - values[t]
        lastgaelam = delta + gamma * gae_lambda * np.where(ends[t], 0.0, lastgaelam)
        advantages[t] = lastgaelam = np.where(closed[t], lastgaelam, 0.0)
    return advantages


LOSSES = ("policy_loss", "value_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


def ppo_loss(
    args: Args,
    ent_coef: float,
    newlogprob: torch.Tensor,
    entropy: torch.Tensor,
    newvalue: torch.Tensor,
    logprobs: torch.Tensor,
    values: torch.Tensor,
    advantages: torch.Tensor,
    returns: torch.Tensor,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the PPO loss of a minibatch (all arguments (B,)) and the figures to log."""
    logratio = newlogprob - logprobs
    ratio = logratio.exp()
    with torch.no_grad():  # http://joschu.net/blog/kl-approx.html
        old_approx_kl = (-logratio).mean()
        approx_kl = ((ratio - 1) - logratio).mean()
        clipfrac = ((ratio - 1.0).abs() > args.clip_coef).float().mean()
    pg_loss1 = -advantages * ratio
    pg_loss2 = -advantages * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    if args.clip_vloss:
        v_clipped = values + torch.clamp(newvalue - values, -args.clip_coef, args.clip_coef)
        v_loss = 0.5 * torch.max((newvalue - returns) ** 2, (v_clipped - returns) ** 2).mean()
    else:
        v_loss = 0.5 * ((newvalue - returns) ** 2).mean()
    entropy_loss = entropy.mean()
    loss = pg_loss - ent_coef * entropy_loss + v_loss * args.vf_coef
    figures = pg_loss, v_loss, entropy_loss, old_approx_kl, approx_kl, clipfrac
    return loss, {name: figure.detach() for name, figure in zip(LOSSES, figures)}


def normalized(advantages: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return advantages of a minibatch, scaled so that `whole` has mean 0 and deviation 1."""
    if len(whole) < 2:
        return advantages
    return (advantages - whole.mean()) / (whole.std(ddof=1) + 1e-8)


def update_average(average: Agent, agent: Agent, updates: int, power: float) -> None:
    """Take new weights into the average of those after each of `updates` updates before.

    Polynomial decay (Shamir & Zhang 2013): the weights after update n count about as n ** power.
    """
    for kept, new in zip(average.parameters(), agent.parameters()):
        kept.lerp_(new.detach(), (power + 1) / (power + 1 + updates))


def kl_to_average(args: Args, average: Agent, batch: Batch) -> np.ndarray:
    """Return what is added to the advantages (B,) of a batch to pull the policy to its average.

    Its gradient is that of the sampled KL divergence from it (Sokota et al. 2022).
    """
    term = np.zeros_like(batch.values)
    for rows in batch.split(args.num_minibatches):
        logprobs, _, _ = average.get_logprob_entropy_value(*batch.take(rows).experience)
        term[rows] = args.kl_coef * (logprobs.cpu().numpy() - batch.logprobs[rows])
    return term


def gradients(
    known: dict, args: Args, ent_coef: float, rows: np.ndarray, advantages: np.ndarray, share: float
) -> np.ndarray:
    """Return the gradients of all weights, then the LOSSES, for a `share` of a minibatch, times it.

    `rows` (B,) are those of the batch, `advantages` (B,) take the place of its own.
    """
    agent, part = known[LEARNER], known["batch"].take(rows)._replace(advantages=advantages)
    newlogprob, entropy, newvalue = agent.get_logprob_entropy_value(*part.experience)
    old = (torch.from_numpy(array).to(newvalue.device) for array in part[1:-1])
    loss, figures = ppo_loss(args, ent_coef, newlogprob, entropy, newvalue, *old)
    unused = {"allow_unused": True, "materialize_grads": True}  # zeros where nothing was used
    found = *torch.autograd.grad(loss, list(agent.parameters()), **unused), *figures.values()
    return torch.cat([part.flatten() for part in found]).cpu().numpy() * share


def update(
    args: Args,
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    ent_coef: float,
    rng: np.random.Generator,
    clock: Clock,
    workers: Workers | None = None,
    ranks: Ranks | None = None,
) -> dict[str, float]:
    """Learn from a batch in epochs of minibatches; return `losses/*`, means over minibatches.

    A minibatch is what all ranks draw together; each worker of a rank takes a part of its own.
    """
    workers, ranks = workers or Workers(1, {LEARNER: agent}), ranks or Ranks()
    device, parameters = agent.borders.device, list(agent.parameters())
    sizes = [*(parameter.numel() for parameter in parameters), len(LOSSES)]
    with clock("batching"):
        workers.know(workers.known | {"batch": batch})
    collected = []
    for _ in range(args.update_epochs):
        epoch = []
        for rows, whole in ranks.deal(batch.split(args.num_minibatches, rng), batch.advantages):
            with clock("batching"):
                own = batch.advantages[rows]
                scaled = normalized(own, whole) if args.norm_adv else own
                scaled = scaled + batch.kl_term[rows]
                parts = batch.split(workers.count, among=rows)
                parts = [(rows[part], scaled[part], len(part) / len(whole)) for part in parts]
            with clock("learning"):
                found = workers.map(gradients, [(args, ent_coef, *part) for part in parts])
                found = torch.from_numpy(sum(found, np.zeros(sum(sizes), np.float32)))
                *grads, figures = ranks.total_tensor(found.to(device)).split(sizes)
                for parameter, grad in zip(parameters, grads):
                    parameter.grad = grad.view_as(parameter)
                nn.utils.clip_grad_norm_(parameters, args.max_grad_norm)
                optimizer.step()
                epoch.append(figures.clone())
        collected += epoch
        kl = torch.stack(epoch).mean(0)[LOSSES.index("approx_kl")]
        if args.target_kl is not None and kl > args.target_kl:
            break
    means = dict(zip(LOSSES, torch.stack(collected).mean(0).tolist()))
    if not all(np.isfinite(value) for value in means.values()):
        raise TrainingError(f"a loss is not finite ({means})")
    if not checkpoints.is_sound(parameters, optimizer.state.values()):
        raise TrainingError(f"a weight is not finite, or beyond {checkpoints.MOST_WEIGHT:,.0f}")
    return means | explained_variance(ranks.gather((batch.returns, batch.values)))


def frozen_copy(agent: Agent, model: dict | None = None) -> Agent:
    """Return a copy of the agent that never learns, with the weights `model` if given."""
    frozen = copy.deepcopy(agent).requires_grad_(False).eval()
    if model is not None:
        checkpoints.check_weights(model, frozen.state_dict())
        frozen.load_state_dict(model)
    return frozen


def choose(known: dict, number: int, *asked) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `Agent.act` of a policy does when asked this."""
    return known[number].act(*asked)


class SelfPlay:
    """The running games: asks everybody for orders, and gives learners' buffers what they learn.

    Who sits where, and until when a power gives random orders, is `seating`'s business.
    """

    def __init__(
        self,
        args: Args,
        game_map: Map,
        pool: OpponentPool,
        rng: np.random.Generator,
        workers: Workers | None = None,
    ):
        self.args, self.pool, self.workers = args, pool, workers or Workers(1, {})
        where = {"seed": args.seed, "max_years": args.max_years, "threads": args.threads}
        self.games = VectorGame(game_map, args.num_envs, auto_reset=False, **where)
        self.random_bot = load_player("random")
        self.seating = Seating(args, self.games, pool, rng)

    def decisions(self, clock: Clock) -> Decisions:
        """Return all decisions of this phase."""
        with clock("games"):
            return self.games.decisions()

    def view(self, asked: Decisions) -> BoardViews:
        """Return what those see who decide."""
        return self.games.view_boards(asked.game, asked.power)

    def step(self, clock: Clock) -> tuple[StepResult, dict[str, int]]:
        """Play one phase of every game; return its result and by how much each counter rises."""
        games, seats, decisions = self.games, self.seating.seats, self.decisions(clock)
        with clock("games"):
            at = decisions.game, decisions.power
            warm = seats.warm_up[at] > 0
            who = np.where(warm, NONE, seats.member[at])
            orders = orders_of(games, self.random_bot, decisions.take(warm))
        counts = {"global_step": 0, "order_steps": 0, "env_steps": games.num_games}
        questions = []
        for number in np.unique(who[~warm]).tolist():
            member = self.pool.all[number]
            with clock("games"):
                asked = decisions.take(who == number)
                if not isinstance(member.player, Agent):
                    games.write_orders(orders, asked, ask_player(games, asked, member.player))
                    continue
                obs = self.view(asked)
            greedy = self.args.exploit_greedy and member.buffer is None
            temperature = seats.temperature[asked.game, asked.power]
            questions.append((number, obs, asked, None, greedy, temperature, draw_noise(asked)))
        with clock("inference"):
            self.workers.know(self.pool.players(Agent))
            sizes = [len(obs.board) + 10 for _, obs, *_ in questions]  # a call costs ten boards
            answers = self.workers.map(choose, questions, sizes)
        with clock("games"):
            for (_, _, asked, *_), (chosen, _, _) in zip(questions, answers):
                games.write_orders(orders, asked, order_numbers(asked, chosen))
        for (number, obs, asked, *_), (chosen, *found) in zip(questions, answers):
            member = self.pool.all[number]
            if member.buffer is not None:
                with clock("batching"):
                    self.learn_from(member, Experience(obs, asked, chosen), orders, *found)
                counts["global_step"] += asked.count
                counts["order_steps"] += len(asked.slot_province)
        with clock("games"):
            return games.step(orders), counts

    def learn_from(self, member: Member, taken: Experience, orders: np.ndarray, *found) -> None:
        """Store what a learner did, its log-probabilities and values; `orders` (E, V) are all."""
        streams = self.seating.seats.stream[taken.decisions.game, taken.decisions.power]
        member.buffer.add(streams, taken, *found)

    def credit(self, result: StepResult, progress: float) -> None:
        """Pay the learners' streams, and close those that are over (selfplay/payment.py).

        `progress` (0..1) is the share of the training done, by which the reward mix may anneal.
        """
        truncates = self.args.year_limit == "truncate"
        payment.pay_learners(self.seating, result, progress, truncates, self._values)

    def close_all(self) -> None:
        """Close what is open at the end of the run with the value of the current positions."""
        payment.close_streams(self.seating, self._values)

    def figures(self, ranks: Ranks, global_step: int) -> dict[str, dict[str, float]]:
        """Return what is to be logged of the games since the last call, by group."""
        return {"selfplay": self.seating.take_statistics(global_step)}

    def _values(self, agent: Agent, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return the value (n,) of the current positions of games `rows` for `powers`."""
        if not len(rows):
            return np.zeros(0, np.float32)
        return agent.values(self.games.view_boards(rows, powers))


def policy_player(
    agent: Agent, name: str, seed: int = 0, greedy: bool = False, settings: dict | None = None
) -> PolicyPlayer:
    """Return an agent as a player of matches; `settings` are those it was trained with."""
    return PolicyPlayer(agent, name, torch.Generator().manual_seed(seed), greedy, settings)


def load_policy_player(
    path: str | Path, greedy: bool = False, seed: int = 0, device: str = "cpu"
) -> PolicyPlayer:
    """Return the policy of a checkpoint as a player; UserError if it cannot be played."""
    saved = FILES.read(path)
    agent = load_agent(saved, path).to(device).eval()
    return policy_player(agent, str(path), seed, greedy, FILES.settings(saved))


def evaluate(run: "Run") -> tuple[dict[str, dict], dict[str, list[dict]]]:
    """Play the current policy against each bot, all seats equally often; never trained on.

    With --exploit, the exploited policy is played against as well. The ranks share the opponents.
    Returns the result against each opponent (see Evaluation.result), and sample games against it.
    """
    args = run.args

    def play(nth: int, name: str) -> tuple[dict, list[dict]]:
        seed = int(np.random.SeedSequence([args.seed, run.global_step, nth]).generate_state(1)[0])
        player, frozen = run.player(run.policy, "learner", seed), run.pool.members[0].player
        exploited = run.player(frozen, str(args.exploit), seed + 1, args.exploit_greedy)
        report = evaluate_player(
            run.game_map,
            player,
            exploited if name == "exploited" else load_player(name, game_map=run.game_map),
            num_games=args.eval_games,
            seed=seed,
            max_years=args.max_years or None,  # an evaluation needs some limit
            year_limit=args.year_limit,
            threads=args.threads,
            samples=args.save_games,
            think=partial(thoughts, player) if args.capture_thoughts else None,
            press=run.press,
        )
        return report.result(), report.saved_games

    found = run.ranks.share_out([*args.eval_bots, *["exploited"] * bool(args.exploit)], play)
    return tuple({name: found[name][part] for name in found} for part in range(2))


def make_agent(settings: dict, game_map: Map) -> Agent:
    """Return a new agent with the network settings of `settings`."""
    return Agent(game_map, *(settings[name] for name in NETWORK))


READ = partial(torch.load, map_location="cpu", weights_only=True)  # runs no code of a file
FILES = PolicyFiles(__file__, Args, READ, make_agent, partial(torch.device, "meta"))
checkpoint_header, load_agent = FILES.header, FILES.network
LOG_TOOLS = launch.LogTools(SummaryWriter, Summary, partial(import_module, "wandb"))


class Run:
    """Everything that changes while training goes on.

    `rng` draws seats, opponents and minibatches; torch's own generator samples orders. `exploited`
    is the policy of --exploit as `load_policy` returns it, `weights` those to begin with.
    """

    # What a script built on this one replaces: talk in evaluations, too, and stopping after each.
    files, self_play_class, player = FILES, SelfPlay, staticmethod(policy_player)
    press, pauses = None, False

    def __init__(
        self,
        args: Args,
        game_map: Map,
        device: torch.device,
        ranks: Ranks | None = None,
        exploited: dict | None = None,
        weights: dict | None = None,
    ):
        self.args, self.game_map, self.exploited = args, game_map, exploited
        self.ranks = ranks or Ranks()
        own = self.ranks.share(args)
        keep_memory()
        torch.set_num_threads(1)
        torch.manual_seed(args.seed)
        self.rng = np.random.default_rng(own.seed)
        self.agent = self.files.make(vars(args), game_map).to(device)
        if weights:
            self.agent.load_state_dict(weights)
        self.average = frozen_copy(self.agent) if args.average else None
        adam = {"lr": args.learning_rate, "eps": 1e-5, "foreach": True}  # fewer calls of PyTorch
        self.optimizer = torch.optim.Adam(self.agent.parameters(), **adam)
        if own.seed != args.seed:
            torch.manual_seed(own.seed)  # only the first weights are the same draws on all ranks
        load = self.files.network
        opponent = load(exploited, args.exploit).to(device) if exploited else self.agent
        reward = make_reward_mix(args.reward_mix or args.reward, game_map.teams)
        self.buffer = RolloutBuffer(args.num_steps, own.num_envs * args.learner_seats, reward.parts)
        learner = Member(LEARNER, self.agent, buffer=self.buffer, reward=reward)
        self.pool = OpponentPool(args, frozen_copy(opponent), [learner], self.ranks.gather)
        known = {member.number: member.player.share_memory() for member in self.pool.learners}
        self.workers = Workers(args.threads if device.type == "cpu" else 1, known)
        self.self_play = self.self_play_class(own, game_map, self.pool, self.rng, self.workers)
        self.league = League.of(args, game_map, self.ranks.rank == 0)
        self.counters = dict.fromkeys(launch.COUNTERS, 0)
        self.next_eval, self.next_save = args.eval_interval, args.save_interval
        self.seconds = 0.0  # spent by earlier processes of this run
        self.evaluations: dict[str, dict] = {}  # bot -> its last evaluation

    @property
    def global_step(self) -> int:
        """Learner decisions made so far."""
        return self.counters["global_step"]

    @property
    def policy(self) -> Agent:
        """What is evaluated, frozen and kept: the agent, or the average of its weights.

        Self-play that answers its newest copies goes around in circles; an average does not.
        """
        return self.average or self.agent

    @property
    def progress(self) -> float:
        """The share of the training that is behind, 0..1."""
        return min(1.0, self.global_step / self.args.total_timesteps)

    def state_dict(self) -> dict:
        """Return a whole checkpoint: the policy, and all that an exact continuation needs."""
        written = self.files.script, asdict(self.args), self.game_map, self.policy.state_dict()
        policy = checkpoints.policy_dict(*written, self.global_step)
        own = {
            "self_play": self.self_play.seating.state_dict(),
            "buffer": self.buffer.state_dict(),
            "numpy_generator": self.rng.bit_generator.state,
            "torch_generator": torch.get_rng_state(),
        }
        first, *others = (with_tensors(part, torch.from_numpy) for part in self.ranks.gather(own))
        return policy | {
            "run_format": launch.RUN_FORMAT,
            "optimizer": self.optimizer.state_dict(),
            "learner": self.average and self.agent.state_dict(),
            "pool": self.pool.state_dict(),
            **first,
            "other_ranks": others,
            "exploited": self.exploited,
            "counters": dict(self.counters),
            "next": (self.next_eval, self.next_save),
            "seconds": self.seconds,
            "evaluations": self.evaluations,
            "league": self.league.state_dict(),
        }

    def load_state_dict(self, saved: dict) -> None:
        """Continue exactly from a `state_dict()` of as many ranks."""
        own = (saved, *saved["other_ranks"])[self.ranks.rank]
        frozen = self.pool.members[0].player
        self.policy.load_state_dict(saved["model"])
        if self.average:
            checkpoints.check_weights(saved["learner"], self.agent.state_dict())
            self.agent.load_state_dict(saved["learner"])
        checkpoints.check_moments(saved["optimizer"], self.optimizer)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.pool.load_state_dict(saved["pool"], lambda model: frozen_copy(frozen, model))
        self.self_play.seating.load_state_dict(with_arrays(own["self_play"], torch.Tensor))
        self.buffer.load_state_dict(with_arrays(own["buffer"], torch.Tensor), self.self_play.games)
        self.rng.bit_generator.state = own["numpy_generator"]
        torch.set_rng_state(own["torch_generator"])
        self.counters = {name: saved["counters"][name] for name in self.counters}
        self.seconds, self.evaluations = saved["seconds"], saved["evaluations"]
        self.next_eval, self.next_save = saved["next"]
        self.league.load_state_dict(saved["league"])


def train(run: Run, log: RunLog, clock: Clock) -> bool:
    """Play, learn, evaluate and save until all decisions are made; False if asked to stop."""
    args, agent, buffer, self_play = run.args, run.agent, run.buffer, run.self_play
    if run.global_step >= args.total_timesteps and not buffer.open.any():
        return True  # a finished run was resumed
    with StopSignals(announce=run.ranks.rank == 0) as stop:
        while True:
            finished, asked_to_stop, full = run.global_step >= args.total_timesteps, False, False
            if finished:  # what is still open counts as its position is valued
                self_play.close_all()
            else:
                # Collect: one phase of every game, by learner and opponents alike.
                result, counts = self_play.step(clock)
                with clock("batching"):
                    self_play.credit(result, run.progress)
                # Assign seats: games that are over for the learner start anew.
                with clock("games"):
                    counts["games"] = self_play.seating.end_phase(result)
                total = run.ranks.total(counts | {"full": buffer.is_full, "stop": stop.received})
                full, asked_to_stop = total["full"] > 0, total["stop"] > 0
                for name in counts:
                    run.counters[name] += total[name]
                if run.pool.is_due(run.global_step):
                    run.pool.freeze(frozen_copy(run.policy), run.global_step)
                    self_play.seating.forget_unused()

            if full or finished:
                # Estimate advantages of every finished transition of all streams.
                with clock("batching"):
                    advantages = compute_gae(*buffer.trajectory, args.gamma, args.gae_lambda)
                    batch = buffer.take_batch(advantages)
                size = sum(run.ranks.gather(len(batch.values)))
            if (full or finished) and size:
                # Update the agent in epochs of minibatches.
                begun = run.global_step - size  # so that the last batch is learned from, too
                left = max(0.0, 1.0 - begun / args.total_timesteps)
                if args.anneal_lr:
                    run.optimizer.param_groups[0]["lr"] = left * args.learning_rate
                ent_coef = args.ent_coef * left if args.anneal_ent else args.ent_coef
                if args.kl_coef:
                    with clock("learning"):
                        batch = batch._replace(kl_term=kl_to_average(args, run.average, batch))
                shared = run.rng, clock, run.workers, run.ranks
                losses = update(args, agent, run.optimizer, batch, ent_coef, *shared)
                if run.average:
                    update_average(run.average, agent, run.counters["updates"], args.average)
                run.counters["updates"] += 1
                groups = {"losses": losses} | self_play.figures(run.ranks, run.global_step)
                pool = {"pool_size": len(run.pool.members)}
                groups |= {"timing": clock.figures(), "league": pool}
                charts = buffer.take_episodes(run.ranks.total) | {"ent_coef": ent_coef}
                charts |= {"SPS": run.global_step / (run.seconds + clock.since_lap)}
                charts |= {"learning_rate": run.optimizer.param_groups[0]["lr"], "batch_size": size}
                log.update(run.counters, groups, run.evaluations, **charts)

            # Evaluate against the bots.
            if finished or run.next_eval <= run.global_step < args.total_timesteps:
                run.next_eval += 0 if finished else args.eval_interval
                asked_to_stop = asked_to_stop or run.pauses
                with clock("evaluation"):
                    run.evaluations, samples = evaluate(run)
                    rated = run.league.play(run.policy, run.pool.members, run.player)
                log.evaluations(run.evaluations, samples, run.global_step, rated)
                with clock("capture"):
                    log.captures(samples, args.capture_games, run.global_step, run.game_map)

            if finished or run.global_step >= run.next_save or asked_to_stop:
                while run.next_save <= run.global_step and not finished:
                    run.next_save += args.save_interval
                save(run, log, clock)
            if finished or asked_to_stop:
                return finished


def save(run: Run, log: RunLog, clock: Clock) -> None:
    """Write a checkpoint from which the run can go on exactly."""
    with clock("saving"):
        run.seconds += clock.lap()
        files = log.flush()
        saved = run.state_dict() | {"wandb_id": log.wandb_id, "files": files}
        if run.ranks.rank == 0:
            content = io.BytesIO()
            torch.save(saved, content)
            log.folder.save_checkpoint(run.global_step, content.getvalue())


def run_training(kind: type[Run], argv: list[str], ranks: Ranks) -> int:
    """Train as the command line says; return the exit status."""
    files = kind.files
    settings = ranks.agree(launch.read_settings, files.args_class, argv, CONFIGS, files)
    clock = Clock(network=("inference", "learning"))
    start = launch.resume_run if settings.args.resume else launch.start_run
    device = partial(ranks.choose_device, torch)
    run, log = ranks.agree(start, kind, settings, ranks, device, LOG_TOOLS)
    try:
        finished = train(run, log, clock)
    except TrainingError as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's; what is wrong comes first
        raise TrainingError(f"{error}{log.intact()}") from error
    finally:
        log.close(run.counters, run.seconds + clock.since_lap, run.evaluations)
    if not finished and ranks.rank == 0:
        log.progress.message(f"stopped; go on with --resume {log.folder.path}")
    return 0


def main(argv: list[str] | None = None, kind: type[Run] = Run) -> int:
    """Train; return the exit status, of what the user did wrong as well."""
    ranks = Ranks.start(distributed, torch.cuda.device_count())
    given = sys.argv[1:] if argv is None else argv
    return launch.exit_status(partial(run_training, kind), given, ranks)


if __name__ == "__main__":
    sys.exit(main())
