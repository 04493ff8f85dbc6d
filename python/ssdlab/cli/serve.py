"""`ssdlab serve`: a twin as a block device that any program can use, or as an NVMe drive."""

from __future__ import annotations

import ipaddress
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ssdlab import profiles
from ssdlab.cli.output import write_out
from ssdlab.device import ServeOptions, Server, serve
from ssdlab.errors import UsageError
from ssdlab.input_files import read_text
from ssdlab.records import encode_json
from ssdlab.storage_stack.in_use import file_in_use
from ssdlab.units import format_size, parse_duration, parse_size

app = typer.Typer(add_completion=False)

UnixSocket = Annotated[
    Path | None, typer.Option(help="Listen on this socket, which must not exist.")
]
TcpAddress = Annotated[
    str | None, typer.Option(help="Listen on HOST:PORT; only this machine's own addresses.")
]
NvmeAddress = Annotated[
    str | None, typer.Option("--nvme-tcp", help="Be an NVMe drive on HOST:PORT, as --tcp is.")
]
LogFile = Annotated[
    Path | None, typer.Option(help="Log every change here, as dm-log-writes does; a new file.")
]
SecretFile = Annotated[
    Path | None, typer.Option(help="Only NVMe hosts that know the secret in this file.")
]
MaxConnections = Annotated[
    int | None,
    typer.Option(
        min=1, help="NBD and NVMe connections at a time; 2000, or fewer if few files may be open."
    ),
]
PayloadMemory = Annotated[
    str, typer.Option(help="Memory for data being received, on all connections together.")
]
HandshakeTimeout = Annotated[
    str,
    typer.Option(help="Time for a handshake, and for each piece (up to 4 MiB) of a write's data."),
]
Certificates = Annotated[
    Path | None, typer.Option(help="Encrypt by server-cert.pem, server-key.pem of this folder.")
]


@app.command(
    name="serve",
    epilog="Example: ssdlab serve toshiba-xg5 --unix /tmp/xg5.sock --capacity 8GiB",
)
def run(
    profile: Annotated[
        str, typer.Argument(metavar="PROFILE", help="NAME or FILE.toml, as of twin:NAME.")
    ],
    *,
    unix: UnixSocket = None,
    tcp: TcpAddress = None,
    nvme_tcp: NvmeAddress = None,
    dhchap_secret: SecretFile = None,
    control: Annotated[
        Path | None, typer.Option(help="Control socket; of --unix SOCKET it is SOCKET.control.")
    ] = None,
    listen: Annotated[
        bool, typer.Option("--listen", help="Allow a TCP address that others can reach.")
    ] = False,
    capacity: Annotated[str | None, typer.Option(help="Scale the twin to this capacity.")] = None,
    data: Annotated[
        str, typer.Option(help="Where its content lies: memory, or a file that survives.")
    ] = "memory",
    log: LogFile = None,
    pace: Annotated[
        str, typer.Option(help="none, real, or a factor such as 10x: how fast its time runs.")
    ] = "none",
    tls_certificates: Certificates = None,
    tls_verify_peer: Annotated[
        bool, typer.Option("--tls-verify-peer", help="Only clients that ca-cert.pem vouches for.")
    ] = False,
    max_connections: MaxConnections = None,
    payload_memory: PayloadMemory = "128MiB",
    handshake_timeout: HandshakeTimeout = "10s",
    seed: Annotated[int, typer.Option(min=0, help="Decides what chance does in the twin.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object when it ends.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print how to attach it.")] = False,
) -> int:
    """Serve a twin as a network block device (NBD), or as an NVMe drive, until Ctrl-C.

    fio, qemu, nbdcopy, nbdfuse and the kernel's clients run on it as on a drive: its collection,
    its flush and its death are theirs to see.
    """
    options = ServeOptions(
        name=profile,
        kind="unix" if unix is not None else "tcp",
        address=_address(unix, tcp, nvme_tcp, reachable=listen),
        nvme_tcp=nvme_tcp and _port("--nvme-tcp", nvme_tcp, reachable=listen),
        dhchap_secret=_secret(dhchap_secret, nvme_tcp),
        control=_control(control, unix),
        capacity_bytes=None if capacity is None else parse_size(capacity),
        data=None if data == "memory" else _data(data),
        log=None if log is None else str(log),
        pace=_pace(pace),
        seed=seed,
        tls=_folder(tls_certificates, verify_peer=tls_verify_peer),
        tls_verify_peer=tls_verify_peer,
        max_connections=max_connections,
        payload_memory_bytes=_payload_memory(payload_memory),
        handshake_timeout_s=_handshake_timeout(handshake_timeout),
    )
    server = serve(profiles.load(profile), options)
    console = Console(stderr=True)
    if not quiet:
        _print_ways(console, server, options)
    try:
        _wait()
    finally:
        told = _end(server, log, None if quiet else console)
        if json:
            write_out(encode_json(told))
    return 0


