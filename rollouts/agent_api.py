"""What devices ask that takes a deployment to answer; built with the toolkit of :mod:`devices.agent_views`."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from agent.wire import messages
from devices.agent_views import agent_view, body_of, device_of, json_answer
from rollouts import services
from rollouts.selectors.secrets import Need, need_on_device
from vault.selectors import Reference, registry_logins, values_of

log = logging.getLogger(__name__)

MAX_SECRETS_BYTES = 262_144
#: The longest text as JSON, each of its characters escaped.
MAX_LOGS_BYTES = 6 * messages.MAX_LOG_CHARS + 65_536
#: Names of one request that a log line shows.
NAMES_LOGGED = 10


@agent_view("POST")
@sensitive_post_parameters()
@sensitive_variables()
def secrets(request: HttpRequest) -> HttpResponse:
    """The values and logins that a deployment of this device needs (AGT-10, AGT-15).

    What it may not have is left out as if it did not exist; only the log tells the two apart.
    """
    device_id = device_of(request)
    asked = body_of(request, messages.SecretsRequest, MAX_SECRETS_BYTES)
    need = need_on_device(device_id, asked.deployment)
    answer = json_answer(_granted(asked, need))
    answer["Cache-Control"] = "no-store"
    _note_denied(device_id, asked, need)
    return answer


@agent_view("POST")
def logs(request: HttpRequest) -> HttpResponse:
    """The end of a container's log, which this device was asked for (AGT-16)."""
    device_id = device_of(request)
    services.logs_answer(device_id=device_id, reply=body_of(request, messages.LogReply, MAX_LOGS_BYTES))
    return json_answer({}, status=202)


@sensitive_variables()
def _granted(asked: messages.SecretsRequest, need: Need) -> messages.SecretsReply:
    wanted = {Reference(ref.name, ref.key) for ref in asked.references}
    values = values_of(need.namespace, wanted & need.references)
    logins = registry_logins(need.namespace, {name.lower() for name in asked.registries} & need.registries)
    return messages.SecretsReply(
        values=[messages.SecretValue(name=ref.name, key=ref.key, value=value) for ref, value in sorted(values.items())],
        registries=[
            messages.RegistryLogin(registry=name, username=login.username, password=login.password)
            for name in dict.fromkeys(asked.registries)
            if (login := logins.get(name.lower()))
        ],
    )


def _note_denied(device_id: int, asked: messages.SecretsRequest, need: Need) -> None:
    """One line for a request that went beyond what its deployment needs: a device asks for its own by itself."""
    references = {Reference(ref.name, ref.key) for ref in asked.references} - need.references
    registries = {name for name in asked.registries if name.lower() not in need.registries}
    if references or registries:
        names = _shown([*("/".join(each) for each in references), *registries])
        log.warning(
            "asked for secrets that this deployment does not need on this device: %s",
            names,
            extra={"device": device_id, "deployment": asked.deployment[:64]},
        )


def _shown(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - NAMES_LOGGED} more" if len(ordered) > NAMES_LOGGED else ""
    return ", ".join(name[:80] for name in ordered[:NAMES_LOGGED]) + more
