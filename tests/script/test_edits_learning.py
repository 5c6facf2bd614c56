"""Edits of how the script learns: each works with one and two processes, in commands and when a run
goes on, or is refused before it trains, or stops in its first update."""

import pytest
import torch
from support.edits import assert_refused, assert_usable, train_edited
from support.training import load, metrics

# What is edited, by what stands in its place.
V_LOSS = '    v_loss = 0.5 * ((new.value - old["returns"]) ** 2).mean()\n'
PG_LOSS = "    pg_loss = torch.max(pg_loss1, pg_loss2).mean()\n"
RETURNED = "    return loss, metrics\n"
LOSS = "                loss, metrics = ppo_loss(args, ent_coef, new, old)\n"
ZERO_GRAD = "            run.optimizer.zero_grad()\n"
SUMMED = "            ranks.sum_gradients(agent.parameters())\n"
CLIPPED = "            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)\n"
STEPPED = "            run.optimizer.step()\n"
AVERAGE = "        self.average = "
ADAM = (
    "        weights = self.agent.parameters()\n"
    "        self.optimizer = torch.optim.Adam(weights, args.learning_rate, eps=1e-5, fused=True)\n"
)
SEATS = "        self.seats = Seats("
OF_RANK = '    OF_RANK = ("games", '
PAID = "    buffer.pay(streams, rewards)\n"
RUN = "class Run(Stateful):\n"
CRITIC = "        self.critic = nn.Sequential("
LAST_NORM = "        x = self.norms[-1](x)\n"
VALUED = "        return self.get_action(codes, orders, noise, temperature)._replace(value=value)\n"
VALUE = "    value: torch.Tensor | None = None  # (D,)\n"
UPDATED = "    check_learned(run, losses, before, ranks)\n"
ENCODE = "    def encode(self, boards: Boards)"
HEAD = (CRITIC, f"        self.second = layer_init(nn.Linear(3 * hidden, 1), 1.0)\n{CRITIC}")
BATCH_NORM = (
    (CRITIC, f"        self.batch_norm = nn.BatchNorm1d(hidden)\n{CRITIC}"),
    (LAST_NORM, f"{LAST_NORM}        x = self.batch_norm(x.flatten(0, 1)).view_as(x)\n"),
)
REWARD_SCALE = '''class RewardScale(Stateful):
    """The deviation of what has been paid."""

    def __init__(self):
        self.count, self.squares = 0, 0.0

    def __call__(self, rewards):
        self.count += len(rewards)
        self.squares += float((rewards**2).sum())
        return rewards / (self.squares / max(self.count, 1) + 1e-8) ** 0.5


'''
SCALED = (
    (RUN, REWARD_SCALE + RUN),
    (SEATS, f"        self.reward_scale = RewardScale()\n{SEATS}"),
    (PAID, f"    rewards = run.reward_scale(rewards)\n{PAID}"),
)
SCHEDULE = (
    (SEATS, "        self.schedule = torch.optim.lr_scheduler.LambdaLR(\n"
            "            self.optimizer, lambda updates: 0.5**updates\n"
            f"        )\n{SEATS}"),
    (UPDATED, f"{UPDATED}    run.schedule.step()\n"),
)  # fmt: skip
BY_HEART = (  # CleanRL's four lines alone
    (ZERO_GRAD, ""),
    ("                (loss * share).backward()  # so that the sum over all ranks is the mean\n",
     "                run.optimizer.zero_grad()\n                loss.backward()\n"),
    (SUMMED, ""),
)  # fmt: skip

