"""The control plane's side of a simulation: group and token before it, its devices forgotten after it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta

from django.db.models import QuerySet

from devices.models import Device, DeviceGroup, Heartbeat
from devices.services import device_forget, device_reset_credential, group_create, token_create, token_revoke
from fleet.core import clock
from fleet.core.errors import Conflict
from rollouts.models import LastReport

#: A label of every simulated device, by its token: nothing without it is ever reset or forgotten.
MARK = {"simulated": "true"}
#: Enrolling 10,000 devices takes minutes; the token is revoked as soon as they are in.
TOKEN_LIFETIME = timedelta(hours=1)


@contextlib.contextmanager
def admitted(names: Sequence[str], *, group: str) -> Iterator[str]:
    """The plain text of a token for these devices, which lets nobody in afterwards.

    Devices of the same names that an earlier simulation left are let in again.

    Raises:
        Conflict: when a device that is not simulated has one of the names.
    """
    _let_in_again(names)
    token, plain = token_create(
        name=f"simulation-{clock.now():%Y%m%d-%H%M%S-%f}",
        expires_at=clock.now() + TOKEN_LIFETIME,
        use_limit=len(names),
        labels=MARK,
        groups=[DeviceGroup.objects.filter(name=group).first() or group_create(name=group, actor=None)],
        actor=None,
    )
    try:
        yield plain
    finally:
        token_revoke(token=token, actor=None)


def forget(names: Sequence[str], *, on_progress: Callable[[int], None] = lambda done: None) -> int:
    """Forget the simulated ones among these devices; returns how many.

    Raises:
        Conflict: when one of them is written to all the time; call again.
    """
    done = 0
    for done, device in enumerate(_simulated(names), start=1):
        device_forget(device=device, actor=None)
        on_progress(done)
    return done


def behind(acknowledged: Mapping[str, int]) -> dict[str, str]:
    """Devices of which an acknowledged report was not taken in (yet), and what is missing; empty when all were.

    Both readers of the inbox are asked: the one of heartbeats and the one of deployments.
    """
    names = list(acknowledged)
    heard = dict(Heartbeat.objects.filter(device__name__in=names).values_list("device__name", "sequence"))
    told = dict(LastReport.objects.filter(device__name__in=names).values_list("device__name", "sequence"))
    return {
        name: f"report {sequence} was acknowledged; taken in: {heard.get(name, 0)} as heartbeat, {told.get(name, 0)} "
        "about deployments"
        for name, sequence in acknowledged.items()
        if min(heard.get(name, 0), told.get(name, 0)) < sequence
    }


def _let_in_again(names: Sequence[str]) -> None:
    ours = list(_simulated(names))
    taken = set(Device.objects.filter(name__in=names).values_list("name", flat=True)) - {row.name for row in ours}
    if taken:
        raise Conflict(
            f"device {min(taken)!r} exists and is not simulated (it has no label simulated=true); "
            "choose another prefix with --prefix"
        )
    for device in ours:
        device_reset_credential(device=device, actor=None)


def _simulated(names: Sequence[str]) -> QuerySet[Device]:
    return Device.objects.filter(name__in=names, operator_labels__simulated=MARK["simulated"]).order_by("name")
