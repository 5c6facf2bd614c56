"""`render()` of all environments: pictures for videos, and text."""

import gymnasium
import numpy as np
import pytest

from diplomacy_engine import UserError
from diplomacy_engine.environments import rendering
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv, NeedsReset
from diplomacy_engine.environments.pettingzoo_env import env, parallel_env


def make_all(mode: str | None) -> list:
    """Return every environment of the map three, begun."""
    made = [
        *(gymnasium.make("Diplomacy-v0", map="three", form=form, render_mode=mode).unwrapped
          for form in ("provinces", "sequential", "deepdip")),
        gymnasium.make_vec("Diplomacy-three-v0", 2, render_mode=mode),
        parallel_env(map="three", render_mode=mode),
        env(map="three", render_mode=mode),
    ]  # fmt: skip
    for environment in made:
        assert environment.render_mode == mode
        assert {"rgb_array", "ansi"} == set(environment.metadata["render_modes"])
        environment.reset(seed=1)
    return made


def test_text_shows_the_position():
    single, _, _, several, parallel, _ = shown = make_all("ansi")
    for environment in shown:
        found = environment.render()
        for text in found if environment is several else [found]:
            assert text.startswith("three S1901M\n") and len(text.splitlines()) == 4
    assert single.render() == single.game.to_position().replace("; ", "\n") + "\n"
    actions = {name: parallel.action_space(name).sample() * 0 for name in parallel.agents}
    parallel.step(actions)
    assert parallel.render().startswith(f"three {parallel.game.phase}\n")
    assert parallel.game.phase != "S1901M"


def test_pictures_are_drawn(monkeypatch):
    monkeypatch.setattr(rendering, "WIDTH", 81)
    frames = []
    for environment in make_all("rgb_array"):
        found = environment.render()
        frames += found if isinstance(found, tuple) else [found]
    assert len(frames) == 7
    for frame in frames:
        assert frame.dtype == np.uint8 and frame.shape[1:] == (80, 3) and len(frame) % 2 == 0
        assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 10
        assert (frame == frames[0]).all()


def test_a_game_can_be_recorded(tmp_path):
    pytest.importorskip("moviepy")
    made = gymnasium.make("Diplomacy-small-v0", max_years=1, render_mode="rgb_array")
    recorded = gymnasium.wrappers.RecordVideo(made, str(tmp_path))
    recorded.reset(seed=1)
    over = False
    while not over:
        _, _, terminated, truncated, _ = recorded.step(recorded.action_space.sample() * 0)
        over = terminated or truncated
    recorded.close()
    assert [file.name for file in tmp_path.iterdir()] == ["rl-video-episode-0.mp4"]


def test_nothing_is_rendered_unasked():
    assert [environment.render() for environment in make_all(None)] == [None] * 6


def test_refusals():
    for make in (DiplomacyEnv, parallel_env):
        with pytest.raises(UserError, match="did you mean 'ansi'"):
            make(render_mode="ansii")
        with pytest.raises(UserError, match="call reset"):
            make(render_mode="ansi").render()
    with pytest.raises(NeedsReset):
        gymnasium.make_vec("Diplomacy-small-v0", 2, render_mode="ansi").render()
