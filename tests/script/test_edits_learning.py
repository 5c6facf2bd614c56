"""Edits of how the script learns: each works with one and two processes, in commands and when a run
goes on, or is refused before it trains."""

import pytest
from support.edits import assert_usable, train_edited

EDITS = {"none": ()}


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_works(edit, processes, imported, tmp_path):
    script, run = train_edited(EDITS[edit], imported, tmp_path, processes)
    assert_usable(script, run)