WORKS = {  # edit -> the replacements, settings
    "value clipping": (
        [(V_LOSS, '    change = (new.value - old["values"]).clamp(-0.2, 0.2)\n'
                  '    errors = torch.stack([new.value, old["values"] + change]) - old["returns"]\n'
                  "    v_loss = 0.5 * (errors**2).max(0).values.mean()\n")],
        {},
    ),
    "KL to a reference": (
        [(AVERAGE, f"        self.reference = frozen.frozen_copy(self.agent)\n{AVERAGE}"),
         (LOSS, f"{LOSS}                with torch.no_grad():\n"
                "                    seen = minibatch.experience\n"
                "                    about = run.reference.get_action_and_value(*seen)\n"
                "                logratio = about.logprob - new.logprob\n"
                "                kl = ((logratio.exp() - 1) - logratio).mean()\n"
                '                loss, metrics["reference_kl"] = loss + 0.1 * kl, kl\n')],
        {"metric": "reference_kl"},
    ),
    "A2C": (
        [(PG_LOSS, '    pg_loss = -(old["advantages"] * new.logprob).mean()\n')],
        {"update_epochs": 1, "num_minibatches": 1},
    ),
    "AdamW with groups": (
        [(ADAM, "        critic = list(self.agent.critic.parameters())\n"
                "        weights = self.agent.named_parameters()\n"
                "        rest = [w for name, w in weights if 'critic' not in name]\n"
                '        groups = [{"params": critic, "lr": 3e-3, "weight_decay": 0.1}]\n'
                "        self.optimizer = torch.optim.AdamW([*groups, {'params': rest}], 1e-3)\n")],
        {"rates": 3.0},
    ),
    "CleanRL's optimizer": (
        [(ADAM, "        self.optimizer = torch.optim.Adam(\n"
                "            self.agent.parameters(), lr=args.learning_rate, eps=1e-5)\n"),
         (ZERO_GRAD, "            run.optimizer.zero_grad(set_to_none=False)\n"),
         (CLIPPED, CLIPPED.replace("agent.", "run.agent."))],
        {},
    ),
    "reward normalization": (
        [*SCALED, (OF_RANK, OF_RANK.replace("(", '("reward_scale", '))],
        {"kept": "reward_scale"},
    ),
    "BatchNorm": (BATCH_NORM, {"weight": "batch_norm.running_mean"}),
    "a second value head": (
        [HEAD, (VALUE, f"{VALUE}    second: torch.Tensor | None = None  # (D,)\n"),
         (VALUED, "        second = self.second(codes.view).squeeze(-1)\n"
                  + VALUED.replace("value=value", "value=value, second=second")),
         (V_LOSS, f"{V_LOSS}    v_loss += 0.5 * ((new.second - old['returns']) ** 2).mean()\n")],
        {"weight": "second.weight"},
    ),
    "an auxiliary loss": (
        [HEAD, (LOSS, f"{LOSS}                boards = agent.inputs(minibatch.experience.obs)\n"
                      "                view = agent.encode(boards).view\n"
                      "                guess = agent.second(view)[:, 0]\n"
                      "                years = torch.full_like(guess, 3.0)\n"
                      '                metrics["guess_loss"] = ((guess - years) ** 2).mean()\n'
                      '                loss = loss + metrics["guess_loss"]\n')],
        {"metric": "guess_loss", "weight": "second.weight"},
    ),
    "weights that stay": (
        [(AVERAGE, f"        self.agent.power.requires_grad_(False)\n{AVERAGE}")],
        {},
    ),
    "an optimizer of the critic": (
        [(ADAM, "        weights = dict(self.agent.named_parameters())\n"
                "        critic = [w for name, w in weights.items() if 'critic' in name]\n"
                "        rest = [w for name, w in weights.items() if 'critic' not in name]\n"
                "        self.optimizer = torch.optim.SGD(rest, args.learning_rate)\n"
                "        self.optimizers = [torch.optim.RMSprop(critic, 1e-3)]\n"),
         (STEPPED, f"{STEPPED}            run.optimizers[0].step()\n"),
         (ZERO_GRAD, f"            run.optimizers[0].zero_grad()\n{ZERO_GRAD}")],
        {"kept": "optimizers"},
    ),
    "spectral normalization": (
        [(CRITIC, "        normalized = nn.utils.parametrizations.spectral_norm\n"
                  f"        self.power_view = normalized(nn.Linear(hidden, hidden))\n{CRITIC}"),
         (LAST_NORM, f"{LAST_NORM}        x = x + self.power_view(x)\n")],
        {"weight": "power_view.parametrizations.weight.original"},
    ),
    "a target network": (
        [(AVERAGE, f"        self.target = frozen.frozen_copy(self.agent)\n{AVERAGE}"),
         (UPDATED, "    for slow, new in zip(run.target.parameters(), run.agent.parameters()):\n"
                   f"        slow.lerp_(new.detach(), 0.1)\n{UPDATED}")],
        {"kept": "target"},
    ),
    "numbers of every generator": (
        [(SEATS, f"        self.draws, self.own_draws = 0.0, torch.Generator()\n{SEATS}"),
         (OF_RANK, OF_RANK.replace("(", '("draws", "own_draws", ')),
         (PAID, "    run.draws += np.random.random() + random.random() + torch.rand(()).item()\n"
                f"    run.draws += torch.rand((), generator=run.own_draws).item()\n{PAID}"),
         ("import sys\n", "import random\nimport sys\n")],
        {"kept": "own_draws"},
    ),
    "a schedule": (SCHEDULE, {"anneal": False, "kept": "schedule"}),
    "a curve of one's own": (
        [(RETURNED, f'    metrics["ratio"], metrics["half"] = ratio.max(), 0.5\n{RETURNED}')],
        {"metric": "ratio"},
    ),
    "torch.compile in Run": (
        [(AVERAGE, f"        self.agent = torch.compile(self.agent, backend='eager')\n{AVERAGE}")],
        {},
    ),
    "torch.compile in make_agent": (
        [("\ndef make_agent(", "\n@compiled\ndef make_agent("),
         (RUN, "def compiled(make):\n"
               "    return lambda *about: torch.compile(make(*about), backend='eager')\n\n\n"
               f"{RUN}")],
        {},
    ),
}  # fmt: skip
REFUSED = {  # edit -> the replacements, what is named, settings
    "compiled for the learner alone": (
        [(CRITIC, f"        self.encode = torch.compile(self.encode, backend='eager')\n{CRITIC}")],
        ["mine.py", "frozen copy"],
        {},
    ),
    "layers that a run adds": (
        [(AVERAGE, f"        self.agent.more = nn.Linear(2, 2)\n{AVERAGE}")],
        ["more.", "make_agent"],
        {},
    ),
    "weights in no optimizer": (
        [(ADAM, ADAM.replace("self.agent.parameters()", "self.agent.critic.parameters()"))],
        ["agent.province_features.weight", "optimizer"],
        {},
    ),
    "weights of each process's own": (
        [(SEATS, f"        self.reference = make_agent(vars(args), game_map)\n{SEATS}")],
        ["run.reference", "seed_generators"],
        {"processes": 2},
    ),
    "two schedules": (SCHEDULE, ["LambdaLR", "--anneal"], {}),
    "dropout": (
        [(LAST_NORM, LAST_NORM[:-1] + " * F.dropout(torch.ones(()), 0.1, self.training)\n")],
        ["mine.py", "dropout"],
        {},
    ),
    "statistics that are no buffer": (
        [(CRITIC, f"        self.mean = torch.zeros(())\n{CRITIC}"),
         (LAST_NORM, f"{LAST_NORM}        if self.training:\n"
                     "            self.mean = 0.5 * self.mean + x.max().detach()\n"
                     "        x = x + self.mean\n")],
        ["mine.py", "buffer"],
        {},
    ),
    "statistics that move in play": (
        [(CRITIC, f'        self.register_buffer("mean", torch.zeros(()))\n{CRITIC}'),
         (LAST_NORM, f"{LAST_NORM}        self.mean.mul_(0.9).add_(x.mean().detach())\n")],
        ["mine.py", "mean", "self.training"],
        {},
    ),
    "a buffer of no numbers": (
        [(CRITIC, f'        self.register_buffer("mask", torch.full((2,), -torch.inf))\n{CRITIC}')],
        ["mine.py", "mask", "not numbers"],
        {},
    ),
    "a state that is not kept": (
        [(SCALED[0][0], SCALED[0][1].replace("RewardScale(Stateful)", "RewardScale")), *SCALED[1:]],
        ["run.reward_scale", "Stateful"],
        {},
    ),
}  # fmt: skip
STOPPED = {  # edit -> the replacements, what is named, settings
    "a state that differs": (SCALED, ["run.reward_scale", "OF_RANK"], {"processes": 2}),
    "gradients that are not summed": (BY_HEART, ["ranks.sum_gradients"], {"processes": 2}),
    "a break of one process": (
        [(STEPPED, f"{STEPPED}            if ranks.rank:\n                break\n")],
        ["`break`", "ranks.sum"],
        {"processes": 2},
    ),
    "gradients that are cleared": (
        [(CLIPPED, f"{CLIPPED}            run.optimizer.zero_grad()\n")],
        ["no weight", "run.optimizer"],
        {},
    ),
}