def _end(server: Server, log: Path | None, console: Console | None) -> dict[str, object]:
    """Stops it; returns where it was, and what it counted."""
    counters = server.counters()
    _stop(server, log)
    if counters["paced_answers"] and console is not None:
        _print(console, f"  {_lag(counters)}")
    nvme = None if server.nvme is None else dict(zip(("address", "name"), server.nvme, strict=True))
    return {"address": server.address, "nvme": nvme, "counters": counters}


def _address(
    unix: Path | None, tcp: str | None, nvme_tcp: str | None, *, reachable: bool
) -> str | None:
    """Where NBD's clients come; None where only NVMe's hosts do."""
    if unix is None and tcp is None and nvme_tcp is not None:
        return None
    if (unix is None) == (tcp is None):
        raise UsageError(
            "give --unix SOCKET or --tcp HOST:PORT, one of them; "
            "--nvme-tcp HOST:PORT may stand beside it or alone"
        )
    if unix is not None:
        if unix.exists():
            raise UsageError(f"--unix {unix} exists; give a path that is free, or remove it")
        return str(unix)
    assert tcp is not None
    return _port("--tcp", tcp, reachable=reachable)


def _port(option: str, given: str, *, reachable: bool) -> str:
    host, colon, port = given.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        usual = "127.0.0.1:4420" if option == "--nvme-tcp" else "127.0.0.1:10809"
        raise UsageError(f"{option} is {given!r}; it may be HOST:PORT, such as {usual}")
    if not _is_own(host.strip("[]")) and not reachable:
        unless = "--dhchap-secret" if option == "--nvme-tcp" else "--tls-verify-peer"
        raise UsageError(
            f"{option} {given} can be reached from other machines, by anybody unless {unless}; "
            "give 127.0.0.1:PORT, or add --listen if that is meant"
        )
    return given


def _control(control: Path | None, unix: Path | None) -> str | None:
    if control is None and unix is not None:
        control = Path(f"{unix}.control")
    if control is not None and control.exists():
        raise UsageError(f"--control {control} exists; give a path that is free, or remove it")
    return None if control is None else str(control)


def _data(file: str) -> str:
    if reasons := file_in_use(Path(file)):
        raise UsageError(f"--data {file} must not be overwritten: {reasons[0]}")
    return file


def _pace(text: str) -> float | None:
    if text == "none":
        return None
    try:
        factor = 1.0 if text == "real" else float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 1e-3 <= factor <= 1e6:
        raise UsageError(f"--pace is {text!r}; it may be none, real, or a factor such as 10x")
    return factor


def _payload_memory(text: str) -> int:
    size = parse_size(text)
    if not 1 << 20 <= size <= 1 << 40:
        raise UsageError(f"--payload-memory is {text}; it may be 1MiB to 1TiB")
    return size


