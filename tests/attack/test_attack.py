"""Attacks on the engine: a piece of each in every run of the tests, and as long as is wished.

    pytest -m attack --attack-seed 7 --attack-minutes 60

tries all for an hour, with other input for each seed, and prints what came of it. The same seed
tries the same things in the same order. What a failure found belongs into a test of its own, beside
what it is about.
"""

import os
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from attack.attacks import ATTACKS, attacked, changed_texts
from attack.readers import READERS, map_file, map_of_another, player
from support.limits import within
from support.tables import read_table

pytestmark = [
    pytest.mark.usefixtures("compiled"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="these attacks need fork and signals"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # fork beside other threads
]
MANY = (map_file, map_of_another, player)  # of which few changed texts are taken
TRIES = ATTACKS | {changed_texts(reader): 100 if reader in MANY else 60 for reader in READERS}
each = pytest.mark.parametrize("attack", TRIES, ids=lambda attack: attack.__name__)


@each
def test_a_piece_of_the_attack(attack, tmp_path):
    with contextmanager(attack)(tmp_path) as one:
        found = Counter(attacked(attack, tmp_path, 1, n, one) for n in range(TRIES[attack]))
    assert found.total() == TRIES[attack]
    assert len(found) > 1, f"all tries end in one way: {found}"


@pytest.mark.attack
@each
def test_attack(attack, tmp_path, request, capsys):
    seed = request.config.getoption("--attack-seed")
    until = time.monotonic() + 60 * request.config.getoption("--attack-minutes") / len(TRIES)
    found: Counter = Counter()
    with contextmanager(attack)(tmp_path) as one:
        while time.monotonic() < until:
            found[attacked(attack, tmp_path, seed, found.total(), one)] += 1
    with capsys.disabled():
        counts = ", ".join(f"{count:,} {word}" for word, count in found.most_common())
        print(f"\n{attack.__name__}: {found.total():,} tries, seed {seed}: {counts}")


LENGTH = 2**15  # for which what grows by the square takes far longer than is allowed
DELIMITERS = read_table(__file__, "delimiters")


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_no_text_takes_long(reader, tmp_path):
    for delimiter in DELIMITERS:
        with within(3, (reader.__name__, delimiter)):
            reader(delimiter * (LENGTH // len(delimiter)), tmp_path)
