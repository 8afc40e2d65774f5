"""The values that were resolved, encrypted on disk: what containers run with stays known over a restart, also offline.

The key is a file of its own. Both lie on the same disk and are readable by the agent's user: the encryption keeps
values out of copies and backups of single files, and out of what somebody searches; not from who has the whole device.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.store import Store
from agent.wire import canonical
from agent.wire.messages import SecretValue


class Entry(msgspec.Struct, frozen=True):
    """One deployment's secrets as they were resolved for ``revision``; 0 when they are to be resolved anew."""

    revision: int
    values: list[SecretValue]


class _Kept(msgspec.Struct, frozen=True):
    deployments: dict[str, Entry]


class SecretCache:
    """``secrets.cache`` of the state folder. Nothing about it is ever fatal: what cannot be used is done without."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def exists(self) -> bool:
        return self._store.has_secret_box()

    def load(self) -> dict[str, Entry]:
        """By deployment uid; a file that is torn, foreign or of another key is set aside and reported."""
        box = self._store.secret_box()
        if box is None:
            return {}
        # Here and not above: a device without secrets does not pay for the library with its memory.
        from nacl.exceptions import CryptoError  # noqa: PLC0415
        from nacl.secret import SecretBox  # noqa: PLC0415

        try:
            plain = SecretBox(self._store.secrets_key()).decrypt(box)
            return msgspec.json.decode(plain, type=_Kept).deployments
        except OSError as error:  # a new key could not be written
            self._store.unsaved(self._store.folder / "secrets.key", error)
        except (CryptoError, ValueError, msgspec.MsgspecError, RecursionError):
            self._store.refuse_secret_box("cannot be decrypted with the key in secrets.key")
        return {}

    def save(self, entries: Mapping[str, Entry]) -> None:
        """Replace what is kept; a full disk is reported, and costs the values at the next start without a source."""
        if not entries:
            self._store.forget_secret_box()
            return
        from nacl.secret import SecretBox  # noqa: PLC0415

        try:
            key = self._store.secrets_key()
        except OSError as error:
            self._store.unsaved(self._store.folder / "secrets.key", error)
            return
        self._store.save_secret_box(bytes(SecretBox(key).encrypt(canonical.encode(_Kept(dict(entries))))))
