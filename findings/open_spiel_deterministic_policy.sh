#!/usr/bin/env bash
# open_spiel 2.0.2: how exploitable a policy is that lists only the actions it plays.
#
# In Kuhn poker a policy always passes: {pass: 1.0}. By the documentation of `action_probabilities`
# algorithms should not rely on it that all legal actions are listed. `nash_conv`, best responses in
# Python and `policy_value` do not: what is missing has probability 0. `exploitability` does: the same
# policy is refused there, with a probability of -1 that nobody gave, and by `nash_conv` too when it
# uses C++. With {pass: 1.0, bet: 0.0} all agree.
#
# Seen:
#   all actions listed: nash_conv 2.0, in C++ 2.0, exploitability 1.0
#   played actions only: nash_conv 2.0, in C++ SpielError, exploitability SpielError
#
# One would guess otherwise: `exploitability` is documented as `nash_conv` divided by the players.
#
# Here: a policy is asked for one number for each order of a list, and all of them are used.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq open-spiel==2.0.2
cat >see.py <<'PY'
import pyspiel
from open_spiel.python.algorithms.exploitability import exploitability, nash_conv
from open_spiel.python.policy import Policy

GAME = pyspiel.load_game("kuhn_poker")


class Pass(Policy):
    def __init__(self, complete):
        super().__init__(GAME, [0, 1])
        self.complete = complete  # lists actions of probability 0, too

    def action_probabilities(self, state, player_id=None):
        first, *rest = state.legal_actions()
        return {first: 1.0} | {action: 0.0 for action in rest if self.complete}


def value(measure, policy, **options):
    try:
        return measure(GAME, policy, **options)
    except pyspiel.SpielError as error:
        assert "policy_prob = -1" in str(error)
        return type(error).__name__


seen = []
for name, policy in (("all actions listed", Pass(True)), ("played actions only", Pass(False))):
    values = value(nash_conv, policy), value(nash_conv, policy, use_cpp_br=True)
    seen.append((*values, value(exploitability, policy)))
    print("{}: nash_conv {}, in C++ {}, exploitability {}".format(name, *seen[-1]))
assert seen == [(2.0, 2.0, 1.0), (2.0, "SpielError", "SpielError")], "this has changed"
PY
venv/bin/python -I see.py
