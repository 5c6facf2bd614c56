"""The arguments of the environments: what each means, what is left out, and what is refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from .._suggest import quoted
from ..errors import UserError
from ..records import convert
from ..rules.map import Map, load_map
from ..scoring.mixes import RewardMix, make_steady_mix

Count = Annotated[int, Meta(ge=0, le=1000)]


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
            each game.
        strict: an order outside the mask is a UserError that names unit and order. Otherwise it
            counts as none (a unit holds, a dislodged one disbands, a build is waived), and
            `info["illegal_orders"]` counts it.
        draw_votes: an action has a vote for a draw as well, 0 or 1, as its last entry; the game
            ends when all powers alive vote for one. It is of that phase, and no vote where the
            agent has nothing to decide.
    """

    reward: str = "sum_of_squares"
    teams: str = ""
    team_victory: Count = 0
    max_years: Count | None = None
    year_limit: Literal["draw", "truncate"] = "draw"
    start: Literal["opening", "random"] = "opening"
    warm_up_phases: Count = 10
    strict: bool = False
    draw_votes: bool = False

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> Self:
        """UserError: an argument is unknown, of the wrong type or out of range."""
        return convert(cls, arguments, "this environment")

    def map_of(self, game_map: str | Path | Map) -> Map:
        found = load_map(game_map)
        if self.teams or self.team_victory:
            found = found.with_teams(self.teams, self.team_victory)
        return found

    def reward_of(self, game_map: Map) -> RewardMix:
        return make_steady_mix(self.reward, game_map.teams)

    @property
    def most_phases(self) -> int:
        """Of a random beginning."""
        return self.warm_up_phases if self.start == "random" else 0

    @property
    def pays_limit(self) -> bool:
        return self.year_limit == "draw"


@dataclass(frozen=True, kw_only=True)
class AgentSettings(EnvSettings):
    """The keyword arguments of an environment with one agent, in addition to EnvSettings.

    What the phases of others bring between two decisions of the agent is added to its reward.

    Args:
        opponents: who plays the other powers: a bot's name, the path of a checkpoint or run folder,
            a Player, or a list of these, from which every seat of every game draws one.
        power: the agent's power; None draws one in each game.
        script: path of the trainer's script that plays checkpoints; None for the repository's own.
        draws_after: with draw_votes, the year from which the others vote for a draw, as bots do
            (games/votes.py); None: from the first one on.
    """

    opponents: Any = "random"
    power: Any = None
    script: Any = None
    draws_after: Any = None

    def __post_init__(self):
        check_draws_after(self.draws_after, self.draw_votes)


def check_draws_after(draws_after: int | None, draw_votes: bool) -> None:
    if draws_after is None:
        return
    if not draw_votes:
        raise UserError("draws_after has no effect without draw_votes=True")
    if type(draws_after) is not int or draws_after < 1:
        raise UserError(f"draws_after must be a year, not {quoted(draws_after)}")