def check_effect(run, settings: dict) -> None:
    saved, lines = load(run), metrics(run)
    if "metric" in settings:
        assert any(f"losses/{settings['metric']}" in line for line in lines)
    if "weight" in settings:
        first, weight = (
            policy[settings["weight"]]
            for policy in (saved["run"]["pool"]["agents"][1], saved["model"])
        )
        assert torch.isfinite(weight).all() and not torch.equal(first, weight)
    if "rates" in settings:
        first, second = saved["run"]["optimizer"]["param_groups"]
        assert (
            first["lr"] == pytest.approx(settings["rates"] * second["lr"]) and second["lr"] < 1e-3
        )
    if "kept" in settings:
        assert any(settings["kept"] in part for part in (saved["run"], *saved["ranks"]))


COMPILED_LAYER = (
    f"{CRITIC}first, nn.ReLU(), layer_init(nn.Linear(hidden, 1), 1.0))\n",
    f"{CRITIC}first, nn.ReLU(), layer_init(nn.Linear(hidden, 1), 1.0))\n"
    "        self.critic = torch.compile(self.critic)\n",
)


@pytest.mark.slow
def test_a_compiled_layer_works(imported, tmp_path):
    assert_usable(*train_edited([COMPILED_LAYER], imported, tmp_path, 2))


