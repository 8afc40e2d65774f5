"""The configuration file, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import ConfigError, load, parse

GOOD = """\
[server]
url = "https://fleet.example.com"

[device]
id = "edge-7"
labels = { role = "analyzer", "example.com/site" = "lab" }

[agent]
poll_seconds = 5

[runtime]
kind = "simulated"

[runtime.simulated]
fail_pull = ["*broken*"]
"""


def test_a_good_file_and_its_defaults():
    config = parse(GOOD)
    assert (config.device.id, config.device.labels["role"]) == ("edge-7", "analyzer")
    assert (config.agent.poll_seconds, config.agent.heartbeat_seconds, config.agent.settle_seconds) == (5, 30, 10)
    assert config.agent.init_timeout_seconds == 0
    assert config.runtime.simulated.fail_pull == ["*broken*"]
    assert parse('[server]\nurl="http://a"\n[device]\nid="a"').runtime.socket == "/run/podman/podman.sock"


@pytest.mark.clause("AGT-13")
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("poll_seconds", "pol_seconds", 'line 9: agent.pol_seconds: unknown key; did you mean "poll_seconds"?'),
        ("poll_seconds = 5", 'poll_seconds = "5"', "line 9: agent.poll_seconds: is '5'; allowed: float"),
        ("poll_seconds = 5", "poll_seconds = 0", "line 9: agent.poll_seconds: is 0; allowed: `float` >= 0.2"),
        ("poll_seconds = 5", "poll_seconds = = 5", "is not TOML: Invalid value (at line 9, column 16)"),
        ('id = "edge-7"', 'id = "Edge 7"', "line 5: device.id: is 'Edge 7'; allowed: text like ^[a-z0-9]("),
        ('id = "edge-7"\n', "", "line 4: device.id is missing"),
        ("[device]", "[devices]", 'line 4: devices: unknown key; did you mean "device"?'),
        ('role = "analyzer"', "role = 5", "line 6: device.labels"),
        ("https://", "ftp://", "line 2: server.url: is 'ftp://fleet.example.com'; allowed: text like ^https?://"),
        ('kind = "simulated"', 'kind = "docker"', "line 12: runtime.kind: is 'docker'; allowed: text like ^(podman|"),
        ('fail_pull = ["*broken*"]', "fail_pull = [3]", "line 15: runtime.simulated.fail_pull: is [3]; allowed: str"),
        ("fail_pull", "fail_push", 'line 15: runtime.simulated.fail_push: unknown key; did you mean "fail_pull"?'),
    ],
)
def test_a_complaint_names_file_line_and_key(old: str, new: str, complaint: str):
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        parse(GOOD.replace(old, new))
    assert str(caught.value).startswith(f"agent.toml: {complaint}")


REGISTRY = """
[registries."other.example.com"]
username = "edge"
password = { name = "other", key = "password" }

[registries."registry.example.com:5000"]  # ours
username = "edge"
password = { name = "registry", key = "password" }
"""


@pytest.mark.clause("AGT-13")
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("username", "user", 'line 22: registries."%s".user: unknown key; did you mean "username"?'),
        ('"edge"', "5", 'line 22: registries."%s".username: is 5; allowed: str'),
        (', key = "password"', "", 'line 23: registries."%s".password.key is missing'),
        ('"registry",', '"../etc",', 'line 23: registries."%s".password.name: is not shown here; allowed: text like'),
        ('{ name = "registry", key = "password" }', '"hunter2"', 'line 23: registries."%s".password: is not shown'),
    ],
)
def test_a_complaint_names_the_registry_among_several(old: str, new: str, complaint: str):
    text, host = GOOD + REGISTRY, "registry.example.com:5000"
    assert parse(text).registries[host].password.key == "password"
    head, mark, tail = text.partition(f'[registries."{host}"]')
    with pytest.raises(ConfigError) as caught:
        parse(head + mark + tail.replace(old, new))
    assert str(caught.value).startswith(f"agent.toml: {complaint % host}")
    assert "hunter2" not in str(caught.value)


@pytest.mark.clause("AGT-13")
def test_a_registry_is_named_without_scheme_and_path():
    with pytest.raises(ConfigError) as caught:
        parse(GOOD + '[registries."https://registry.example.com/v2"]\nusername = "edge"\n')
    assert 'line 16: registries."https://registry.example.com/v2": is not a key that fits; ' in str(caught.value)


@pytest.mark.clause("AGT-13")
def test_the_directory_of_secrets_is_not_looked_for_where_the_agent_was_started():
    with pytest.raises(ConfigError, match=r"secrets\.directory: is ''; allowed: text like \^/"):
        parse(GOOD + '[secrets]\ndirectory = ""\n')


@pytest.mark.parametrize(
    "written", ["http://me:hunter2@", "http://me:hunter2/@@", "http://me:hunter2 x@", "me:hunter2@"]
)
def test_a_password_of_the_proxy_is_not_repeated(written: str):
    scheme = "http://" if written.startswith("http") else ""
    with pytest.raises(ConfigError, match=rf"line 3: server\.proxy: is '{scheme}…@proxy:3128/x'; allowed: "):
        parse(GOOD.replace("\n\n", f'\nproxy = "{written}proxy:3128/x"\n\n', 1))


@pytest.mark.clause("AGT-13")
def test_a_file_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"nothing\.toml: cannot be read: No such file or directory"):
        load(tmp_path / "nothing.toml")
    (tmp_path / "latin.toml").write_bytes(b"[server]\nurl = 'caf\xe9'\n")
    with pytest.raises(ConfigError, match=r"latin\.toml: line 2: is not UTF-8 text"):
        load(tmp_path / "latin.toml")
    (tmp_path / "big.toml").write_bytes(b"# " + b"x" * 2_000_000)
    with pytest.raises(ConfigError, match="is larger than 1048576 bytes"):
        load(tmp_path / "big.toml")


def test_a_trailing_newline_makes_no_device_id():
    with pytest.raises(ConfigError, match=r"line 5: device\.id: is no RFC 1123 label"):
        parse(GOOD.replace('"edge-7"', '"edge-7\\n"'))
