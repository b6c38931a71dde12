"""What a person's policies change, and what none of them can."""

from __future__ import annotations

from importlib import resources

import pytest
from conftest import Bench  # type: ignore[import-not-found]
from exo.core.gate.policy import Policy, load
from exo.tools.gate.table import builtin

FILES = ("gate", "overrides", "scopes", "budget", "posting", "programs")


def test_the_templates_are_the_defaults(bench: Bench) -> None:
    folder = resources.files("exo.core.store") / "templates" / "policies"
    for name in FILES:
        bench.write(f"{name}.toml", (folder / f"{name}.toml").read_text())
    assert load(bench.policies) == Policy()
    bench.judge.read(bench.policies)
    assert bench.judge.table.programs == builtin().programs


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("gate", "[ask]\nirreversible = 'never'\n", 2),
        ("gate", "[ask]\n\nunknown = 'allow'\n", 3),
        ("gate", "[ask]\nconfidential = 'log'\n", 2),
        ("gate", "[ask]\npubic = 'ask'\n", 2),
        ("gate", "a = 1\nb = \n", 2),
        ("gate", "[[cell]]\nexposure = 'world'\noutcome = 'log'\n", 2),
        ("gate", "[actions]\ndenied = 'rm'\n", 2),
        ("overrides", "[tools.bash]\noutcome = 3\n", 2),
        ("overrides", "[tool.bash]\noutcome = 'log'\n", 1),
        ("budget", "# money\n[spend]\nmonth_cents = -1\n", 3),
        ("posting", "[posting]\nnever = [1]\n", 2),
        ("scopes", "[folders]\ninside = 'x'\n", 2),
        ("programs", "[program.x]\notherwise = 'nothing'\n", 2),
    ],
)
def test_an_error_is_named_with_its_line_and_the_last_good_one_stays(
    bench: Bench, name: str, text: str, line: int
) -> None:
    bench.write("overrides.toml", "[programs.git]\noutcome = 'deny'\n")
    assert bench.bash("git status").outcome == "deny"
    if name == "overrides":
        bench.write("gate.toml", "")
    bench.write(f"{name}.toml", text)
    assert bench.bash("git status").outcome == "deny"
    assert f"policies/{name}.toml:{line}:" in bench.gate.fault
    bench.write(f"{name}.toml", "")
    bench.bash("ls")
    assert not bench.gate.fault


def test_overrides_concern_their_own_part_alone(bench: Bench) -> None:
    bench.write(
        "overrides.toml",
        "[programs.git]\noutcome = 'log'\n[hosts.'api.example.com']\noutcome = 'log'\n",
    )
    assert bench.bash("git push").outcome == "log"
    assert bench.bash("git push && rm -rf src").outcome == "ask"
    assert bench.bash("git push --force").outcome == "ask"  # the floor
    assert (
        bench.check(
            "http_request", {"method": "POST", "url": "https://api.example.com", "body": "x"}
        ).outcome
        == "ask"
    )


def test_reserved_denied_budget_and_posting(bench: Bench) -> None:
    bench.write(
        "gate.toml", "[actions]\nreserved = ['git commit']\ndenied = ['mkfs', 'gh issue']\n"
    )
    bench.write("posting.toml", "[posting]\nlongest = 40\nnever = ['Project X']\n")
    assert (
        bench.bash("git commit -m x").outcome == "ask" and not bench.bash("git commit -m x").grant
    )
    assert bench.bash("mkfs /dev/sda").outcome == bench.bash("gh issue create").outcome == "deny"
    assert bench.check("send_message", {"to": "b", "text": "about project x"}).outcome == "deny"
    assert bench.check("send_message", {"to": "b", "text": "x" * 41}).outcome == "deny"
    assert bench.check("send_message", {"to": "b", "text": "hello"}).outcome == "ask"


def test_a_persons_table_only_adds_and_tightens(bench: Bench) -> None:
    bench.write(
        "programs.toml",
        "[program.deployer]\nrules = { status = 'look' }\notherwise = 'push'\n"
        "[program.git]\notherwise = 'look'\n[program.ls]\notherwise = 'lose'\n",
    )
    assert bench.bash("deployer status").outcome == "allow"
    assert bench.bash("deployer now").outcome == "ask"
    assert bench.bash("git push").outcome == "ask"
    assert bench.bash("ls").outcome == "ask"


