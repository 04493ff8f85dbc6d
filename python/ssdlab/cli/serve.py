"""`ssdlab serve`: serves a twin as a network block device or as an NVMe/TCP drive."""

from __future__ import annotations

import contextlib
import ipaddress
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from ssdlab import profiles
from ssdlab.cli.control import LATE_MAX
from ssdlab.cli.options import complete_twin
from ssdlab.cli.output import write_out
from ssdlab.cli.serve_mount import FileSystem, Mount, Mounting, mounting_of
from ssdlab.errors import UsageError
from ssdlab.input_files import read_text
from ssdlab.storage_stack.in_use import file_in_use
from ssdlab.target import parse_profile
from ssdlab.units import format_size, parse_duration, parse_size

if TYPE_CHECKING:
    from ssdlab.device import ServeOptions, Server

app = typer.Typer(add_completion=False)

_DRIVE: Final = "format=raw,if=virtio,discard=unmap"
"""Options of a drive of qemu; without discard=unmap a guest's trims do not reach the twin."""

LATENESS_EVERY_S: Final = 10
"""Late replies are counted over this time."""
LATENESS_ANSWERS_MIN: Final = 100
"""Fewer replies say little about the machine."""

UnixSocket = Annotated[
    Path | None,
    typer.Option(help="NBD: listen on this Unix socket; that of a killed server is replaced."),
]
TcpAddress = Annotated[
    str | None,
    typer.Option(help="NBD: listen on HOST:PORT; a loopback address, unless --listen."),
]
NvmeAddress = Annotated[
    str | None,
    typer.Option("--nvme-tcp", help="NVMe/TCP: listen on HOST:PORT; loopback, unless --listen."),
]
LogFile = Annotated[
    Path | None,
    typer.Option(help="Log every change to this new file, in the format of dm-log-writes."),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(help="Accept only NVMe hosts that authenticate with the secret in this file."),
]
MaxConnections = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum NBD and NVMe connections [2000, or fewer if the limit of open files is low].",
    ),
]
PayloadMemory = Annotated[
    str, typer.Option(help="Memory for payloads being received, over all connections.")
]
HandshakeTimeout = Annotated[
    str,
    typer.Option(
        help="Timeout of a handshake, and of each piece (up to 4 MiB) of a write's payload."
    ),
]
Certificates = Annotated[
    Path | None,
    typer.Option(help="Require TLS; the folder has server-cert.pem and server-key.pem."),
]
Profile = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE",
        help="NAME or FILE.toml, as in twin:NAME.",
        autocompletion=complete_twin,
    ),
]
ControlSocket = Annotated[
    Path | None,
    typer.Option(help="Path of the control socket [SOCKET.control with --unix SOCKET]."),
]
Listen = Annotated[
    bool, typer.Option("--listen", help="Allow TCP addresses that other machines can reach.")
]
Data = Annotated[
    str, typer.Option(help="Where the data is stored: memory, or a file that is kept.")
]
Pace = Annotated[
    str,
    typer.Option(
        help="Speed of the drive's clock: real, a factor such as 10x, or none: replies are sent "
        "at once."
    ),
]
VerifyPeer = Annotated[
    bool,
    typer.Option(
        "--tls-verify-peer", help="Accept only clients with a certificate of ca-cert.pem."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object when it ends.")]


@app.command(
    name="serve",
    epilog="Example: ssdlab serve toshiba-xg5 --unix /tmp/xg5.sock --capacity 8GiB",
)
def run(
    profile: Profile,
    *,
    unix: UnixSocket = None,
    tcp: TcpAddress = None,
    nvme_tcp: NvmeAddress = None,
    dhchap_secret: SecretFile = None,
    control: ControlSocket = None,
    mount: Mount = None,
    fs: FileSystem = None,
    listen: Listen = False,
    capacity: Annotated[str | None, typer.Option(help="Scale the twin to this capacity.")] = None,
    data: Data = "memory",
    log: LogFile = None,
    pace: Pace = "real",
    tls_certificates: Certificates = None,
    tls_verify_peer: VerifyPeer = False,
    max_connections: MaxConnections = None,
    payload_memory: PayloadMemory = "128MiB",
    handshake_timeout: HandshakeTimeout = "10s",
    seed: Annotated[int, typer.Option(min=0, help="Seed of random choices in the twin.")] = 0,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print how to attach it.")] = False,
) -> int:
    """Serve a twin as a network block device (NBD), or as an NVMe drive, until Ctrl-C.

    fio, qemu, nbdcopy, nbdfuse and the kernel's clients use it as a drive, with the latencies,
    garbage collection, flushes and failures of the profile.
    """
    mounting = mounting_of(mount, fs, tcp, tls_certificates)
    unix = mounting.default_socket if mounting is not None and unix is None else unix
    address = _nbd_address(unix, tcp, nvme_tcp, reachable=listen)
    nvme_address = nvme_tcp and _parse_address("--nvme-tcp", nvme_tcp, reachable=listen)
    secret, control_path = _read_secret(dhchap_secret, nvme_tcp), _control_path(control, unix)
    capacity_bytes = None if capacity is None else parse_size(capacity)
    data_file = None if data == "memory" else _data_file(data)
    factor, tls = _parse_pace(pace), _tls_folder(tls_certificates, verify_peer=tls_verify_peer)
    profile = parse_profile(profile)
    text = profiles.load(profile)
    from ssdlab.device import ServeOptions, serve
    from ssdlab.records import encode_json

    options = ServeOptions(
        name=profile,
        kind="unix" if unix is not None else "tcp",
        address=address,
        nvme_tcp=nvme_address,
        dhchap_secret=secret,
        control=control_path,
        capacity_bytes=capacity_bytes,
        data=data_file,
        log=None if log is None else str(log),
        pace=factor,
        seed=seed,
        tls=tls,
        tls_verify_peer=tls_verify_peer,
        max_connections=max_connections,
        payload_memory_bytes=_parse_payload_memory(payload_memory),
        handshake_timeout_s=_parse_handshake_timeout(handshake_timeout),
    )
    server = serve(text, options)
    console = Console(stderr=True)
    try:
        _serve_until_interrupt(None if quiet else console, server, options, mounting)
    finally:
        result = _stop(server, log, None if quiet else console)
        if json:
            write_out(encode_json(result))
    return 0


def _serve_until_interrupt(
    console: Console | None, server: Server, options: ServeOptions, mounting: Mounting | None
) -> None:
    """Prints how to attach the twin; Ctrl-C may come as soon as the address is printed."""
    with contextlib.suppress(KeyboardInterrupt):
        if mounting is not None:
            if console is not None:
                _print(console, _pace_in_words(options.pace))
            mounting.serve(options, quiet=console is None)
        elif console is not None:
            _print_usage(console, server, options)
        lateness = Lateness(dict(server.counters()))
        while True:
            for _ in range(LATENESS_EVERY_S):
                time.sleep(1)  # a signal just before a sleep does not interrupt it
            warning = lateness.warning(dict(server.counters()))
            if warning and console is not None:
                _print(console, f"  {warning}")


def _stop(server: Server, log: Path | None, console: Console | None) -> dict[str, object]:
    """Stops the server; returns its addresses and counters."""
    counters = server.counters()
    try:
        server.stop()
    except OSError as error:
        raise UsageError(
            f"--log {log} is incomplete ({error.strerror or error}); free space, and log again"
        ) from error
    if counters["paced_answers"] and console is not None:
        _print(console, f"  {_pacing_summary(counters)}")
    nvme = None if server.nvme is None else dict(zip(("address", "name"), server.nvme, strict=True))
    return {"address": server.address, "nvme": nvme, "counters": counters}


def _nbd_address(
    unix: Path | None, tcp: str | None, nvme_tcp: str | None, *, reachable: bool
) -> str | None:
    """Socket path or HOST:PORT for NBD; None if only NVMe/TCP is served."""
    if unix is None and tcp is None and nvme_tcp is not None:
        return None
    if (unix is None) == (tcp is None):
        raise UsageError(
            "give either --unix SOCKET or --tcp HOST:PORT; --nvme-tcp HOST:PORT can be added to "
            "it, or be given alone"
        )
    if unix is not None:
        _free_socket("--unix", unix)
        return str(unix)
    assert tcp is not None
    return _parse_address("--tcp", tcp, reachable=reachable)


def _parse_address(option: str, text: str, *, reachable: bool) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        usual = "127.0.0.1:4420" if option == "--nvme-tcp" else "127.0.0.1:10809"
        raise UsageError(f"{option} is {text!r}; it must be HOST:PORT, such as {usual}")
    if not _is_loopback(host.strip("[]")) and not reachable:
        protection = "--dhchap-secret" if option == "--nvme-tcp" else "--tls-verify-peer"
        raise UsageError(
            f"{option} {text} can be reached from other machines, and anyone can connect without "
            f"{protection}; give 127.0.0.1:PORT, or add --listen to allow it"
        )
    return text


def _control_path(control: Path | None, unix: Path | None) -> str | None:
    if control is None and unix is not None:
        control = Path(f"{unix}.control")
    if control is None:
        return None
    _free_socket("--control", control)
    return str(control)


def _free_socket(option: str, path: Path) -> None:
    if path.exists():
        from ssdlab.attach.remains import free_socket

        free_socket(option, path)


def _data_file(file: str) -> str:
    if reasons := file_in_use(Path(file)):
        raise UsageError(f"--data {file} must not be overwritten: {reasons[0]}")
    return file


def _parse_pace(text: str) -> float | None:
    if text == "none":
        return None
    try:
        factor = 1.0 if text == "real" else float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 1e-3 <= factor <= 1e6:
        raise UsageError(
            f"--pace is {text!r}; it must be none, real, or a factor from 0.001x to 1000000x"
        )
    return factor


def _parse_payload_memory(text: str) -> int:
    size = parse_size(text)
    if not 1 << 20 <= size <= 1 << 40:
        raise UsageError(f"--payload-memory is {text}; it must be 1MiB to 1TiB")
    return size


def _parse_handshake_timeout(text: str) -> float:
    seconds = parse_duration(text)
    if not 0.01 <= seconds <= 86400:
        raise UsageError(f"--handshake-timeout is {text}; it must be 10ms to 24h")
    return seconds


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls_folder(certificates: Path | None, *, verify_peer: bool) -> str | None:
    if certificates is None and verify_peer:
        raise UsageError("--tls-verify-peer needs --tls-certificates DIR, with ca-cert.pem in it")
    return None if certificates is None else str(certificates)


def _read_secret(file: Path | None, nvme_tcp: str | None) -> str | None:
    """The content of the secret file; the server checks it."""
    if file is None:
        return None
    if nvme_tcp is None:
        raise UsageError(
            "--dhchap-secret needs --nvme-tcp HOST:PORT; for NBD use --tls-certificates"
        )
    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"--dhchap-secret {file}: {reason}; nvme gen-dhchap-key generates a secret"
        ) from error


def _print_usage(console: Console, server: Server, options: ServeOptions) -> None:
    title = f"serving {options.name}, {format_size(server.capacity_bytes)}, until Ctrl-C"
    _print(console, _pace_in_words(options.pace))
    if server.address is None:
        _print(console, title)
    else:
        _print_nbd_usage(console, server.address, title, options)
    if options.data is None:
        _print(
            console,
            "  the twin is empty: write blocks before you measure reads, because a read of a block "
            "that was never written needs no flash",
        )
    if server.nvme is not None:
        address, name = server.nvme
        host, _, port = address.rpartition(":")
        connect = f"nvme connect -t tcp -a {host.strip('[]')} -s {port} -n {name}"
        if options.dhchap_secret is not None:
            connect += " --dhchap-secret SECRET"
        _print(console, f"  {'an NVMe drive':20}{connect}")
    if server.transport_us:
        latency = f"{server.transport_us:.0f} us"
        _print(console, f"  replies are sent {latency} early, to offset the transport's latency")


def _pace_in_words(pace: float | None) -> str:
    """The pace, and what it means for clients."""
    if pace is None:
        return (
            "pace none: replies are sent at once, so clients do not feel the drive's latencies; "
            "for those, use --pace real"
        )
    if pace == 1.0:
        return (
            "pace real: clients feel the drive's latencies; for the full speed of this machine, "
            "use --pace none"
        )
    return f"pace {pace:g}x: {pace:g} seconds of drive time pass in a second of the clients' time"


def _print_nbd_usage(console: Console, address: str, title: str, options: ServeOptions) -> None:
    is_unix, is_tls = options.kind == "unix", options.tls is not None
    if is_unix:
        path = Path(address).resolve()
        uri = f"nbd+unix:///?socket={path}"
        kernel = f"nbd-client -unix {shlex.quote(str(path))} /dev/nbd0 -persist    # as root"
    else:
        host, _, port = address.rpartition(":")
        uri, kernel = (
            f"nbd://{address}",
            f"nbd-client {host} {port} /dev/nbd0 -persist    # as root",
        )
    if is_tls:
        uri = f"{uri.replace('nbd', 'nbds', 1)}{'&' if is_unix else '/?'}tls-certificates=DIR"
    commands = (
        ("inspect it", f"nbdinfo {shlex.quote(uri)}"),
        ("fio", f"fio --name=t --ioengine=nbd --uri={shlex.quote(uri)} --rw=randread --size=64m"),
        ("a file", f"mkdir -p d && nbdfuse d {shlex.quote(uri)} &"),
        (
            "a block device",
            "losetup --find --show --direct-io=on d/nbd    # nbdfuse and this: as root",
        ),
        ("the kernel's client", kernel),
        ("a guest", f"qemu-system-x86_64 -drive file={shlex.quote(uri)},{_DRIVE} ..."),
    )
    _print(console, f"{title}: {uri}")
    for name, command in commands[: 4 if is_tls else None]:  # the others do not accept nbds:
        _print(console, f"  {name:20}{command}")


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


@dataclass
class Lateness:
    """Warns of late replies while the twin is served; `last` holds the counters seen last."""

    last: dict[str, float | None]
    _warned_at: float | None = None

    def warning(self, counters: dict[str, float | None]) -> str:
        """A line if many of the replies since the last call were late; one a minute at most."""
        answers, late = (
            (counters[name] or 0.0) - (self.last[name] or 0.0)
            for name in ("paced_answers", "late_answers")
        )
        self.last = counters
        now = time.monotonic()
        is_due = self._warned_at is None or now >= self._warned_at + 60
        if answers < LATENESS_ANSWERS_MIN or late < LATE_MAX * answers or not is_due:
            return ""
        self._warned_at = now
        return (
            f"late: {late / answers:.0%} of the last {answers:.0f} replies were sent over 20 us "
            "late, so clients do not see its latencies; stop other programs on this machine, "
            "or give a smaller --pace, such as 0.1x"
        )


def _pacing_summary(counters: dict[str, float | None]) -> str:
    """The share of replies that were sent late, and the largest delay."""
    answers, late = (counters[name] or 0.0 for name in ("paced_answers", "late_answers"))
    latest_us = counters["latest_answer_us"] or 0.0
    return (
        f"{late / answers:.1%} of {answers:.0f} replies were sent over 20 us late, the latest by "
        f"{latest_us:.0f} us; above a few percent, stop other programs on this machine"
    )
