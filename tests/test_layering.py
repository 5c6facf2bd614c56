"""Who may know whom: lower layers never import higher ones, and the engine knows no learner."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "diplomacy_engine"

# Lowest first; a module imports from its own layer and those below. A folder stands for its files.
LAYERS = (
    ("constants", "_jit", "_suggest", "_nested"),
    ("map", "decisions"),
    ("orders",),
    ("state",),
    ("legal_orders", "adjudicator", "notation", "scoring"),
    ("phases",),
    ("observation", "vector_game", "seat_kernels", "deepdip_kernels"),
    ("layout", "colors", "arrows", "render", "chart", "pictures"),
    ("network_inputs", "order_scoring"),
    ("bots", "game", "position", "reasons", "saved_game"),
    (
        "players",
        "arena",
        "bench",
        "settings",
        "run_folder",
        "progress",
        "clock",
        "signals",
        "rollout_buffer",
        "rollouts",
        "agent_games",
        "env_forms",
        "env_deepdip",
        "env_gymnasium",
        "env_pettingzoo",
        "registration",
        "replay",
        "capture",
        "consult",
        "opponent_pool",
        "parallel",
        "records",
        "seating",
        "trainer_settings",
    ),
    ("ratings",),
    ("tournament", "league"),
    ("_arguments", "_console"),
    ("play_file",),
    ("play_session",),
    ("play_view",),
    ("play_server", "play_text"),
    ("play_command",),
    ("replay_command",),
    ("tournament_command",),
    ("cli",),
    ("__main__", "__init__"),
)
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
FOREIGN = {"numpy", "numba", "rich", "tyro", "gymnasium", "openskill", "pettingzoo", "resvg_py"}
FOREIGN_BY = {
    "gymnasium": ("env_forms", "env_deepdip", "env_gymnasium", "env_pettingzoo", "registration"),
    "numba": ("_jit",),
    "openskill": ("ratings",),
    "pettingzoo": ("env_pettingzoo",),
    "resvg_py": ("pictures",),
    "rich": ("progress", "cli", "_console", "tournament_command"),
    "tyro": ("settings",),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """Return the name under which a file stands in LAYERS."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imports_of(path: Path) -> list[tuple[str, bool]]:
    """Return `(module, whether of the package)` of every import in a file, nested ones included."""
    found = []
    folder = path.parent.relative_to(PACKAGE.parent).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            below = module == PACKAGE.name  # `from . import map`
            names = [f"{module}.{alias.name}" if below else module for alias in node.names]
        else:
            continue
        for name in dict.fromkeys(names):
            parts = name.split(".")
            inside = parts[0] == PACKAGE.name
            found.append((parts[1] if inside and len(parts) > 1 else parts[0], inside))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports(path):
    module = module_of(path)
    assert module in LAYER, f"{module} has no place in LAYERS"
    for name, inside in imports_of(path):
        if inside:
            assert name in LAYER, f"{path.name} imports {name}, which has no place in LAYERS"
            assert LAYER[name] <= LAYER[module], f"{module} imports {name} of a higher layer"
        elif name not in sys.stdlib_module_names:
            assert name in FOREIGN, f"{path.name} imports {name}"
            assert module in FOREIGN_BY.get(name, (module,)), f"{path.name} imports {name}"


def test_no_import_runs_in_a_circle():
    graph: dict[str, set[str]] = {}
    for path in FILES:
        module = module_of(path)
        names = {name for name, inside in imports_of(path) if inside and name != module}
        graph.setdefault(module, set()).update(names)
    done: set[str] = set()
    while len(done) < len(graph):
        ready = {name for name in graph if name not in done and graph[name] <= done}
        assert ready, f"imports run in a circle among {sorted(graph.keys() - done)}"
        done |= ready


def test_no_engine_module_loads_a_learner():
    """Importing every module loads neither torch and its kind nor the trainer's script."""
    modules = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in FILES]
    modules = [name.removesuffix(".__init__") for name in modules if "__main__" not in name]
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
learners = {{"torch", "tensorboard", "wandb", "ppo_selfplay_diplomacy"}}
print(sorted(learners & sys.modules.keys()))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert found.stdout == "[]\n", found.stdout + found.stderr