@pytest.mark.slow
def test_a_compiled_method_is_refused(imported, tmp_path, capsys):
    """PyTorch fails on its arrays where nothing is learned."""
    compiled = (ENCODE, f"    @torch.compile(backend='eager')\n{ENCODE}")
    assert_refused([compiled], imported, tmp_path, "mine.py", "frozen copy", capsys=capsys)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("edit", WORKS)
def test_an_edit_works(edit, processes, imported, tmp_path):
    edits, settings = WORKS[edit]
    changes = {n: v for n, v in settings.items() if n not in ("metric", "weight", "rates", "kept")}
    script, run = train_edited(edits, imported, tmp_path, processes, **changes)
    check_effect(run, settings)
    assert_usable(script, run)


@pytest.mark.parametrize("edit", REFUSED)
def test_an_edit_is_refused_before_it_trains(edit, imported, tmp_path, capsys):
    edits, words, changes = REFUSED[edit]
    assert_refused(edits, imported, tmp_path, *words, capsys=capsys, **changes)


@pytest.mark.parametrize("edit", STOPPED)
def test_an_edit_stops_a_run(edit, imported, tmp_path, capsys):
    edits, words, changes = STOPPED[edit]
    assert_refused(edits, imported, tmp_path, *words, capsys=capsys, begins=True, **changes)


def test_lines_by_heart_learn_with_one_process(imported, tmp_path):
    assert_usable(*train_edited(BY_HEART, imported, tmp_path))
