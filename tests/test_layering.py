"""Who may know whom: lower folders never import higher ones, and PyTorch is in one alone."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

from support.tables import read_table, read_text

PACKAGE = Path(__file__).parent.parent / "diplomacy_engine"

LEARNING = "learning"  # the home of PyTorch
MODEL = "extras/language/model.py"  # a language model's network
FLOORS = read_table(__file__, "floors")
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
FOREIGN = dict(read_table(__file__, "packages_of_others"))
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts


def room_of(module: tuple[str, ...]) -> str:
    parts = "/".join(module)
    rooms = [room for room in FLOOR if f"{parts}/".startswith(f"{room.removesuffix('.py')}/")]
    assert rooms, f"{parts} has no place in FLOORS"
    return max(rooms, key=len)


MODULES = {module_of(path) for path in FILES}


@cache
def imports_of(path: Path) -> list[tuple[tuple[str, ...], bool]]:
    found = []
    folder = path.parent.relative_to(PACKAGE.parent).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            names = [(*module, alias.name) for alias in node.names]
            names = [name if name[1:] in MODULES else module for name in names]
        else:
            continue
        for name in dict.fromkeys(names):
            inside = name[0] == PACKAGE.name
            found.append((name[1:] if inside else name, inside))
    return found


def test_imports():
    pairs = [(path, *named) for path in FILES for named in imports_of(path)]
    for path, name, inside in pairs:
        room, place = room_of(module_of(path)), path.relative_to(PACKAGE)
        if not inside:
            if name[0] not in sys.stdlib_module_names:
                allowed = FOREIGN.get(name[0], ())
                assert any(place.is_relative_to(part) for part in allowed), (
                    f"{place} imports {name[0]}"
                )
            continue
        if not name:
            assert room in FLOORS[-1], f"{place} imports the whole package"
            continue
        other = room_of(name)
        lazy = place == Path("extras/language/loading.py") and other == MODEL
        ground = FLOOR[other] == FLOOR[room] == 0
        core = not room.startswith("extras") and room != "commands"
        assert not (core and other.startswith("extras")), f"{place} imports {other}"
        assert other == room or ground or lazy or FLOOR[other] < FLOOR[room], (
            f"{place} imports {'.'.join(name)}, which is not below it"
        )


def test_no_import_runs_in_a_circle():
    graph = {module_of(path): set() for path in FILES}
    for path in FILES:
        module = module_of(path)
        graph[module] |= {name for name, inside in imports_of(path) if inside and name in graph}
        graph[module].discard(module)
    done: set[tuple[str, ...]] = set()
    while len(done) < len(graph):
        ready = {name for name in graph if name not in done and graph[name] <= done}
        assert ready, f"imports run in a circle among {sorted(graph.keys() - done)}"
        done |= ready


def test_kernels_know_files_not_folders():
    """A kernel's compiled code is kept until a file that it imports changes.

    An import from a folder would make that every file which the folder shows.
    """
    folders = {module_of(path) for path in FILES if path.name == "__init__.py"}
    for path in FILES:
        if "\n@jit" in path.read_text():
            named = {name for name, inside in imports_of(path) if inside}
            assert not named & folders, f"{path.relative_to(PACKAGE)} imports {named & folders}"


def test_no_module_but_those_that_learn_loads_pytorch():
    homes = (LEARNING, MODEL)
    modules = [".".join((PACKAGE.name, *m)) for m in MODULES if room_of(m) not in homes]
    modules = [name.removesuffix(".__init__") for name in modules if "__main__" not in name]
    command = [sys.executable, "-c", read_text(__file__, "imports.py.txt"), *sorted(modules)]
    found = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert found.stdout == "[]\n", found.stdout + found.stderr
