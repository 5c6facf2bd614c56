"""What the learners share and PyTorch is needed for: nothing below this folder imports PyTorch."""

import os
from importlib.util import find_spec

from .._suggest import install
from ..errors import UserError

if not all(map(find_spec, ("torch", "tensorboard"))):
    raise UserError(f"this needs PyTorch and more packages: {install('train')}")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels
