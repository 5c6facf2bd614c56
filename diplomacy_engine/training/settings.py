"""Settings: a flat frozen dataclass, filled from TOML files and the command line.

A flag wins over the settings file, which wins over the dataclass. The file is the one given with
`--config`, else `{map}.toml` of the configs folder if there is one. argparse prints the help; the
flags are read here, because it refuses `--flag=True` (what W&B's `${args}` sends) and `1e6` for a
whole number, and does not say which flags were given.
"""

import argparse
import ast
import dataclasses
import inspect
import re
import shlex
import sys
import textwrap
import tomllib
import typing
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .._fields import Kind, check_values, convert, field_kinds, kind_of, kind_text, today
from .._files import read_file
from .._progress import forget
from .._suggest import did_you_mean
from ..errors import UserError
from .next_steps import program

INSTALLED_CONFIGS = Path(__file__).parents[1] / "configs"  # setup.py puts them there
MAX_FILE_BYTES = 1_000_000  # of a settings file; those that come along have some 3,000

_FLAG = re.compile(r"--[A-Za-z]|-[A-Za-z]")
_BOOLS = {"true": True, "false": False}


class Settings(NamedTuple):
    """What parse_args found."""

    args: Any  # the dataclass
    given: frozenset[str]  # fields set on the command line
    config: Path | None  # the settings file that was applied


def parse_args(
    args_class: type,
    argv: list[str],
    configs_folder: Path | None = None,
    about: str | None = None,
) -> Settings:
    """Return the settings of a command line (without the program's name).

    Prints the help and exits with 0 for `--help` or `-h`, showing the values of the settings file.

    Args:
        args_class: a flat dataclass with defaults; `config` and `map` are optional fields of it.
        argv: `sys.argv[1:]`.
        configs_folder: where `{map}.toml` is looked for; INSTALLED_CONFIGS, if it is not there.
        about: what the help begins with, a title and then examples; None: the docstring of the
            dataclass's module.

    Raises:
        UserError: an unknown flag or key, a wrong type, a number out of range, an unreadable file.
    """
    kinds = field_kinds(args_class)
    wants_help = "--help" in argv or "-h" in argv
    words = _read_flags(kinds, [word for word in argv if word not in ("--help", "-h")])
    given = {name: _from_words(kinds[name], f"--{_dashes(name)}", words[name]) for name in words}
    for field in dataclasses.fields(args_class):  # as when a shell's variable was not set
        if field.default is None and given.get(field.name) == "":
            raise UserError(f"--{_dashes(field.name)} is empty")
    config, values = _settings_file(args_class, given, configs_folder)
    defaults = args_class(**values)
    if wants_help:
        _print_help(defaults, about or sys.modules[args_class.__module__].__doc__, config)
    return Settings(dataclasses.replace(defaults, **given), frozenset(given), config)


def args_from_dictionary(args_class: type, values: dict, source: str) -> Any:
    """Return the dataclass with the values of a dictionary, such as that of args.json.

    Raises:
        UserError: unknown setting, wrong type, or number out of range; names `source` and the key.
    """
    return args_class(**check_values(args_class, values, source))


