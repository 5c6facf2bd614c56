"""The arguments of the environments: what each means, what is left out, and what is refused."""

from dataclasses import dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Any, Self

from .._suggest import did_you_mean, quoted
from ..errors import UserError
from ..rules.map import Map, load_map
from ..scoring.mixes import RewardMix, make_steady_mix
from ..scoring.outcomes import check_year_limit

STARTS = ("opening", "random")


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """The keyword arguments of every environment.

    Args:
        reward: a name of scoring/rewards.py, `module:function`, or a mix such as
            `sum_of_squares=1,lead_delta=1`; with teams also with levels, such as
            `team:sum_of_squares=1,power:center_delta=0.2`.
        teams: powers that win and lose together, such as `ENGLAND+ITALY`. An eliminated power's
            game goes on, without orders of its own, until its team is out or the game over.
        team_victory: centers with which a team wins after a fall; 0: none does.
        max_years: game years after which the game is truncated; None: the map's own; 0: never.
        year_limit: `draw` pays the reward's end at the year limit, `truncate` does not.
        start: `opening`, or `random`: all powers together begin with random orders.
        warm_up_phases: the most phases of such a beginning; how many is drawn evenly from 0 on, in
            each game. (Self-play's `--warm-up-phases` counts from 1, for each power on its own.)
        strict: an order outside the mask is a UserError that names unit and order. Otherwise it
            counts as none (a unit holds, a dislodged one disbands, a build is waived), and
            `info["illegal_orders"]` counts it.

    Raises:
        UserError: an argument is unknown, of the wrong type or out of range.
    """

    reward: str = "sum_of_squares"
    teams: str = ""
    team_victory: int = 0
    max_years: int | None = None
    year_limit: str = "draw"
    start: str = "opening"
    warm_up_phases: int = 10
    strict: bool = False

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> Self:
        """Return the settings that an environment's keyword arguments stand for."""
        names = [field.name for field in fields(cls)]
        for name in arguments:
            if name not in names:
                hint = did_you_mean(name, names)
                raise UserError(f"this environment has no argument {quoted(name)}{hint}")
        return cls(**arguments)

    def __post_init__(self):
        if not isinstance(self.reward, str):
            raise UserError(f"reward must be a name, not {quoted(self.reward)}")
        check_year_limit(self.year_limit)
        if self.start not in STARTS:
            hint = did_you_mean(str(self.start), STARTS)
            raise UserError(
                f"start must be one of {', '.join(STARTS)}, not {quoted(self.start)}{hint}"
            )
        if self.max_years is not None:
            _check_count("max_years", self.max_years)
        _check_count("warm_up_phases", self.warm_up_phases)
        _check_count("team_victory", self.team_victory)
        if not isinstance(self.teams, str):
            raise UserError(f"teams must be a text such as ENGLAND+ITALY, not {quoted(self.teams)}")

    def map_of(self, game_map: str | Path | Map) -> Map:
        """Return the map of that name with these teams, or with its own if none are given."""
        found = load_map(game_map)
        if self.teams or self.team_victory:
            found = found.with_teams(self.teams, self.team_victory)
        return found

    def reward_of(self, game_map: Map) -> RewardMix:
        """Return the reward, of teams if the map has some."""
        return make_steady_mix(self.reward, game_map.teams)

    @property
    def most_phases(self) -> int:
        """The most phases of a random beginning; 0 from the opening."""
        return self.warm_up_phases if self.start == "random" else 0

    @property
    def pays_limit(self) -> bool:
        """Whether the reward's end is paid at the year limit."""
        return self.year_limit == "draw"


@dataclass(frozen=True, kw_only=True)
class AgentSettings(EnvSettings):
    """The keyword arguments of an environment with one agent, in addition to EnvSettings.

    What the phases of others bring between two decisions of the agent is added to its reward.

    Args:
        opponents: who plays the other powers: a bot's name, the path of a checkpoint or run folder,
            a Player, or a list of these, from which every seat of every game draws one.
        power: the agent's power; None draws one in each game.
        script: the trainer's script that plays checkpoints; None for the repository's own.
    """

    opponents: Any = "random"
    power: str | None = None
    script: str | Path | None = None


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value <= 1000:
        raise UserError(f"{name} must be an integer from 0 to 1000, not {quoted(value)}")