def _handshake_timeout(text: str) -> float:
    seconds = parse_duration(text)
    if not 0.01 <= seconds <= 86400:
        raise UsageError(f"--handshake-timeout is {text}; it may be 10ms to 24h")
    return seconds


def _is_own(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _folder(certificates: Path | None, *, verify_peer: bool) -> str | None:
    if certificates is None and verify_peer:
        raise UsageError("--tls-verify-peer needs --tls-certificates DIR, with ca-cert.pem in it")
    return None if certificates is None else str(certificates)


def _secret(file: Path | None, nvme_tcp: str | None) -> str | None:
    """What the file holds, which is a secret or not."""
    if file is None:
        return None
    if nvme_tcp is None:
        raise UsageError("--dhchap-secret is for hosts of --nvme-tcp HOST:PORT; NBD has TLS")
    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(
            f"--dhchap-secret {file}: {reason}; nvme gen-dhchap-key makes a secret"
        ) from error


def _print_ways(console: Console, server: Server, options: ServeOptions) -> None:
    """The exact commands to attach it."""
    told = f"serving {options.name}, {format_size(server.capacity_bytes)}, until Ctrl-C"
    if server.address is None:
        _print(console, told)
    else:
        _print_nbd(console, server.address, told, options)
    if server.nvme is not None:
        (address, name) = server.nvme
        host, _, port = address.rpartition(":")
        at = f"nvme connect -t tcp -a {host.strip('[]')} -s {port} -n {name}"
        if options.dhchap_secret is not None:
            at += " --dhchap-secret SECRET"
        _print(console, f"  {'an NVMe drive':20}{at}")
    if server.transport_us:
        lead = f"answers leave {server.transport_us:.0f} us early: so long they are on their way"
        _print(console, f"  {lead}")


def _print_nbd(console: Console, address: str, told: str, options: ServeOptions) -> None:
    is_unix, is_tls = options.kind == "unix", options.tls is not None
    if is_unix:
        path = Path(address).resolve()
        uri = f"nbd+unix:///?socket={path}"
        kernel = f"nbd-client -unix {shlex.quote(str(path))} /dev/nbd0"
    else:
        host, _, port = address.rpartition(":")
        uri, kernel = f"nbd://{address}", f"nbd-client {host} {port} /dev/nbd0"
    if is_tls:
        uri = f"{uri.replace('nbd', 'nbds', 1)}{'&' if is_unix else '/?'}tls-certificates=DIR"
    ways = (
        ("look at it", f"nbdinfo {shlex.quote(uri)}"),
        ("fio", f"fio --name=t --ioengine=nbd --uri={shlex.quote(uri)} --rw=randread --size=64m"),
        ("a file", f"mkdir -p d && nbdfuse d {shlex.quote(uri)} &"),
        ("a block device", "losetup --find --show --direct-io=on d/nbd"),
        ("the kernel's client", kernel),
        ("a guest", f"qemu-system-x86_64 -drive file={shlex.quote(uri)},format=raw,if=virtio ..."),
    )
    _print(console, f"{told}: {uri}")
    for name, command in ways[: 4 if is_tls else None]:  # the others take no such address
        _print(console, f"  {name:20}{command}")


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _stop(server: Server, log: Path | None) -> None:
    try:
        server.stop()
    except OSError as error:
        raise UsageError(
            f"--log {log} is not complete ({error.strerror or error}); make room, and log again"
        ) from error


def _lag(counters: dict[str, float | None]) -> str:
    """How punctual it was."""
    answers, late = (counters[name] or 0.0 for name in ("paced_answers", "late_answers"))
    latest_us = counters["latest_answer_us"] or 0.0
    return (
        f"{late / answers:.1%} of {answers:.0f} answers left more than 20 us late, the latest by "
        f"{latest_us:.0f} us; more than a few: the machine has too much else to do"
    )


def _wait() -> None:
    """Until Ctrl-C, which is how a server ends in good order."""
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
