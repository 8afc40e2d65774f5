"""What may become a release on a device, and what of an archive that may not is left: nothing (UPG-3, UPG-7)."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import struct
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.releases import members as policy
from agent.releases.archive import install, unpack
from agent.releases.patience import Patience, TooSlow
from agent.releases.tar import BadArchive, Tar
from tests.unit.releases.kit import FILES, TOP, Member, archive, contents, described, link, member, members, tar, target

pytestmark = pytest.mark.clause("UPG-3")


@dataclass
class Desk:
    """``place`` is where a release is to be; ``outside`` belongs to somebody else."""

    folder: Path

    def __post_init__(self) -> None:
        self.outside.mkdir()
        (self.outside / "passwd").write_bytes(b"root:x:0:0")

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def place(self) -> Path:
        return self.folder / "releases" / "1.4.0-0123456789ab"

    def install(self, data: bytes, **other: object) -> str:
        self.place.parent.mkdir(exist_ok=True)
        path = self.folder / "archive"
        path.write_bytes(data)
        return install(path, target(data, **other), self.place, Patience())

    def is_untouched(self) -> bool:
        return contents(self.outside) == {"passwd": b"root:x:0:0"} and not list(self.place.parent.iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("top", [f"{TOP}/", "./", f"./{TOP}/", ""])
def test_a_release_is_unpacked_whole_without_the_folder_around_it(desk: Desk, form: int, top: str) -> None:
    long = {**FILES, f"_internal/{'x' * 90}/{'y' * 90}": b"deep"}
    assert desk.install(archive(members(long, described(long), top), form)) == ""
    found = contents(desk.place)
    assert {name: found[name] for name in long} == long
    assert os.listdir(desk.place.parent) == [desk.place.name]


def test_modes_are_a_release_s_own_and_not_the_archive_s(desk: Desk) -> None:
    odd = [(info, data) for info, data in members()]
    for info, _ in odd:
        info.mode = 0o777 if info.name.endswith("fleet-agent") else 0o602
        info.uid, info.uname = 1234, "nobody"
    assert desk.install(archive([member(TOP, kind=tarfile.DIRTYPE, mode=0o1777), *odd])) == ""
    modes = {path.relative_to(desk.place).as_posix(): path.stat().st_mode & 0o7777 for path in desk.place.rglob("*")}
    assert modes == {
        "fleet-agent": 0o755,
        "_internal": 0o755,
        "_internal/library.so": 0o644,
        "_internal/empty": 0o644,
        "release.json": 0o644,
    }
    assert {path.stat().st_uid for path in desk.place.rglob("*")} == {os.geteuid()}


def test_a_link_to_what_is_listed_stays_a_link(desk: Desk) -> None:
    assert desk.install(archive([*members(), link(f"{TOP}/_internal/alias.so", "library.so")])) == ""
    assert (desk.place / "_internal/alias.so").readlink() == Path("library.so")


def escaping(*extra: Member) -> list[Member]:
    return [*members(), *extra]


BAD: dict[str, tuple[list[Member], str]] = {
    "absolute path": (escaping(member("/outside/evil", b"x")), "is an absolute path"),
    "parent": (escaping(member("../outside/evil", b"x")), "leads out of it"),
    "parent inside": (escaping(member(f"{TOP}/a/../../../outside/evil", b"x")), "leads out of it"),
    "absolute link": (escaping(link(f"{TOP}/evil", "/etc/passwd")), "links to '/etc/passwd', outside of it"),
    "link out": (escaping(link(f"{TOP}/evil", "../../outside/passwd")), "outside of it"),
    "empty link": (escaping(link(f"{TOP}/evil", "")), "outside of it"),
    "link out of the top folder": (escaping(link(f"{TOP}/evil", "../other")), "leads nowhere"),
    "link out through links": (
        escaping(link(f"{TOP}/a/b/up", "../.."), link(f"{TOP}/a/b/evil", "up/../../outside")),
        "leads",
    ),
    "link to itself": (escaping(link(f"{TOP}/loop", "loop")), "loop leads nowhere"),
    "file through a link": (
        [link(f"{TOP}/d", "."), *escaping(member(f"{TOP}/d/evil", b"x"))],
        "meets 'harmony-fleet-1.4.0/d', which is no folder",
    ),
    "file over a link": ([link(f"{TOP}/fleet-agent", "other"), *escaping()], "is twice in the archive"),
    "folder over a link": (
        [link(f"{TOP}/_internal", "."), *escaping()],
        "meets 'harmony-fleet-1.4.0/_internal', which is no folder",
    ),
    "the same twice": (escaping(member(f"{TOP}/fleet-agent", b"x")), "is twice in the archive"),
    "a file that is the folder itself": (escaping(member(".", b"x")), "is twice"),
    "hard link": (escaping(member(f"{TOP}/evil", kind=tarfile.LNKTYPE, linkname="/etc/passwd")), "is a hard link"),
    "character device": (escaping(member(f"{TOP}/evil", kind=tarfile.CHRTYPE, devmajor=1)), "is a character device"),
    "block device": (escaping(member(f"{TOP}/evil", kind=tarfile.BLKTYPE, devmajor=8)), "is a block device"),
    "named pipe": (escaping(member(f"{TOP}/evil", kind=tarfile.FIFOTYPE)), "is a named pipe"),
    "unknown kind": (escaping(member(f"{TOP}/evil", kind=b"V")), "is of a kind that no release has"),
    "set-user-id": (escaping(member(f"{TOP}/evil", mode=0o4755)), "has a set-id bit (4755)"),
    "set-group-id folder": (escaping(member(f"{TOP}/d", kind=tarfile.DIRTYPE, mode=0o2755)), "has a set-id bit (2755)"),
    "terminal sequence": (escaping(member(f"{TOP}/\x1b[2J", b"x")), "is no name of a file"),
    "long name": (escaping(member(f"{TOP}/{'x' * 300}", b"x")), "a part of more than 255 bytes"),
    "long path": (escaping(member(f"{TOP}/{'x/' * 600}y", b"x")), "is no name of a file"),
}


@pytest.mark.parametrize(("packed", "sentence"), BAD.values(), ids=BAD)
def test_a_member_that_no_release_has_spoils_the_archive(desk: Desk, packed: list[Member], sentence: str) -> None:
    assert sentence in desk.install(archive(packed, tarfile.PAX_FORMAT))
    assert desk.is_untouched()


WRONG: dict[str, tuple[bytes, dict[str, object], str]] = {
    "version": (archive(members()), {"version": "1.4.1"}, "is of version 1.4.0, and the target's is 1.4.1"),
    "architecture": (archive(members()), {"architecture": "arm64"}, "is for amd64, and the target is for arm64"),
    "no description": (archive([member(f"{TOP}/fleet-agent")]), {}, "holds no release: release.json cannot be read"),
    "odd description": (archive([member("release.json", b"[")]), {}, "holds no release: release.json cannot be read"),
    "description is a link": (
        archive([member("a", b"{}"), link("release.json", "a")]),
        {},
        "holds no release: release.json is no file",
    ),
    "no program": (archive(members({"other": b""})), {}, "lists no fleet-agent"),
    "missing file": (
        archive(members({"fleet-agent": b""}, described())),
        {},
        "does not hold what its release.json says: _internal/empty is missing",
    ),
    "unlisted file": (
        archive([*members(), member(f"{TOP}/extra", b"x")]),
        {},
        "says: extra is not listed in release.json",
    ),
    "changed file": (
        archive(members({**FILES, "fleet-agent": b"evil"}, described())),
        {},
        "says: fleet-agent was changed",
    ),
    "not compressed": (tar(members()), {}, "is cut off or damaged, or not compressed by gzip"),
    "no tar": (gzip.compress(b"hello" * 200), {}, "is damaged, or no tar archive"),
    "empty": (b"", {}, "is cut off"),
    "something after it": (archive(members()) + b"evil", {}, "is cut off or damaged"),
}


@pytest.mark.parametrize(("data", "other", "sentence"), WRONG.values(), ids=WRONG)
@pytest.mark.case("U7")
def test_what_is_not_the_target_is_not_installed(
    desk: Desk, data: bytes, other: dict[str, object], sentence: str
) -> None:
    assert sentence in desk.install(data, **other)
    assert desk.is_untouched()


def pax(records: bytes) -> bytes:
    """An extended header that says this of the member after it."""
    return tar([member("x", records, kind=b"x")])[: 512 + -(-len(records) // 512) * 512]


HEADERS = {
    "larger than memory": (
        tar([member("x", kind=b"x")])[:124] + b"77777777777\x00",
        "has a header of 8,589,934,591 bytes",
    ),
    "no record": (pax(b"hello"), "has a header that cannot be read"),
    "record of no length": (pax(b"0 path=x\n"), "has a header that cannot be read"),
    "negative size": (pax(b"11 size=-1\n"), "has a header that cannot be read"),
    "holes": (pax(b"22 GNU.sparse.major=1\n"), "has a file with holes"),
    "no UTF-8": (pax(b"10 path=\xff\n"), "which is no UTF-8"),
}


@pytest.mark.parametrize(("header", "sentence"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_asks_for_too_much_or_makes_no_sense_is_refused(header: bytes, sentence: str) -> None:
    block = bytearray(header[:512].ljust(512, b"\x00"))
    block[156:157], block[148:156] = b"x", b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    tracemalloc.start()
    try:
        with pytest.raises(BadArchive, match=sentence):
            list(Tar(io.BytesIO(bytes(block) + header[512:] + tar(members()))))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "one large file": (lambda: archive([member("zeros", bytes(1_000_000))]), "more than 32,768 bytes unpacked"),
    "many files": (
        lambda: archive([member(str(n), bytes(1000)) for n in range(100)]),
        "more than 32,768 bytes unpacked",
    ),
    "nothing but an end": (
        lambda: gzip.compress(tar(members()) + bytes(100_000_000), 1),
        "more bytes unpacked than it may",
    ),
}


@pytest.mark.parametrize(("bomb", "sentence"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_given_up_before_it_fills_the_disk_or_the_memory(
    desk: Desk, bomb: Callable[[], bytes], sentence: str
) -> None:
    data = bomb()
    tracemalloc.start()
    try:
        assert sentence in desk.install(data, maxSize=4096)
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
    assert desk.is_untouched()


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_more_names_than_a_release_has_are_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: bytes) -> None:
    """Folders that are only named on the way to others count as well."""
    monkeypatch.setattr(policy, "MAX_ENTRIES", 300)
    packed = [member(f"{n}/{'d/' * 29}x", kind=kind, linkname="y") for n in range(11)]
    assert desk.install(archive(packed)) == "the archive has more than 300 files, folders and links"
    assert desk.is_untouched()


def test_the_most_that_may_be_unpacked_is_eight_times_the_archive_and_two_gigabytes() -> None:
    assert policy.most_bytes(25_000_000) == 200_000_000
    assert policy.most_bytes(1_073_741_824) == 2 * 1024**3


class HastyClock:
    """A second passes with each look."""

    seconds = 0.0

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


def test_an_archive_that_takes_too_long_leaves_nothing(desk: Desk) -> None:
    desk.place.parent.mkdir()
    path = desk.folder / "archive"
    path.write_bytes(archive(members()))
    with pytest.raises(TooSlow, match="more than 3 seconds"):
        install(path, target(b""), desk.place, Patience(3, HastyClock()))
    assert desk.is_untouched()


def test_an_archive_that_is_cut_off_anywhere_leaves_nothing(desk: Desk) -> None:
    data = archive(members())
    for end in range(len(data)):
        assert "cut off" in desk.install(data[:end])
    assert desk.is_untouched()


@given(where=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_an_archive_with_a_bit_turned_is_refused_or_is_the_release(
    tmp_path_factory: pytest.TempPathFactory, where: int, bit: int
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    packed = bytearray(tar(members()))
    packed[where % len(packed)] ^= 1 << bit
    if desk.install(gzip.compress(packed, 1)):
        assert desk.is_untouched()
    else:
        found = contents(desk.place)
        assert {name: found[name] for name in FILES} == FILES


@given(st.binary(max_size=1100))
def test_bytes_that_are_no_archive_are_said_to_be_none(data: bytes) -> None:
    header = bytearray(data[:512].ljust(512, b"\x00"))
    header[148:156] = b" " * 8
    header[148:156] = struct.pack("8s", f"{sum(header):06o}\0 ".encode())
    for odd in (data, bytes(header) + data[512:]):
        try:
            names = [each.name for each in Tar(io.BytesIO(odd))]
        except BadArchive:
            continue
        assert not any(names) or bytes(odd).endswith(bytes(512))


_WORDS = st.sampled_from(["a", "b", "c", "..", ".", "", "outside"])
_PATHS = st.lists(_WORDS, min_size=1, max_size=5).map("/".join)
_KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])


@given(st.lists(st.tuples(_PATHS, _KINDS, _PATHS), max_size=8))
def test_whatever_is_packed_nothing_outside_is_written(
    tmp_path_factory: pytest.TempPathFactory, packed: list[tuple[str, bytes, str]]
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    folder = desk.folder / "unpacked"
    folder.mkdir()
    data = archive(
        member(name, b"evil" if kind == tarfile.REGTYPE else b"", kind=kind, linkname=leads_to)
        for name, kind, leads_to in packed
    )
    with contextlib.suppress(BadArchive):
        unpack(io.BytesIO(data), folder, 10_000, Patience())
    assert sorted(os.listdir(desk.folder)) == ["outside", "unpacked"]
    assert contents(desk.outside) == {"passwd": b"root:x:0:0"}
