"""Messages between versions: unknown fields pass, defaults stay off the wire."""

from __future__ import annotations

import msgspec
import pytest

from agent.wire import canonical, messages
from agent.wire.manifest import PodmanService, PodmanV0


def test_a_message_of_a_later_version_is_understood() -> None:
    state = msgspec.json.decode(
        b'{"device":"edge-1","uid":"u","version":3,"mood":"good","items":[{"kind":"k","key":"1","version":3,"new":1}]}',
        type=messages.DesiredState,
    )
    assert state.items[0].key == "1"
    assert state.epoch == 1


@pytest.mark.clause("DEP-9")
def test_a_field_that_is_added_later_with_a_default_changes_no_digest() -> None:
    class LaterService(PodmanService, frozen=True):
        stop_signal: str = "SIGTERM"

    now = PodmanService(name="a", image="a:1")
    later = LaterService(name="a", image="a:1")
    assert canonical.digest(now) == canonical.digest(later)
    assert canonical.digest(later) != canonical.digest(LaterService(name="a", image="a:1", stop_signal="SIGINT"))


def test_the_canonical_form_has_sorted_keys_and_no_defaults() -> None:
    score = PodmanV0(services=[PodmanService(name="b", image="a:1", restart_policy="unless-stopped", ports=[])])
    assert canonical.encode(score) == b'{"services":[{"image":"a:1","name":"b"}]}'
