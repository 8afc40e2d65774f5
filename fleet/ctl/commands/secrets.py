"""``fleetctl secret``: values that go in by file, standard input or prompt, and that nothing prints."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.ctl.client import segment
from fleet.ctl.commands.get import Output, Sort, show_sort
from fleet.ctl.errors import Exit, Refused
from fleet.ctl.output import Format, moment, say, warn
from fleet.ctl.session import DEFAULT_NAMESPACE, Namespace, client, full_name, secret_path

app = typer.Typer(no_args_is_help=True, help="Secrets, which devices get and nobody is shown.")

#: More than the server takes, so that it says how much that is; no endless stream is read.
MAX_BYTES = 1_048_576
Secret = Annotated[str, typer.Argument(help="Name, or namespace/name.")]


def _row(each: dict[str, Any]) -> tuple[object, ...]:
    metadata = each["metadata"]
    keys = ",".join(each["keys"])
    return metadata["namespace"], metadata["name"], keys, each["registry"], moment(each["updatedAt"]), each["updatedBy"]


def _name(each: dict[str, Any]) -> str:
    return f"{each['metadata']['namespace']}/{each['metadata']['name']}"


SECRETS = Sort("secrets/", ("NAMESPACE", "NAME", "KEYS", "REGISTRY", "UPDATED", "BY"), _row, _name)


@app.command("set")
def set_(
    context: typer.Context,
    name: Secret,
    values: Annotated[
        list[str],
        typer.Argument(help="KEY=@FILE, KEY=- for standard input, KEY to be asked, KEY- to take it away."),
    ],
    *,
    namespace: Namespace = DEFAULT_NAMESPACE,
    replace: Annotated[bool, typer.Option("--replace", help="Take away all other keys, and a registry.")] = False,
) -> None:
    """Set values of a secret and keep its others; make it if there is none."""
    wanted = values_from(values)
    if replace and None in wanted.values():
        raise Refused("--replace takes away all other keys by itself; leave out KEY-", Exit.USAGE)
    method = "PUT" if replace else "PATCH"
    found = client(context).call(method, secret_path(name, namespace), body={"values": wanted})
    say(f"secret {full_name(name, namespace)} has the keys {', '.join(found['keys'])}")
    _tell_users(found)


@app.command("set-registry")
def set_registry(
    context: typer.Context,
    name: Secret,
    host: Annotated[str, typer.Argument(help="host or host:port, as images begin with it.")],
    *,
    username: Annotated[str, typer.Option(help="Who pulls there.")],
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read it from standard input.")] = False,
    namespace: Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Keep the login for an image registry in a secret; devices pull the namespace's images with it."""
    password = _from_stdin() if password_stdin else _ask("password")
    body = {"registry": host, "values": {"username": username, "password": password}}
    found = client(context).call("PATCH", secret_path(name, namespace), body=body)
    say(f"secret {full_name(name, namespace)} is the login for {found['registry']}")


@app.command("list")
def list_(context: typer.Context, namespace: Namespace = DEFAULT_NAMESPACE, output: Output = Format.TABLE) -> None:
    """The secrets of a namespace: names, keys, registries; no values."""
    show_sort(SECRETS, list(client(context).pages(f"namespaces/{segment(namespace)}/secrets/")), output)


@app.command("describe")
def describe(
    context: typer.Context, name: Secret, namespace: Namespace = DEFAULT_NAMESPACE, output: Output = Format.TABLE
) -> None:
    """One secret and the deployments that need it; no values."""
    found = client(context).get(secret_path(name, namespace))
    if output is not Format.TABLE:
        show_sort(SECRETS, [found], output, alone=True)
        return
    for head, text in {
        "Name": _name(found),
        "Keys": ", ".join(found["keys"]),
        "Registry": found["registry"] or "-",
        "Created": moment(found["metadata"]["creationTimestamp"]),
        "Updated": f"{moment(found['updatedAt'])} by {found['updatedBy']}",
        "Needed by": ", ".join(found["usedBy"]) or "no deployment",
    }.items():
        say(f"{head + ':':<12}{text}")


@app.command("delete")
def delete(context: typer.Context, name: Secret, namespace: Namespace = DEFAULT_NAMESPACE) -> None:
    """Delete a secret. What runs keeps running, and devices keep the values that they have."""
    server, path = client(context), secret_path(name, namespace)
    needing = server.get(path)["usedBy"]
    server.call("DELETE", path)
    say(f"secret {full_name(name, namespace)} deleted")
    if needing:
        warn(f"It is still needed by {', '.join(needing)}: a device without its values can't start a container of it.")


def values_from(arguments: list[str]) -> dict[str, str | None]:
    """Values by key; None for a key to take away.

    Raises:
        Refused: never with a value in it.
    """
    found: dict[str, str | None] = {}
    if sum(text.endswith("=-") for text in arguments) > 1:
        raise Refused("only one KEY=- can be read from standard input", Exit.USAGE)
    for text in arguments:
        key, equals, source = text.partition("=")
        gone = not equals and text.endswith("-")
        key = key[:-1] if gone else key
        if not key or key in found:
            raise Refused(f"argument {len(found) + 1}: each KEY is named once", Exit.USAGE)
        found[key] = None if gone else _value(key, source if equals else None)
    return found


def _value(key: str, source: str | None) -> str:
    if source is None:
        return _ask(key)
    if source == "-":
        return _from_stdin()
    if not source.startswith("@"):
        raise Refused(
            f"{key}: a value on the command line stays in the shell's history and shows up in the list of processes; "
            f"give {key}=@FILE, {key}=- for standard input, or {key} alone to be asked",
            Exit.USAGE,
        )
    return _from_file(key, Path(source[1:]))


def _from_file(key: str, path: Path) -> str:
    """Exactly what is in the file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(f"{key}: {path}: {error.strerror}", Exit.USAGE) from None
    text = _text(key, data)
    if text.endswith("\n"):
        warn(f"{key}: {path} ends with a line break, which is now the end of the value")
    return text


def _from_stdin() -> str:
    """Without one line break at its end, which is the pipe's more often than the value's."""
    text = _text("standard input", sys.stdin.buffer.read(MAX_BYTES + 1))
    return text.removesuffix("\n").removesuffix("\r")


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(f"{name} is no UTF-8 text; encode it first, for example with base64", Exit.USAGE) from None


def _ask(key: str) -> str:
    if not sys.stdin.isatty():
        raise Refused(f"{key}: there is no terminal to ask for it; use =@FILE or standard input", Exit.USAGE)
    return getpass.getpass(f"{key}: ")


def _tell_users(found: dict[str, Any]) -> None:
    """What a change means for what runs already."""
    for deployment in found["usedBy"]:
        say(f"{deployment}: containers that run keep the values that they have until: fleetctl retarget {deployment}")
