"""The DeepDip thesis' experiment with orders, run again: its spaces, its bot, its PPO.

    python tests/benchmarks/thesis.py --map small --seed 1      # trains, plays 1,000 games
    python tests/benchmarks/thesis.py --map small --draw docs/lab/thesis_small.svg

The learner is PPO2 of stable-baselines 2 with its defaults, as the thesis used it: one game at a
time, 128 steps an update, four epochs of four minibatches of 32, two separate networks of 64 and 64
tanh units, clipped values, no masks. (train_sb3.py has version 3 of that library, which spends most
of its time on 19 distributions one after the other.) A run is written to runs/thesis-MAP-SEED:
`episodes.csv` with each game's reward, `agent.pt`, `result.json`. `--draw` draws all runs of a map.
"""

import argparse
import json
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from torch import nn
from train_sb3 import evaluate

import diplomacy_engine  # registers the environments

STEPS, EPOCHS, MINIBATCHES = 128, 4, 4
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2
LEARNING_RATE, ENTROPY, VALUE, MAX_NORM = 2.5e-4, 0.01, 0.5, 0.5
SMOOTH = 100  # games in a point of the curve
THEIRS = {"small": 9.21, "three": -3.1, "standard": -16.93}  # mean rewards in the thesis


class Agent(nn.Module):
    """MlpPolicy of stable-baselines 2: a policy and a value that share nothing."""

    def __init__(self, seen: gymnasium.spaces.MultiDiscrete, act: gymnasium.spaces.MultiDiscrete):
        super().__init__()
        sizes = torch.as_tensor(seen.nvec)
        self.register_buffer("first", sizes.cumsum(0) - sizes)
        self.width, self.shape = int(sizes.sum()), (len(act.nvec), int(act.nvec[0]))
        self.actor = self._layers(self.shape[0] * self.shape[1], 0.01)
        self.critic = self._layers(1, 1.0)

    def _layers(self, outputs: int, gain: float) -> nn.Sequential:
        parts = []
        for sizes, scale in (((self.width, 64), 2**0.5), ((64, 64), 2**0.5), ((64, outputs), gain)):
            layer = nn.Linear(*sizes)
            nn.init.orthogonal_(layer.weight, scale)
            nn.init.zeros_(layer.bias)
            parts += [layer, nn.Tanh()]
        return nn.Sequential(*parts[:-1])

    def one_hot(self, seen: torch.Tensor) -> torch.Tensor:
        """Return observations (B, 3 V) as ones and zeros, (B, width)."""
        return torch.zeros(len(seen), self.width).scatter_(1, seen + self.first, 1.0)

    def logprobs(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the log-probabilities of every province's actions, (B, V, 1 + 2 V)."""
        return self.actor(inputs).view(-1, *self.shape).log_softmax(-1)

    def predict(self, seen: np.ndarray, deterministic: bool = False) -> tuple[np.ndarray, None]:
        """Return actions as a model of Stable-Baselines3 does."""
        with torch.no_grad():
            logprobs = self.logprobs(self.one_hot(torch.as_tensor(seen)))
        return (logprobs.argmax(-1) if deterministic else sample(logprobs)).numpy(), None


def sample(logprobs: torch.Tensor) -> torch.Tensor:
    """Return a draw from each of the distributions, (B, V), by Gumbel's maximum."""
    return (logprobs - torch.empty_like(logprobs).exponential_().log()).argmax(-1)


def total(logprobs: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of joint actions (B, V), (B,)."""
    return logprobs.gather(-1, actions[..., None])[..., 0].sum(-1)


def train(map_name: str, steps: int, seed: int, folder: Path) -> Agent:
    """Train an agent; write each game's last step and reward to episodes.csv."""
    torch.manual_seed(seed)
    shuffling = np.random.default_rng(seed)
    env = gymnasium.make(f"Diplomacy-{map_name}-deepdip-v0").unwrapped
    agent = Agent(env.observation_space, env.action_space)
    optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5, fused=True)
    provinces = agent.shape[0]
    inputs = torch.zeros(STEPS + 1, agent.width)
    actions = torch.zeros(STEPS, provinces, dtype=torch.long)
    logprobs, values = torch.zeros(STEPS), torch.zeros(STEPS + 1)
    rewards, on = torch.zeros(STEPS), torch.zeros(STEPS)  # `on`: the game goes on after the step
    seen, _ = env.reset(seed=seed)
    earned, began, found = 0.0, time.monotonic(), []
    with open(folder / "episodes.csv", "w") as episodes:
        episodes.write("step,reward\n")
        for update in range(1, steps // STEPS + 1):
            for t in range(STEPS):
                with torch.no_grad():
                    inputs[t] = agent.one_hot(torch.as_tensor(seen)[None])[0]
                    chances = agent.logprobs(inputs[t : t + 1])
                    values[t] = agent.critic(inputs[t : t + 1])[0, 0]
                    actions[t] = sample(chances)[0]
                    logprobs[t] = total(chances, actions[t : t + 1])[0]
                seen, reward, terminated, truncated, _ = env.step(actions[t].numpy())
                earned += reward
                rewards[t], on[t] = reward, not (terminated or truncated)
                if terminated or truncated:
                    found.append(earned)
                    episodes.write(f"{(update - 1) * STEPS + t + 1},{earned:g}\n")
                    earned = 0.0
                    seen, _ = env.reset()
            with torch.no_grad():
                values[STEPS] = agent.critic(agent.one_hot(torch.as_tensor(seen)[None]))[0, 0]
            improve(agent, optimizer, shuffling, inputs, actions, logprobs, values, rewards, on)
            if update % 400 == 0:
                seconds = time.monotonic() - began
                print(
                    f"{update * STEPS:,} steps, {len(found):,} games, {seconds:.0f} s, mean reward "
                    f"of the last {SMOOTH} games {np.mean(found[-SMOOTH:]):.2f}",
                    flush=True,
                )
                torch.save(agent.state_dict(), folder / "agent.pt")
    return agent


def improve(agent, optimizer, shuffling, inputs, actions, logprobs, values, rewards, on) -> None:
    """Make an update of PPO2 from STEPS steps."""
    deltas = (rewards + GAMMA * values[1:] * on - values[:-1]).tolist()
    shares, advantage, found = (GAMMA * LAMBDA * on).tolist(), 0.0, []
    for delta, share in zip(reversed(deltas), reversed(shares)):
        advantage = delta + share * advantage
        found.append(advantage)
    advantages = torch.tensor(found[::-1])
    returns = advantages + values[:-1]
    for _ in range(EPOCHS):
        for rows in np.split(shuffling.permutation(STEPS), MINIBATCHES):
            gain, before, aim = advantages[rows], values[rows], returns[rows]
            gain = (gain - gain.mean()) / (gain.std(correction=0) + 1e-8)
            chances = agent.logprobs(inputs[rows])
            ratio = (total(chances, actions[rows]) - logprobs[rows]).exp()
            policy_loss = -torch.min(gain * ratio, gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
            value = agent.critic(inputs[rows])[:, 0]
            clipped = before + (value - before).clamp(-CLIP, CLIP)
            value_loss = torch.max((value - aim) ** 2, (clipped - aim) ** 2).mean() / 2
            entropy = -(chances.exp() * chances).sum((1, 2)).mean()
            loss = policy_loss - ENTROPY * entropy + VALUE * value_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
            optimizer.step()


def draw(map_name: str, picture: Path) -> None:
    """Draw the mean reward of SMOOTH games over the steps, a line for each run of the map."""
    curves = {}
    for file in sorted(Path("runs").glob(f"thesis-{map_name}-*/episodes.csv")):
        games = [line.split(",") for line in file.read_text().splitlines()[1:]]
        if len(games) < SMOOTH:
            continue
        steps, rewards = np.array(games, float).T
        means = np.convolve(rewards, np.ones(SMOOTH) / SMOOTH, "valid")
        some = np.linspace(0, len(means) - 1, 300).astype(int)
        curves[file.parent.name.rpartition("-")[2]] = steps[SMOOTH - 1 :][some], means[some]
    if not curves:
        raise SystemExit(f"error: no runs/thesis-{map_name}-*/episodes.csv has {SMOOTH} games")
    last = max(steps[-1] for steps, _ in curves.values())
    everything = np.concatenate([[0, THEIRS[map_name]], *(means for _, means in curves.values())])
    low, high = np.floor(everything.min()), np.ceil(everything.max())
    wide, tall, left, bottom = 640, 260, 40, 30

    def x(step: float) -> float:
        return left + (wide - left - 10) * step / last

    def y(reward: float) -> float:
        return 10 + (tall - bottom - 10) * (high - reward) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" '
        'font-family="sans-serif" font-size="11" fill="#333">'
        f'<rect width="{wide}" height="{tall}" fill="#fff"/>'
    ]
    for reward in np.arange(low, high + 1, max(1, round((high - low) / 8))):
        parts.append(
            f'<path d="M{left} {y(reward):.1f}H{wide - 10}" stroke="#ddd"/>'
            f'<text x="{left - 6}" y="{y(reward) + 4:.1f}" text-anchor="end">{reward:g}</text>'
        )
    for step in np.arange(0, last, 200_000):
        parts.append(
            f'<text x="{x(step):.1f}" y="{tall - 12}" text-anchor="middle">{step / 1e6:g} M</text>'
        )
    for (seed, (steps, means)), color in zip(curves.items(), ("#0072B2", "#D55E00", "#009E73")):
        path = "L".join(f"{x(step):.1f} {y(mean):.1f}" for step, mean in zip(steps, means))
        parts.append(
            f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5">'
            f"<title>seed {seed}</title></path>"
        )
    goal = y(THEIRS[map_name])
    parts.append(
        f'<path d="M{left} {goal:.1f}H{wide - 10}" stroke="#333" stroke-dasharray="4 3"/>'
        f'<text x="{wide - 10}" y="{goal + 14:.1f}" text-anchor="end">the thesis, in the end</text>'
        f'<text x="{left + 6}" y="22">mean reward of {SMOOTH} games, {map_name}</text>'
    )
    picture.write_text("".join(parts) + "</svg>\n")


def main() -> None:
    """Train and evaluate, or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="small", choices=diplomacy_engine.MAP_NAMES)
    parser.add_argument("--steps", type=int, default=1_400_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--games", type=int, default=1000, help="of the evaluation")
    parser.add_argument("--draw", type=Path, help="an SVG of the runs there are, and no training")
    arguments = parser.parse_args()
    if arguments.draw:
        draw(arguments.map, arguments.draw)
        return
    torch.set_num_threads(1)
    folder = Path("runs") / f"thesis-{arguments.map}-{arguments.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    agent = train(arguments.map, arguments.steps, arguments.seed, folder)
    torch.save(agent.state_dict(), folder / "agent.pt")
    result = {"steps": arguments.steps, "seed": arguments.seed}
    result |= evaluate(agent, f"Diplomacy-{arguments.map}-deepdip-v0", arguments.games)
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
