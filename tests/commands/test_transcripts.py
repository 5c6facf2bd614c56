"""What commands print, write and refuse: command lines with all that comes of them."""

import pytest
from support.transcripts import Shell, follow, names_of

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize("name", names_of(__file__, "transcripts"))
def test_a_transcript(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    follow(__file__, "transcripts", name, Shell(monkeypatch, capsys))
