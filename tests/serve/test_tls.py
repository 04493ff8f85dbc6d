"""TLS: a server with certificates accepts only clients that encrypt."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rig import Serve, Served, executable, need, run


def _uri(served: Served, folder: Path) -> str:
    return f"nbds+unix:///?socket={served.socket}&tls-certificates={folder}"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate authority, and certificates for server and client."""
    need("openssl", "nbdinfo", "nbdcopy")
    folder = tmp_path_factory.mktemp("certificates")
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    new += ["-nodes", "-days", "2"]
    ca = ["-keyout", str(folder / "ca-key.pem"), "-out", str(folder / "ca-cert.pem")]
    run(*new, *ca, "-subj", "/CN=authority", "-addext", "keyUsage=keyCertSign")
    by = ["-CA", str(folder / "ca-cert.pem"), "-CAkey", str(folder / "ca-key.pem")]
    for name in ("server", "client"):
        files = [
            "-keyout",
            str(folder / f"{name}-key.pem"),
            "-out",
            str(folder / f"{name}-cert.pem"),
        ]
        extensions = [
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=CA:FALSE",
        ]
        run(*new, *by, *files, "-subj", f"/CN={name}", *extensions)
    return folder


def test_a_file_is_copied_over_tls_and_a_client_without_tls_is_refused(
    serve: Serve, certificates: Path, tmp_path: Path
) -> None:
    served = serve("--tls-certificates", str(certificates))
    assert "nbds+unix" in served.messages.read_text()
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(bytes(range(256)) * (40 << 10))
    uri = _uri(served, certificates)
    run("nbdcopy", str(source), uri)
    run("nbdcopy", uri, str(back))
    assert back.read_bytes()[: 10 << 20] == source.read_bytes()
    assert "protocol: newstyle-fixed with TLS" in run("nbdinfo", uri).stdout
    assert run("nbdinfo", served.uri, check=False).returncode != 0


def test_a_client_without_a_certificate_is_refused_if_one_is_required(
    serve: Serve, certificates: Path, tmp_path: Path
) -> None:
    served = serve("--tls-certificates", str(certificates), "--tls-verify-peer")
    run("nbdinfo", _uri(served, certificates))
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "ca-cert.pem").write_bytes((certificates / "ca-cert.pem").read_bytes())
    assert run("nbdinfo", _uri(served, stranger), check=False).returncode != 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tls-verify-peer",), "needs --tls-certificates"),
        (("--tls-certificates", "nowhere"), "nowhere/server-cert.pem"),
        (("--tls-certificates", "."), "it has no certificate"),
    ],
)
def test_an_invalid_certificate_is_one_line(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "server-cert.pem").write_text("no certificate\n")
    socket = ("--unix", "s")
    done = subprocess.run(
        [executable(), "serve", "toshiba-xg5", *socket, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "s").exists()
