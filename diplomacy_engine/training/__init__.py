"""What a training script needs besides its algorithm: settings, run folder, logs, processes."""

from .clock import Clock
from .parallel import Ranks, TrainingError, Workers
from .run_log import NoLog, RunLog
from .settings import Settings
from .signals import StopSignals

__all__ = [
    "Clock",
    "NoLog",
    "Ranks",
    "RunLog",
    "Settings",
    "StopSignals",
    "TrainingError",
    "Workers",
]