def load_config(args_class: type, path: str | Path) -> dict[str, Any]:
    """Return the values that a TOML file sets, checked and converted to the fields' types.

    Raises:
        UserError: the file cannot be read, or has an unknown setting or a value that does not fit.
    """
    try:
        values = tomllib.loads(read_file(path, MAX_FILE_BYTES).decode())
    except OSError as error:
        raise UserError(f"settings file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also of numbers too long for Python
        raise UserError(f"settings file {path} is not TOML: {error}") from None
    return check_values(args_class, values, f"settings file {path}")


def flags_of(defaults: Any, values: dict[str, Any]) -> str:
    """Return the flags that make the settings `defaults` those of `values`, as one would type them.

    Values that `defaults` does not have are left out.
    """
    words = []
    for name, default in dataclasses.asdict(defaults).items():
        value = values.get(name, default)
        if isinstance(value, list):  # a tuple that has been in a file
            value = tuple(value)
        if value == default:
            continue
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{_dashes(name)}")
        else:
            many = value if isinstance(value, tuple) else (value,)
            words += [f"--{_dashes(name)}", *(shlex.quote(str(one)) for one in many)]
    return " ".join(words)


def fail(message: object) -> NoReturn:
    """Print one sentence to standard error and exit with 2."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(2)


def _settings_file(
    args_class: type, given: dict[str, Any], configs_folder: Path | None
) -> tuple[Path | None, dict[str, Any]]:
    """Return the settings file to apply and its values."""
    names = {field.name: field.default for field in dataclasses.fields(args_class)}
    game_map = given.get("map", names.get("map"))
    if given.get("config"):
        path = Path(given["config"])
    elif configs_folder is not None and re.fullmatch(r"[A-Za-z0-9_-]+", str(game_map)):
        path = Path(configs_folder) / f"{game_map}.toml"
        if not Path(configs_folder).is_dir():
            path = INSTALLED_CONFIGS / path.name
        try:
            if not path.is_file():
                return None, {}
        except OSError as error:
            raise UserError(f"settings file {path} cannot be read: {error.strerror}") from None
    else:
        return None, {}
    values = load_config(args_class, path)
    if "config" in values:
        raise UserError(f"settings file {path}: 'config' can only be given as a flag")
    if not given.get("config") and values.get("map", game_map) != game_map:
        raise UserError(
            f"settings file {path} is for map {game_map!r} but sets map = {values['map']!r}"
        )
    return path, values


def _print_help(defaults: Any, about: str | None, config: Path | None) -> NoReturn:
    """Print the help of a dataclass, with the values of `defaults`, and exit.

    A comment on a line of its own, such as `# The games`, is the heading of the fields below it.
    """
    args_class = type(defaults)
    parts = (about or "").split("\n\n")[:2]
    if parts[-1].startswith("  "):
        parts[-1] = f"examples:\n{parts[-1]}"
    parts.append(inspect.getdoc(args_class) or "")
    if config is not None:
        parts.append(f"Defaults shown are those of {config.parent.name}/{config.name}.")
    parser = argparse.ArgumentParser(
        prog=program(),
        usage="%(prog)s [options]",
        description="\n\n".join(parts),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    groups: dict[str, Any] = {}
    headings = _about_fields(args_class)
    for name, kind in field_kinds(args_class).items():
        heading, sentence = headings[name]
        group = groups.get(heading)
        if group is None:
            group = groups[heading] = parser.add_argument_group(heading or "options")
        _add_flag(group, name, kind, sentence, getattr(defaults, name))
    parser.add_argument_group("help").add_argument("-h", "--help", action="help", help="show this")
    try:
        try:
            parser.print_help()
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be told
    except BrokenPipeError:  # of a reader such as `head`, which has seen enough
        forget(sys.stdout)
    raise SystemExit(0)


def _add_flag(group: Any, name: str, kind: Kind, sentence: str, default: Any) -> None:
    """Add a field to a group of a help."""
    flag, notes = f"--{_dashes(name)}", []
    if kind.range is not None and kind.range.high == 1:  # others say what anybody would expect
        notes.append(str(kind.range))
    if "default:" not in sentence:
        if isinstance(default, bool):
            default = "on" if default else "off"
        elif isinstance(default, tuple):
            default = " ".join(map(str, default))
        notes.append(f"default: {'none' if default in (None, '') else default}")
    text = f"{sentence} ({'; '.join(notes)})" if notes else sentence
    options: dict[str, Any] = {"help": text.strip().replace("%", "%%")}
    item = kind.type
    if typing.get_origin(item) is tuple:
        options["nargs"], item = "*", kind_of(typing.get_args(kind.type)[0]).type
    if kind.type is bool:
        group.add_argument(flag, f"--no-{_dashes(name)}", action="store_true", **options)
    elif typing.get_origin(item) is typing.Literal:
        group.add_argument(
            flag, metavar=f"{{{','.join(filter(None, typing.get_args(item)))}}}", **options
        )
    else:
        group.add_argument(flag, metavar=item.__name__.upper(), **options)


def _about_fields(args_class: type) -> dict[str, tuple[str, str]]:
    """Return the heading above each field in the source, and the sentence below it."""
    about: dict[str, tuple[str, str]] = {}
    for base in args_class.__mro__[::-1]:
        about |= _about_own_fields(base) if dataclasses.is_dataclass(base) else {}
    return about


def _about_own_fields(args_class: type) -> dict[str, tuple[str, str]]:
    source = textwrap.dedent(inspect.getsource(args_class))
    lines, (found,) = source.splitlines(), ast.parse(source).body
    assert isinstance(found, ast.ClassDef)
    about, heading, read = {}, "", found.lineno
    for node, after in zip(found.body, [*found.body[1:], ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = [line.strip() for line in lines[read : node.lineno - 1]]
            heading = next((line[1:].strip() for line in above if line[:1] == "#"), heading)
            below = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            about[node.target.id] = heading, str(after.value.value) if below else ""
        read = node.end_lineno
    return about


def _dashes(name: str) -> str:
    return name.replace("_", "-")


def _read_flags(kinds: dict[str, Kind], argv: list[str]) -> dict[str, list[str]]:
    """Return the words given for each field; of two times the last counts.

    `--num-envs 8`, `--num_envs 8` and `--num-envs=8` are the same; so are `--cuda`, `--cuda=True`
    and `--cuda True`, and `--no-cuda` and `--cuda=False`.
    """
    words: dict[str, list[str]] = {}
    bools = [name for name, kind in kinds.items() if kind.type is bool]
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise UserError(f"{word!r} is not a flag such as --seed{_stray_hint(words)}")
        flag, equals, value = word[2:].partition("=")
        name = today(flag.replace("-", "_"), kinds)
        if name not in kinds and name.startswith("no_") and name[3:] in bools:
            if equals:
                raise UserError(f"--{flag} takes no value; --{flag[3:]}={value} does")
            words[name[3:]] = ["false"]
            continue
        if name not in kinds:
            near = did_you_mean(f"--{_dashes(name)}", [f"--{_dashes(known)}" for known in kinds])
            raise UserError(f"unknown flag --{flag}{near}")
        if equals:
            words[name] = [value]
        elif name in bools:
            bare = rest and rest[0].lower() in _BOOLS
            words[name] = [rest.pop(0)] if bare else ["true"]
        else:
            words[name] = []
            many = typing.get_origin(kinds[name].type) is tuple
            while rest and not _FLAG.match(rest[0]) and (many or not words[name]):
                words[name].append(rest.pop(0))
            if not words[name] and not many:
                raise UserError(f"--{flag} needs a value: {kind_text(kinds[name])}")
    return words


def _stray_hint(words: dict[str, list[str]]) -> str:
    last = list(words)[-1:] if words else []
    return f" (after --{_dashes(last[0])} {words[last[0]][-1]})" if last and words[last[0]] else ""


def _from_words(kind: Kind, flag: str, words: list[str]) -> Any:
    """Return the value that the words given for a flag stand for."""
    try:
        if kind.optional and len(words) == 1 and words[0].lower() == "none":
            return None
        if typing.get_origin(kind.type) is tuple:
            item = kind_of(typing.get_args(kind.type)[0])
            if len(words) == 1 and words[0][:1] in ("", "(", "["):  # a list as Python prints it
                words = [word.strip(" '\"") for word in words[0].strip("()[]").split(",")]
            return tuple(_from_text(item, word) for word in words if word)
        return _from_text(kind, words[0])
    except ValueError:
        shown = " ".join(words)
        raise UserError(f"{flag} must be {kind_text(kind)}, not {shown!r:.60}") from None


def _from_text(kind: Kind, text: str) -> Any:
    """Return a value of a simple type; ValueError if the text is none."""
    value: Any = text
    if typing.get_origin(kind.type) is typing.Literal:
        value = {str(choice): choice for choice in typing.get_args(kind.type)}.get(text, text)
    elif kind.type is bool:
        value = _BOOLS.get(text.lower(), text)
    elif kind.type is int:
        try:
            value = int(text)
        except ValueError:
            value = float(text)
    elif kind.type is float:
        value = float(text)
    return convert(kind, value)
