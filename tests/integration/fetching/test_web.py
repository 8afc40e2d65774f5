"""An archive from a web server that does not always do what it should (UPG-3)."""

from __future__ import annotations

import gzip
import hashlib
import resource
import signal
import subprocess
import sys
import threading

import pytest

from agent.releases.fetch import client
from harness.waiting import wait_until
from tests.integration.fetching.conftest import CONTENT, CREDENTIAL, WEB_NAME, Device
from tests.support.file_server import (
    FileServer,
    a_part,
    cut_off,
    endless,
    redirect,
    stall,
    status,
    without_ranges,
)
from tests.support.forward_proxy import ForwardProxy

pytestmark = pytest.mark.clause("UPG-3")

OTHER = CONTENT[::-1]
_AS_PROCESS = """
import pathlib, sys
from agent.releases.fetch.command import main
sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
"""


def test_fetches_by_https_from_a_server_of_the_site_s_authority(device: Device, web: FileServer) -> None:
    done = device.fetch(f"{web.url}/agent.tar.gz")
    assert (done.code, done.why) == (0, "")
    assert device.has(CONTENT)
    assert "of 700,000 bytes" in done.out, "a long job is not silent"


def test_trusts_no_other_authority(device: Device, web: FileServer) -> None:
    device.ca_file = ""
    done = device.fetch(f"{web.url}/agent.tar.gz")
    assert done.code == 1
    assert web.address in done.why
    assert "certificate" in done.why
    assert not web.asked


def as_process(device: Device, url: str, limit: int) -> subprocess.CompletedProcess[str]:
    """In a process that may write so many bytes, as the updater's unit may."""
    return subprocess.run(
        [sys.executable, "-c", _AS_PROCESS, *map(str, device.job(url))],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


class TestCutOff:
    def test_goes_on_where_the_connection_broke(self, device: Device, web: FileServer) -> None:
        web.answers.extend([cut_off(262_144), cut_off(131_072)])
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)
        assert [asked.range for asked in web.asked] == ["", "bytes=262144-", "bytes=393216-"]

    def test_goes_on_after_it_was_killed(self, device: Device, web: FileServer) -> None:
        go_on = threading.Event()
        web.answers.append(stall(262_144, go_on))
        job = device.job(f"{web.url}/a")
        process = subprocess.Popen([sys.executable, "-c", _AS_PROCESS, *map(str, job)], stdout=subprocess.DEVNULL)
        try:
            wait_until(device.holds(262_144), seconds=30, what="the first part")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            go_on.set()
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)
        assert web.asked[-1].range == "bytes=262144-"

    def test_goes_on_after_silence(self, device: Device, web: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "TIMEOUT_SECONDS", (5.0, 0.3))
        go_on = threading.Event()
        web.answers.append(stall(262_144, go_on))
        done = device.fetch(f"{web.url}/a")
        go_on.set()
        assert (done.code, web.asked[-1].range) == (0, "bytes=262144-")
        assert device.has(CONTENT)

    def test_goes_on_where_a_server_sends_a_part_only(self, device: Device, web: FileServer) -> None:
        web.answers.extend([cut_off(131_072), a_part(200_000), a_part(200_000)])
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)
        assert [asked.range for asked in web.asked][1:] == ["bytes=131072-", "bytes=331072-", "bytes=531072-"]

    def test_starts_over_when_the_file_has_changed(self, device: Device, web: FileServer) -> None:
        web.content = OTHER
        web.answers.append(cut_off(262_144))
        web.answers.extend([status(404)])
        assert device.fetch(f"{web.url}/a").code == 1
        web.content = CONTENT
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)
        assert len(web.asked) == 3, "the server itself said that it is another file"

    def test_starts_over_without_ranges(self, device: Device, web: FileServer) -> None:
        web.answers.extend([cut_off(262_144), without_ranges])
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)

    def test_does_not_believe_what_lies_there(self, device: Device, web: FileServer) -> None:
        device.archive.write_bytes(OTHER[:262_144])
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)

    def test_fetches_nothing_when_all_of_it_is_there(self, device: Device, web: FileServer) -> None:
        device.archive.write_bytes(CONTENT)
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)
        assert len(web.asked) == 1

    def test_gives_up_when_nothing_comes_for_a_quarter_of_an_hour(self, device: Device, web: FileServer) -> None:
        web.answers.extend([status(503)] * 1000)
        done = device.fetch(f"{web.url}/a?signature=s3cret")
        assert (done.code, done.why) == (1, f"{web.url}/a answered 503")
        assert 900 <= sum(device.slept) < 1000
        assert "s3cret" not in done.out


