"""Where the policy of a run folder lies."""

from pathlib import Path

CHECKPOINT = "checkpoint.pt"
POLICY = "policy.pt"  # a kept policy alone, as in runs/reference: no optimizer, no pool


def policy_file(path: str | Path) -> Path:
    """Return the file that holds a policy: of a folder its checkpoint.pt, else its policy.pt.

    Any other path is returned as it is. The file need not exist.
    """
    path = Path(path)
    if not path.is_dir():
        return path
    checkpoint, policy = path / CHECKPOINT, path / POLICY
    return checkpoint if checkpoint.is_file() or not policy.is_file() else policy
