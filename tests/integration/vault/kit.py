"""Secrets, deployments that refer to them, and devices that ask."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.test import Client

from devices.models import Credential, Device
from devices.services.tokens import hash_of
from rollouts.models import Deployment
from tests.integration.rollouts.world import World
from vault.services import secret_put

ADDRESS = "/api/agent/v1/secrets"
IMAGE = "registry.example.com:5000/shop/api:1.0"
LOGIN = {"username": "puller", "password": "letmepull"}


class Vault:
    def __init__(self) -> None:
        self.world = World()
        self.client = Client()

    def put(self, name: str = "db", *, namespace: str = "default", registry: str = "", **values: str) -> None:
        secret_put(namespace=namespace, name=name, values=values, registry=registry, actor=None)

    def device(self, name: str, **options: Any) -> Device:
        """One with a credential, so that it can ask."""
        device = self.world.device(name, **options)
        Credential.objects.create(device=device, token_hash=hash_of(name), created_at=self.world.now)
        return device

    def manifest(self, name: str = "api", *refs: str, namespace: str = "default", **options: Any) -> dict[str, Any]:
        """A deployment whose service refers to these secrets, written ``name/key``."""
        manifest = self.world.manifest(name, **{"image": IMAGE, **options})
        manifest["metadata"]["namespace"] = namespace
        service = manifest["spec"]["score"]["data"]["services"][0]
        pairs = [ref.split("/") for ref in refs]
        service["secret_env"] = [
            {"name": f"V{number}", "secret": {"name": secret, "key": key}} for number, (secret, key) in enumerate(pairs)
        ]
        return manifest

    def rollout(self, *refs: str, name: str = "api", **options: Any) -> Deployment:
        return self.world.rollout(self.manifest(name, *refs, **options))

    def ask(self, device: Device | str, deployment: Deployment | str, *refs: str, registries: Any = ()) -> HttpResponse:
        uid = deployment if isinstance(deployment, str) else str(deployment.uid)
        body = {
            "deployment": uid,
            "references": [dict(zip(("name", "key"), ref.split("/"), strict=True)) for ref in refs],
            "registries": list(registries),
        }
        headers = {"Authorization": f"Bearer {device}"}
        return self.client.post(ADDRESS, body, content_type="application/json", headers=headers)

    def gets(self, device: Device, deployment: Deployment | str, *refs: str) -> dict[str, str]:
        """The values by ``name/key``."""
        answer = self.ask(device, deployment, *refs)
        assert answer.status_code == 200, answer.content
        return {f"{each['name']}/{each['key']}": each["value"] for each in answer.json().get("values", [])}

    def logins(self, device: Device, deployment: Deployment, *registries: str) -> dict[str, tuple[str, str]]:
        answer = self.ask(device, deployment, registries=registries)
        found = answer.json().get("registries", [])
        return {each["registry"]: (each["username"], each["password"]) for each in found}