def test_folders_of_the_persons_own_count_as_inside(bench: Bench) -> None:
    assert bench.bash("touch ../other/x").outcome == "ask"
    bench.write("scopes.toml", "[folders]\ninside = ['~/other']\n")
    assert bench.bash("touch ../other/x").outcome == "log"


def test_allow_always_holds_for_the_same_shape_alone(bench: Bench) -> None:
    asked = bench.bash("git push origin main")
    assert asked.grant
    granted = (asked.grant,)
    assert bench.bash("git push origin main", granted=granted).outcome == "log"
    for other in (
        "git push other main",
        "git push origin main && rm x",
        "git push --force origin main",
        "git push --tags origin main",
    ):
        assert bench.bash(other, granted=granted).outcome == "ask", other
    assert not bench.bash("git push --force").grant
    assert not bench.bash("cat ~/.ssh/id_rsa").grant
    odd = bench.bash("unheard_of a")
    assert bench.bash("unheard_of a", granted=(odd.grant,)).outcome == "log"
    assert bench.bash("unheard_of b", granted=(odd.grant,)).outcome == "ask"


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("cat ../diary/a.md", "ask"),
        ("cat ~/diary/a.md", "ask"),
        ("ls ~/diary", "ask"),
        ("cd ~/diary && ls", "ask"),
        ("grep -rn x ~", "ask"),
        ("cp -r .. /tmp/all", "ask"),
        ("tar cz ~/diary | wc -c", "ask"),
        ("find ~ -name '*.md' -exec cat {} +", "ask"),
        ("echo hi > ~/diary/a.md", "ask"),
        ("ls ~", "allow"),
        ("ls", "allow"),
        ("cat notes.md", "allow"),
        ("echo diary", "allow"),
    ],
)
def test_a_private_folder_is_asked_about(bench: Bench, command: str, outcome: str) -> None:
    (bench.user / "diary").mkdir()
    bench.write("scopes.toml", "[private]\nfolders = ['~/diary']\n")
    verdict = bench.bash(command)
    assert verdict.outcome == outcome, verdict
    assert not verdict.grant
    if outcome == "ask" and verdict.rule.startswith("private"):
        bench.write("scopes.toml", "")
        assert bench.bash(command).outcome != "deny"


def test_a_private_folder_in_other_tools(bench: Bench) -> None:
    (bench.user / "diary").mkdir()
    (bench.cwd / "link").symlink_to(bench.user / "diary")
    bench.write("scopes.toml", "[private]\nfolders = ['~/diary']\n")
    for path in ("../diary/a", "link/a"):
        assert bench.check("read_file", {"path": path}).outcome == "ask"
        assert bench.check("search_files", {"pattern": "x", "path": path}).outcome == "ask"
    assert bench.check("list_dir", {"path": "link"}).outcome == "ask"
    assert bench.check("list_dir", {"path": "."}).outcome == "allow"


def test_the_doctor_names_file_and_line(bench: Bench) -> None:
    from exo.tools.doctor import _policies

    assert _policies(bench.home).state == "ok"
    bench.write("gate.toml", "[ask]\n\npublic = 'perhaps'\n")
    found = _policies(bench.home)
    assert found.state == "fault" and "policies/gate.toml:3:" in found.what and found.mend
    bench.write("gate.toml", "")
    bench.write("programs.toml", "[program.x]\notherwise = 'nothing'\n")
    assert "policies/programs.toml:2:" in _policies(bench.home).what


@pytest.mark.parametrize(
    ("command", "cents"),
    [
        ("stripe charges create --amount 500", 500),
        ("stripe charges create --amount=500 --currency eur", 500),
        ("stripe charges create --currency eur", None),
        ("stripe charges create --amount 5; stripe charges create --amount 6", None),
        ("ls", None),
    ],
)
def test_what_a_payment_costs(bench: Bench, command: str, cents: int | None) -> None:
    assert bench.judge.judge(bench.act("bash", {"command": command})).cents == cents


def test_what_a_request_pays(bench: Bench) -> None:
    args = {
        "method": "POST",
        "url": "https://api.stripe.com/v1/charges",
        "body": '{"amount": 12.50}',
    }
    found = bench.judge.judge(bench.act("http_request", args))
    assert found.cents == 1250 and found.axes.cost == "money"
