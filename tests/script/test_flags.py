"""Flags that meet a settings file."""

import json

import ppo_selfplay_diplomacy as ppo

TINY = "--num-envs 4 --num-steps 4 --total-timesteps 20 --eval-games 2 --hidden 8 --threads 1"


def test_a_reward_flag_wins_over_the_mix_of_the_settings_file(tmp_path, capsys):
    config = tmp_path / "mix.toml"
    config.write_text('reward_mix = "score=1,leader=2"\n')
    argv = ["--config", str(config), *TINY.split(), "--runs-folder", str(tmp_path / "runs")]
    for flags, reward, mix in (
        ([], "sum_of_squares", "score=1,leader=2"),
        (["--reward", "deepdip"], "deepdip", ""),
    ):
        assert ppo.main(argv + flags) == 0, capsys.readouterr().err
        run = max((tmp_path / "runs").iterdir(), key=lambda path: path.name)
        args = json.loads((run / "args.json").read_text())
        assert (args["reward"], args["reward_mix"]) == (reward, mix)
    assert ppo.main([*argv, "--reward", "deepdip", "--reward-mix", "score"]) == 2
    assert "--reward has no effect" in capsys.readouterr().err
