"""Attacks on the engine: a piece of each in every run of the tests, and as long as is wished.

    pytest -m attack --attack-seed 7 --attack-minutes 60

tries all of attacks.py for an hour, with other input for each seed, and prints what came of it. The
same seed tries the same things in the same order. What a failure found belongs into a test of its
own, beside what it is about.
"""

import os
import time
from collections import Counter

import pytest
from attack.attacks import ATTACKS, attacked

pytestmark = [
    pytest.mark.usefixtures("compiled"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="these attacks need fork and signals"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # fork beside other threads
]
each = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)


@each
def test_a_piece_of_the_attack(attack, tmp_path):
    with attack(tmp_path) as one:
        found = Counter(attacked(attack, tmp_path, 1, n, one) for n in range(ATTACKS[attack]))
    assert found.total() == ATTACKS[attack]
    assert len(found) > 1, f"all tries end in one way: {found}"


@pytest.mark.attack
@each
def test_attack(attack, tmp_path, request, capsys):
    seed = request.config.getoption("--attack-seed")
    until = time.monotonic() + 60 * request.config.getoption("--attack-minutes") / len(ATTACKS)
    found: Counter = Counter()
    with attack(tmp_path) as one:
        while time.monotonic() < until:
            found[attacked(attack, tmp_path, seed, found.total(), one)] += 1
    with capsys.disabled():
        counts = ", ".join(f"{count:,} {word}" for word, count in found.most_common())
        print(f"\n{attack.__name__}: {found.total():,} tries, seed {seed}: {counts}")
