"""What a training script needs besides its algorithm: settings, run folder, records."""

from .checks import NETWORK, policy_path
from .clock import Clock
from .launch import (
    RUN_FORMAT,
    LogTools,
    continue_log,
    new_run,
    open_log,
    read_settings,
    resumed_run,
)
from .nested import with_arrays, with_tensors
from .parallel import Ranks, TrainingError, Workers
from .run_log import NoLog, RunLog
from .sample_games import thoughts
from .settings import Between, NonNegativeFloat, NonNegativeInt, PositiveInt, Settings, Share
from .signals import StopSignals

__all__ = [
    "NETWORK",
    "RUN_FORMAT",
    "Between",
    "Clock",
    "LogTools",
    "NoLog",
    "NonNegativeFloat",
    "NonNegativeInt",
    "PositiveInt",
    "Ranks",
    "RunLog",
    "Settings",
    "Share",
    "StopSignals",
    "TrainingError",
    "Workers",
    "continue_log",
    "new_run",
    "open_log",
    "policy_path",
    "read_settings",
    "resumed_run",
    "thoughts",
    "with_arrays",
    "with_tensors",
]
