"""An encrypted line to a `diplomacy` server: who is believed to be it."""

import shutil
import ssl
import subprocess

import pytest
from support.commands import refusal
from support.diplomacy_server import StandIn

from diplomacy_engine.commands.cli import main
from diplomacy_engine.extras.connections.connection import Address, Refused
from diplomacy_engine.extras.connections.diplomacy_wire import Wire

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def certificate(folder, host):
    """Return the files of a new certificate that signs itself, and of its key."""
    files = folder / f"{host}.pem", folder / f"{host}.key"
    names = f"subjectAltName={'IP' if host[0].isdigit() else 'DNS'}:{host}"
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt"]
        + ["ec_paramgen_curve:prime256v1", "-days", "2", "-subj", f"/CN={host}"]
        + ["-addext", names, "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("certificate"), "127.0.0.1")


@pytest.fixture
def server(files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    with StandIn(ssl=context) as server:
        yield server


def test_a_server_whose_certificate_is_named(server, files, capsys):
    where = ["connect", "diplomacy", str(server.address), "--list", "--ssl", "--ca", str(files[0])]
    assert main(where) == 0
    assert "FRANCE" in capsys.readouterr().out
    assert server.names()[:2] == ["sign_in", "list_games"]


def test_who_signed_itself_is_not_believed(server, capsys):
    text = refusal("connect", "diplomacy", str(server.address), "--list", "--ssl", capsys=capsys)
    assert "cannot prove its identity: self-signed certificate" in text
    assert server.asked == []  # no password went there


def test_the_name_counts(server, files):
    wire = Wire(Address("localhost", server.address.port), True, files[0])
    with pytest.raises(Refused, match="cannot prove its identity: Hostname mismatch"):
        wire.open()


def test_a_server_without_encryption(files):
    with StandIn() as server:
        wire = Wire(server.address, True, files[0], seconds=5)
        with pytest.raises(ValueError, match=r"cannot be reached: .*"):
            wire.open()
        assert server.asked == []


@pytest.mark.parametrize(
    ("content", "words"), [(None, "No such file"), (b"nothing", "holds no certificates")]
)
def test_files_that_hold_no_certificates(tmp_path, capsys, content, words):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    where = ["connect", "diplomacy", "localhost:1", "--list", "--ca", str(file)]
    assert words in refusal(*where, "--ssl", capsys=capsys)
