"""Names of players that cannot be had; which script plays a checkpoint: learning/test_learners."""

import pytest

from diplomacy_engine import load_player
from diplomacy_engine.players import loading


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/y.pt", "a\0b", "fast:" + "x" * 300])
def test_a_name_that_no_file_can_have(name):
    for action in (load_player, loading.policy_map):
        with pytest.raises(loading.PlayerError, match="there is no player"):
            action(name)
