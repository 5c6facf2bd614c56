"""Evaluate the bundled policies anew, write the files beside them, and the rows of docs/results.md.

    python benchmarks/evaluate_bundled.py                      # all of them, in hours
    python benchmarks/evaluate_bundled.py --only small-pure-1  # one policy
    python benchmarks/evaluate_bundled.py --part 0.02 --output /tmp/some  # how long would it take?
    python benchmarks/evaluate_bundled.py --tables             # the rows, from the files there are

Each file is what the command that is printed writes with --json, without what no table shows. What
the pages say in words, and README.md of the means over seeds, is to be changed by hand.
"""

import argparse
import contextlib
import io
import json
import re
import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from diplomacy_engine.commands.cli import main as command
from diplomacy_engine.players.policy.files import ready_policies
from diplomacy_engine.rules.map import load_map

ROOT = Path(__file__).parents[1]
REFERENCE, RESULTS = ROOT / "runs" / "reference", ROOT / "docs" / "results.md"
KEPT = ("map", "player", "against", "games", "seed", "max_years", "year_limit", "greedy", "overall")
KEPT += ("by_power", "style")
STANDARD = ("own", "anchored", "pure", "long", "0.3")
EVALUATIONS = [
    json.loads(line)
    for line in Path(__file__).with_name("evaluations.jsonl").read_text().splitlines()[1:]
]


def policies() -> dict[str, Path]:
    """Return the names of the bundled policies, as commands know them, and their folders."""
    others = sorted(path.parent for path in REFERENCE.glob("other/*/policy.pt"))
    named = {name: Path(file).parent for name, file in ready_policies().items()}
    return named | {str(path.relative_to(REFERENCE)): path for path in others}


def evaluations(only: Sequence[str], part: float) -> Iterator[tuple[str, Path, list[str]]]:
    """Yield each policy's name, file and words of `evaluate`, of a `part` of the games."""
    for name, folder in policies().items():
        player = name if "/" not in name else str(folder.relative_to(ROOT))
        for pattern, stem, flags in EVALUATIONS:
            if re.fullmatch(pattern, name) and (not only or name in only):
                flags = re.sub(r"\bX\b", player, flags)
                words = shlex.split(flags if "--player" in flags else f"--player {player} {flags}")
                games = words.index("--games") + 1
                words[games] = str(max(1, round(part * int(words[games]))))
                yield name, folder / f"{stem}.json", words


