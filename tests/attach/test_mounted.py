"""`ssdlab serve --mount`: real mounts, undone at the end, and made again after power cuts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from forked import run_ssdlab
from rig import PATIENCE_S, executable, need, run, wait_for

from ssdlab.device import Control
from ssdlab.storage_stack.mounts import mount_of, read_mounts

TWIN = ("toshiba-xg5", "--capacity", "384MiB")
CONTENT = b"kept" * 20_000


class MountedServer:
    """A running `ssdlab serve --mount`."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.point, self.messages = folder / "point", folder / "messages"
        self.socket = folder / "twin.sock"
        command = [executable(), "serve", *TWIN, "--mount", str(self.point), "--json"]
        with self.messages.open("w") as stderr:
            self.process = subprocess.Popen(
                [*command, "--unix", str(self.socket), *words],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        wait_for(lambda: self.said("mounted at") or self.has_ended, self.messages)
        assert not self.has_ended, self.messages.read_text()
        match = re.search(r" on (/dev/loop\d+)", self.messages.read_text())
        assert match, self.messages.read_text()
        self.node = Path(match[1])

    @property
    def control(self) -> Control:
        return Control(f"{self.socket}.control")

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def said(self, text: str) -> bool:
        return text in self.messages.read_text()

    def wait_for(self, text: str, times: int) -> None:
        """Waits until it has printed a text so often."""
        wait_for(lambda: self.messages.read_text().count(text) == times, self.messages)

    def end(self, number: signal.Signals = signal.SIGINT) -> str:
        """Ends it by a signal; returns its standard output."""
        if not self.has_ended:
            self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, self.messages.read_text()
        assert "Traceback" not in self.messages.read_text()
        return out


ServeMounted = Callable[..., MountedServer]


@pytest.fixture
def serve_mounted(tmp_path: Path) -> Iterator[ServeMounted]:
    """`serve_mounted(*words)` -> a mounted twin at full speed, unless `words` has --pace."""
    need("nbdfuse", "losetup", "mkfs.ext4", "fstrim", root=True)
    if not Path("/dev/fuse").exists():
        pytest.skip("needs /dev/fuse")
    with ExitStack() as undo:

        def start(*words: str) -> MountedServer:
            server = MountedServer(tmp_path, *(words or ("--pace", "none")))
            undo.callback(server.end)
            return server

        yield start


def backing_of(node: Path) -> str:
    file = Path("/sys/block", node.name, "loop/backing_file")
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_twin_is_mounted_and_all_is_undone_at_the_end(
    serve_mounted: ServeMounted, number: signal.Signals
) -> None:
    server = serve_mounted("--pace", "real")
    assert mount_of(server.point).fs_type == "ext4"
    assert server.said("pace real: clients feel the drive's latencies")
    server.wait_for("to offset the latency of nbdfuse and the loop device", 1)
    (server.point / "file").write_bytes(CONTENT)
    run("fstrim", str(server.point))
    with server.control as control:
        counters = control.counters()
    assert counters["host_trims"], "discards arrive"
    folder = Path(backing_of(server.node).strip()).parent
    out = json.loads(server.end(number))
    assert out["counters"]["host_write_bytes"] > len(CONTENT)
    assert not server.point.exists(), "it was created, so it is removed"
    assert str(folder) not in backing_of(server.node)
    assert not folder.exists()
    assert not server.socket.exists()


def test_a_file_system_in_use_is_served_until_it_is_free(serve_mounted: ServeMounted) -> None:
    server = serve_mounted()
    user = subprocess.Popen(["sleep", "1000"], cwd=server.point)
    try:
        server.process.send_signal(signal.SIGINT)
        text = f"{server.point} is in use by sleep ({user.pid}): serving until it is free"
        wait_for(lambda: server.said(text), server.messages)
        (server.point / "file").write_bytes(CONTENT)
        run("sync", "-f", str(server.point / "file"))
        assert (server.point / "file").read_bytes() == CONTENT
        server.process.send_signal(signal.SIGTERM)  # named again, and still served
        wait_for(lambda: server.messages.read_text().count(text) > 1, server.messages)
        assert not server.has_ended
    finally:
        user.kill()
        user.wait()
    assert json.loads(server.end())["counters"]["host_writes"] > 0
    assert not server.point.exists()


@pytest.mark.parametrize("at_once", [False, True])
def test_after_a_power_cut_it_is_mounted_again(serve_mounted: ServeMounted, at_once: bool) -> None:
    server = serve_mounted()
    kept = server.point / "kept"
    kept.write_bytes(CONTENT)
    run("sync", "-f", str(kept))
    for cut in range(1, 3):
        with server.control as control:
            control.power_cut(on=at_once)
            if not at_once:
                server.wait_for("the power is off", cut)
                mounts = [mount.mount_point for mount in read_mounts()]
                assert server.point not in mounts
                control.power_on()
        server.wait_for("mounted again", cut)
        assert kept.read_bytes() == CONTENT
        (server.point / f"after-{cut}").write_bytes(CONTENT)
    server.end()


def test_a_file_system_of_the_data_file_is_kept(
    serve_mounted: ServeMounted, tmp_path: Path
) -> None:
    need("mkfs.xfs")
    data = ("--data", str(tmp_path / "data"), "--pace", "none")
    first = serve_mounted(*data, "--fs", "xfs")
    assert mount_of(first.point).fs_type == "xfs"
    (first.point / "file").write_bytes(CONTENT)
    first.end()
    second = serve_mounted(*data, "--fs", "xfs")
    assert (second.point / "file").read_bytes() == CONTENT
    second.end()
    words = ("serve", *TWIN, "--mount", tmp_path / "point", "--unix", tmp_path / "other.sock")
    done = run_ssdlab([*words, *data], cwd=tmp_path)
    assert done.returncode == 2
    assert "the twin holds xfs, not ext4; give --fs xfs" in done.stderr
    assert not (tmp_path / "point").exists()


def test_the_mount_of_a_killed_server_is_undone_by_the_next_one(
    serve_mounted: ServeMounted, refused: Callable[..., str], tmp_path: Path
) -> None:
    first = serve_mounted()
    folder = Path(backing_of(first.node).strip()).parent
    served = refused("--mount", first.point, "--unix", tmp_path / "other.sock")
    assert f"a twin mounted that is being served at {first.socket}; end that server" in served
    first.process.kill()
    first.process.communicate()
    user = subprocess.Popen(["sleep", "1000"], cwd=first.point)
    try:
        in_use = refused("--mount", first.point, "--unix", tmp_path / "other.sock")
        assert f"cannot be unmounted (in use by sleep ({user.pid}))" in in_use
    finally:
        user.kill()
        user.wait()
    done = subprocess.Popen(["true"], stdout=subprocess.PIPE, text=True)
    first.process = done  # there is nothing left to end
    second = serve_mounted()
    assert second.said(f"{second.point} was still mounted from a twin whose server was killed")
    assert mount_of(second.point).fs_type == "ext4"
    assert not folder.exists()
    second.end()
    assert str(folder) not in Path("/proc/mounts").read_text()


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """`refused(*words)` -> the one line with which `ssdlab serve` refuses them."""

    def words(*more: object) -> str:
        done = run_ssdlab(["serve", *TWIN, *more], cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    return words


def test_an_unusable_mount_is_refused_before_the_twin_is_served(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    assert "--fs xfs needs --mount DIR" in refused("--unix", "x.sock", "--fs", "xfs")
    new = ("--mount", tmp_path / "new")
    assert "leave out --tcp" in refused(*new, "--tcp", "127.0.0.1:0")
    need("nbdfuse", "losetup", "mkfs.ext4", root=True)
    assert "--fs is 'ntfs'; it must be one of ext4, xfs, btrfs" in refused(*new, "--fs", "ntfs")
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    assert f"--mount {full} is not empty; give an empty" in refused("--mount", full)
    assert "is not a directory" in refused("--mount", full / "file")
    assert "none does not exist" in refused("--mount", tmp_path / "none" / "point")
    assert not (tmp_path / "new").exists()


def test_an_ordinary_user_learns_what_takes_root(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssdlab.attach import check_mount
    from ssdlab.errors import UsageError

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match=r"--mount needs root.* run it with sudo; without root, "):
        check_mount(tmp_path, "ext4", print)
