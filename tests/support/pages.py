"""The project's pages: their text, examples, links and what they name."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "tests").rglob("README.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "runs" / "reference" / "README.md",
)
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def page_text(name: str) -> str:
    """Return a page, such as `docs/rules.md`."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str = "") -> list[str]:
    """Return the fenced blocks of a language."""
    return [block for name, block in _FENCED.findall(text) if name == language]


def quoted_lines(text: str) -> list[str]:
    """Return the lines that stand indented, as output or part of a file."""
    return re.findall(r"^    (\S.*)$", _FENCED.sub("", text), re.MULTILINE)


def code_spans(text: str) -> list[str]:
    """Return what stands between backticks, each on one line."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", _FENCED.sub("", text))]


def shown(code: str) -> list[str]:
    """Return what a Python example says that it prints."""
    return re.findall(r"^ *(?:print|parallel_api_test)\(.*\)  # (.+)$", code, re.MULTILINE)


def links(text: str) -> list[str]:
    """Return the targets of all links and pictures."""
    return re.findall(r"\]\(([^)]+)\)", _FENCED.sub("", text))


def anchors(text: str) -> set[str]:
    """Return the names by which a link can lead to a heading, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shell_lines(text: str) -> list[str]:
    """Return the lines of all examples for a shell; one that goes on below is one line."""
    examples = "".join(blocks(text, "sh") + blocks(text, "bash"))
    return examples.replace("\\\n", " ").splitlines()


def commands(text: str, program: str) -> list[str]:
    """Return what follows `program` in each line of shell and between each pair of backticks."""
    lines = shell_lines(text) + code_spans(text)
    found = [line.partition(program)[2] for line in lines if program in line]
    return [rest.strip() for rest in found]