def evaluate(words: list[str]) -> dict:
    """Return what the command writes, as far as it is kept."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / "result.json"
        if status := command(["evaluate", *words, "--json", str(file)]):
            raise SystemExit(status)
        result = json.loads(file.read_text())
    return {name: result[name] for name in KEPT if name in result}


def read(policy: str, stem: str) -> dict | None:
    """Return a kept evaluation of a policy such as small__pure__1, if there is one."""
    found = [
        *REFERENCE.glob(f"{policy}/{stem}.json"),
        *REFERENCE.glob(f"other/{policy}/{stem}.json"),
    ]
    return json.loads(found[0].read_text()) if found else None


def shares(results: Sequence[dict | None], figure: str, power: str = "", digits: int = 1) -> str:
    """Return a figure of each seed, in percent; of a single one with its interval."""
    parts = {
        seed: (result["by_power"][power] if power else result["overall"])[figure]
        for seed, result in enumerate(results, 1)
        if result
    }
    if len(parts) != 1 or power:
        return ", ".join(
            f"{100 * part['value']:.{digits}f}" for part in parts.values()
        ) + "%" * bool(parts)
    ((seed, part),) = parts.items()
    value, low, high = (f"{100 * part[key]:.1f}" for key in ("value", "low", "high"))
    return f"seed {seed}: " * (len(results) > 1) + f"{value}% ({low} to {high})"


def rows() -> Iterator[tuple[str, str, int, dict[int, str]]]:
    """Yield rows of docs/results.md: heading, first cell, how many cells, and new ones by place."""

    def of(kind: str, stem: str) -> list[dict | None]:
        return [read(f"{kind}__{seed}", stem) for seed in (1, 2, 3)]

    for kind in ("small__own", "small__pure", "small__equilibrium", "small__dumbbot"):
        found = of(kind, "against_dumbbot")
        cells = [shares([one], "win") for one in found]
        cells += [shares(found, "win", power) for power in ("ENGLAND", "RUSSIA")]
        yield "Small", kind, 7, dict(enumerate(cells, 2))
    for kind in ("three__own", "three__pure"):
        for seed, result in enumerate(of(kind, "against_dumbbot"), 1):
            powers = [shares([result], "win", p, 0)[:-1] for p in ("ENGLAND", "ITALY", "RUSSIA")]
            cells = shares([result], "solo"), shares([result], "win"), ", ".join(powers) + "%"
            yield "Three", f"{kind}__{seed}", 4, dict(enumerate(cells, 1))
    kinds = {kind: [f"standard__{kind}__{seed}" for seed in (1, 2, 3)] for kind in STANDARD}
    kinds |= {kind: [f"standard__{kind}"] for kind in ("human", "dumbbot__1", "dumbbot__1__long")}
    for kind, names in kinds.items():
        bots = ["dumbbot", "dumbbot-paquette"]
        against = [[read(name, f"against_{bot}") for name in names] for bot in bots]
        figures = ("solo", "win", "sum_of_squares")
        cells = [shares(results, figure) for results in against for figure in figures]
        yield "The standard map", kind, 7, dict(enumerate(cells, 1))
        cells = [shares(against[0], "solo", p, 0)[:-1] for p in load_map("standard").powers]
        yield "The standard map", kind, 8, dict(enumerate(cells, 1))
        for first, stem in ((kind, "until_1910"), (f"fast` on `{kind}", "fast_until_1910")):
            cell = shares([read(name, stem) for name in names], "sum_of_squares")
            if cell:
                yield "The end of 1910", first, 3, {2: cell}
    for kind in (
        "small__own",
        "small__pure",
        "small__equilibrium",
        "three__own",
        "three__pure",
        *(f"standard__{k}" for k in STANDARD),
    ):
        cells = {
            i: shares(of(kind, f"against_{bot}"), "win")
            for i, bot in ((2, "lookahead"), (4, "mcts"))
        }
        yield "Against bots that search", kind, 5, {i: cell for i, cell in cells.items() if cell}


def with_rows(text: str) -> str:
    """Return docs/results.md with the rows; print each that is not in it."""
    for heading, first, count, cells in rows():
        before, title, rest = text.partition(f"\n## {heading}\n")
        section, end, after = rest.partition("\n## ")
        lines, found = section.split("\n"), False
        for number, line in enumerate(lines):
            parts = [part.strip() for part in line.strip("|").split("|")]
            if line.startswith(f"| `{first}`") and len(parts) == count:
                parts = [cells.get(place, part) for place, part in enumerate(parts)]
                lines[number] = re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(parts)} |")
                found = True
        if cells and not found:
            print(f"no row under {heading}: {first}: {cells}")
        text = before + title + "\n".join(lines) + end + after
    return text


def main() -> None:
    """Evaluate and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], help="policies, by name")
    parser.add_argument("--part", type=float, default=1.0, help="part of the games")
    parser.add_argument(
        "--output", type=Path, help="folder for the files, instead of the policies'"
    )
    parser.add_argument("--tables", action="store_true", help="evaluate nothing")
    options = parser.parse_args()
    begun = time.process_time()
    for name, file, words in () if options.tables else evaluations(options.only, options.part):
        print(f"python -m diplomacy_engine evaluate {shlex.join(words)}", flush=True)
        before = time.process_time()
        result = evaluate(words)
        print(f"  {time.process_time() - before:.1f} s of processor time", flush=True)
        if options.output:
            file = options.output / name.replace("/", "__") / file.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=2) + "\n")
    print(
        f"{(time.process_time() - begun) / options.part / 3600:.1f} hours of one core for all games"
    )
    if options.output is None:
        RESULTS.write_text(with_rows(RESULTS.read_text()))


if __name__ == "__main__":
    main()