class TestSize:
    def test_too_large_by_its_own_word_is_not_begun(self, device: Device, web: FileServer) -> None:
        done = device.fetch(f"{web.url}/a", maxSize=500_000)
        assert (done.code, done.why) == (1, f"{web.url}/a has 700,000 bytes, more than its maxSize of 500,000")
        assert not device.archive.exists() or not device.archive.stat().st_size

    def test_a_part_of_something_too_large_is_not_begun(self, device: Device, web: FileServer) -> None:
        web.content = CONTENT + b"more"
        device.archive.write_bytes(CONTENT[:131_072])
        web.answers.append(a_part(1_000))
        done = device.fetch(f"{web.url}/a", maxSize=len(CONTENT))
        assert (done.code, done.why) == (1, f"{web.url}/a has 700,004 bytes, more than its maxSize of 700,000")

    def test_the_unit_s_own_limit_is_in_nobody_s_way(self, device: Device, web: FileServer) -> None:
        """The limit is exactly ``maxSize``, and so is what comes."""
        done = as_process(device, f"{web.url}/a", limit=len(CONTENT))
        assert (done.returncode, done.stderr) == (0, "")
        assert device.has(CONTENT)

    def test_the_unit_s_own_limit_ends_it_with_a_sentence(self, device: Device, web: FileServer) -> None:
        done = as_process(device, f"{web.url}/a", limit=len(CONTENT) - 1)
        assert (done.returncode, done.stderr) == (1, "the archive: File too large\n")
        assert device.archive.stat().st_size == len(CONTENT) - 1

    def test_without_an_end_is_cut(self, device: Device, web: FileServer) -> None:
        web.answers.append(endless)
        done = device.fetch(f"{web.url}/a", maxSize=500_000)
        assert done.code == 1
        assert "does not end at its maxSize of 500,000 bytes" in done.why
        assert device.archive.stat().st_size <= 500_000

    def test_with_another_digest_is_removed_and_both_are_named(self, device: Device, web: FileServer) -> None:
        web.content = OTHER
        done = device.fetch(f"{web.url}/a")
        found, wanted = (hashlib.sha256(content).hexdigest() for content in (OTHER, CONTENT))
        assert (done.code, done.why) == (1, f"the archive has the digest sha256 {found}, and not sha256 {wanted}")
        assert not device.archive.exists()

    def test_a_length_that_is_no_number_is_the_server_s_fault(self, device: Device, web: FileServer) -> None:
        web.answers.append(lambda exchange: exchange.start(200, {"Content-Length": "many"}))
        done = device.fetch(f"{web.url}/a")
        assert done.code == 1
        assert web.address in done.why


class TestAnswers:
    @pytest.mark.parametrize(
        ("code", "hint"), [(401, "login"), (403, "may not be fetched"), (404, "nothing there"), (410, "")]
    )
    def test_a_refusal_ends_it_at_once(self, device: Device, web: FileServer, code: int, hint: str) -> None:
        web.answers.append(status(code, b"<html>no</html>"))
        done = device.fetch(f"{web.url}/a?signature=s3cret")
        assert done.code == 1
        assert done.why.startswith(f"{web.url}/a answered {code}")
        assert hint in done.why
        assert "s3cret" not in done.why
        assert not device.slept

    def test_waits_as_long_as_the_server_asks(self, device: Device, web: FileServer) -> None:
        web.answers.extend([status(429, Retry_After="40"), status(500), status(500)])
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.slept[0] == 40
        assert 1 <= device.slept[1] <= 2 <= device.slept[2] <= 4

    def test_what_a_server_calls_compressed_is_taken_as_it_is(self, device: Device, web: FileServer) -> None:
        packed = gzip.compress(CONTENT)
        web.answers.append(status(200, packed, Content_Encoding="gzip"))
        assert device.fetch(f"{web.url}/a", packed).code == 0
        assert device.has(packed)


class TestRedirects:
    def test_to_another_server_is_followed_without_the_credential(
        self, device: Device, web: FileServer, elsewhere: FileServer
    ) -> None:
        device.server = web.url
        web.answers.append(redirect(f"{elsewhere.url}/b"))
        assert device.fetch(f"{web.url}/a").code == 0
        assert device.has(CONTENT)
        assert [asked.authorization for asked in web.asked] == [f"Bearer {CREDENTIAL}"]
        assert [asked.authorization for asked in elsewhere.asked] == [""]

    @pytest.mark.parametrize(
        ("place", "why"),
        [
            ("file:///etc/passwd", "file:///etc/passwd, which is not followed: it has the scheme 'file'"),
            ("http://192.0.2.7/a", "http://192.0.2.7/a, which is not followed: it is http:// to 192.0.2.7"),
            ("http://127.0.0.1:1/a", "http://127.0.0.1:1/a, which is not followed: it leaves https"),
            ("https://me:s3cret@web.example/a", "https://web.example/a, which is not followed: it holds a user name"),
            ("oci://web.example/a:1", "oci://web.example/a:1, which is not followed: it is no address of a web"),
            ("", "nowhere: its answer has no Location"),
        ],
    )
    def test_to_a_worse_place_is_not_followed(self, device: Device, web: FileServer, place: str, why: str) -> None:
        web.answers.append(redirect(place))
        done = device.fetch(f"{web.url}/a")
        assert done.code == 1
        assert done.why.startswith(f"{web.url}/a redirects to {why}")
        assert "s3cret" not in done.why

    def test_in_circles_end(self, device: Device, web: FileServer) -> None:
        web.answers.extend([redirect("/a")] * 100)
        done = device.fetch(f"{web.url}/a")
        assert (done.code, done.why) == (1, f"{web.url}/a leads in circles: more than 5 redirects")
        assert len(web.asked) == 6


class TestProxy:
    def test_is_on_the_way_to_other_hosts(self, device: Device, web: FileServer) -> None:
        with ForwardProxy(hosts={f"{WEB_NAME}:443": web.address}) as proxy:
            device.proxy = proxy.url
            assert device.fetch(f"https://{WEB_NAME}/a").code == 0
            assert proxy.seen == [("CONNECT", f"{WEB_NAME}:443")]
        assert device.has(CONTENT)

    def test_is_not_asked_for_what_is_on_this_device(self, device: Device) -> None:
        with FileServer(CONTENT) as local, ForwardProxy() as proxy:
            device.proxy = proxy.url
            assert device.fetch(f"{local.url}/a").code == 0
            assert not proxy.seen
        assert device.has(CONTENT)
