"""Kernels on a real Debian: the space that a new one needs in ``/boot``, and which one is expected after the reboot."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from agent.updater.debian.kernels import flavour
from agent.wire.messages import AttemptState
from harness.vm.device import Device
from harness.vm.packages import Package
from tests.support.needs import cannot

KERNEL, INITRD = 600_000, 900_000


def _kernel(abi: str) -> Package:
    return Package(f"linux-image-6.1.0-{abi}-amd64", "1", files={f"boot/vmlinuz-6.1.0-{abi}-amd64": b"\0" * KERNEL})


@pytest.mark.clause("SYS-2")
@pytest.mark.case("U3")
def test_a_kernel_that_does_not_fit_into_boot_is_refused_with_both_numbers(new_device: Callable[..., Device]) -> None:
    newest = Package("harmony-good", "2", fields={"Depends": "linux-image-6.1.0-2-amd64"})
    device = new_device(newest, _kernel("2"), mounts={"/boot": "2M"})
    device.machine.inside("/boot/vmlinuz-6.1.0-1-amd64").write_bytes(b"\0" * KERNEL)
    device.machine.inside("/boot/initrd.img-6.1.0-1-amd64").write_bytes(b"\0" * INITRD)
    device.begin()
    end = device.wait_for_end()
    assert end.state is AttemptState.FAILED
    assert f"/boot needs {KERNEL + INITRD:,} bytes and has " in end.message
    assert "No package was changed" in end.message
    assert device.machine.run("dpkg-query", "--show", "harmony-good").stdout.split() == ["harmony-good", "1"]


@pytest.mark.clause("SYS-4")
def test_a_reboot_that_keeps_the_old_kernel_is_not_verified(new_device: Callable[..., Device]) -> None:
    """A container runs its host's kernel, whatever is installed in it."""
    running = os.uname().release
    if not flavour(running):
        cannot(f"this host's kernel {running} is of no flavour")
    expected = f"99.0-{flavour(running)}"
    newest = Package("harmony-good", "2", fields={"Depends": f"linux-image-{expected}"})
    device = new_device(newest, Package(f"linux-image-{expected}", "1"))
    device.begin()
    end = device.wait_for_end()
    assert end.state is AttemptState.FAILED
    assert running in end.message
    assert expected in end.message
    assert device.machine.boots == 2
