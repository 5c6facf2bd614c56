"""Ranks of torchrun leave their group once, although two functions that nest close them."""

from torch import distributed

from diplomacy_engine.learning.ranks import Distributed, Ranks


def test_ranks_that_have_left_can_be_closed_again(tmp_path):
    store = f"file://{tmp_path / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    ranks = Ranks(Distributed())
    assert ranks.gather("all") == ["all"]
    ranks.close()
    ranks.close()
    assert not distributed.is_initialized()
