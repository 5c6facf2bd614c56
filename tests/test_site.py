"""The site can be built from docs/, without a warning, and its pages ask no other host."""

import importlib.util
import re
import subprocess
import sys

import pytest
from support.pages import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None,
    reason="mkdocs is not installed: pip install '.[docs]'",
)


@pytest.mark.slow
def test_the_site(tmp_path):
    """`--strict` fails on links, headings and names of the reference that are not there."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    found = subprocess.run(map(str, command), cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    pages = list(tmp_path.rglob("*.html"))
    notebooks = {path.stem for path in (ROOT / "examples").glob("*.ipynb")}
    assert notebooks == {path.parent.name for path in pages if path.parents[1].name == "examples"}
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text())
        assert not [tag for tag in loaded if re.search(r"(src|href)=\"?(https?:)?//", tag)], page
    reference = (tmp_path / "api" / "index.html").read_text()
    assert 'id="diplomacy_engine.Game.adjudicate"' in reference
