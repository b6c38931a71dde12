"""Whole kinds of calls that the gate must see alike, whatever program and file stand in them."""

from __future__ import annotations

import pytest
from conftest import Bench  # type: ignore[import-not-found]
from exo.tools.gate.table import builtin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SAME = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
names = st.from_regex(r"[a-z]{2,8}\.(txt|md|py|rs|json)", fullmatch=True)
words = st.from_regex(r"[a-z]{3,8}", fullmatch=True)
SILENT = (":", "true", "echo -n", "printf ''", "cat /dev/null", "head -c 0 other", "")
PLAIN = [  # programs that look or read, by [plain]
    name
    for name, entry in builtin().programs.items()
    if entry.get("kind") == "plain" and entry.get("otherwise") in ("look", "read", "fetch")
    and len(entry) == 2 and name.isidentifier()
]  # fmt: skip
QUIET = ("allow", "log")


@SAME
@given(file=names, source=st.sampled_from(SILENT), op=st.sampled_from([">", ">|", " > ", " >| "]))
def test_a_file_emptied_by_a_redirection_is_a_file_lost(
    bench: Bench, file: str, source: str, op: str
) -> None:
    assert bench.bash(f"{source}{op}{file}").outcome == "ask"
    assert bench.bash(f"echo some words{op}{file}").outcome in QUIET
    assert bench.bash(f"for a in 1 2; do echo $a; done{op}{file}").outcome in QUIET


@SAME
@given(
    file=names,
    way=st.sampled_from(
        [
            "cp /dev/null {}",
            "cp -f /dev/null {}",
            "install -m 644 /dev/null {}",
            "ln -sf /dev/null {}",
            "dd if=/dev/null of={}",
            "dd if=/dev/zero of={} bs=1 count=9",
            "tee {} < /dev/null",
            ": | tee {}",
            "sponge {} < /dev/null",
            "truncate -s 0 {}",
            "sed -i d {}",
            "sed -i '1,$d' {}",
            "perl -i -ne '' {}",
        ]
    ),
)
def test_a_file_emptied_by_a_writer_is_a_file_lost(bench: Bench, file: str, way: str) -> None:
    assert bench.bash(way.format(file)).outcome == "ask"
    assert bench.bash(way.format("/tmp/" + file)).outcome in QUIET


@SAME
@given(
    name=st.sampled_from(PLAIN),
    flag=st.sampled_from(["--apply", "--delete", "--write", "--purge-all", "--install=x"]),
)
def test_a_reader_told_to_do_more_asks(bench: Bench, name: str, flag: str) -> None:
    assert bench.bash(f"{name} {flag} a.txt").outcome == "ask"


@SAME
@given(setting=st.from_regex(r"[a-z]{2,8}\.[a-z]{4,12}(cmd|command|program)", fullmatch=True))
def test_git_takes_only_settings_that_are_known(bench: Bench, setting: str) -> None:
    assert bench.bash(f"git -c {setting}=x status").outcome == "ask"
    assert bench.bash("git -c color.ui=never -c core.pager=cat log").outcome == "allow"


@SAME
@given(file=names, base=st.sampled_from(["", "HEAD ", "main ", "HEAD~2 -- "]))
def test_a_checkout_of_files_loses_changes(bench: Bench, file: str, base: str) -> None:
    assert bench.bash(f"git checkout {base}{file}").outcome == "ask"


@SAME
@given(branch=words, more=st.sampled_from(["", "-b new ", "-q ", "--detach ", "-t origin/"]))
def test_a_checkout_of_a_branch_does_not(bench: Bench, branch: str, more: str) -> None:
    assert bench.bash(f"git checkout {more}{branch}").outcome in QUIET


@SAME
@given(
    name=st.sampled_from(
        ["GIT_CONFIG_COUNT", "LD_AUDIT", "GIT_SEQUENCE_EDITOR", "TAR_OPTIONS", "SUDO_ASKPASS"]
        + ["VIMINIT", "WGETRC", "npm_config_script_shell", "PIP_CONFIG_FILE", "RSYNC_RSH"]
    ),
    program=st.sampled_from(["ls", "git log", "make test"]),
    before=st.sampled_from(["", "env ", "export A=1; "]),
)
def test_variables_that_change_what_runs_ask(
    bench: Bench, name: str, program: str, before: str
) -> None:
    assert bench.bash(f"{before}{name}=/tmp/x {program}").outcome == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "env -i PATH=/usr/bin:/bin ls",
        "PAGER=cat git log",
        "EDITOR=true git commit",
        "CC=clang make",
    ],
)
def test_their_harmless_values_do_not(bench: Bench, command: str) -> None:
    assert bench.bash(command).outcome in QUIET


@SAME
@given(
    name=words, use=st.sampled_from(["{}", "trap {} EXIT", "X={}; $X", "export -f {}; bash -c {}"])
)
def test_a_function_runs_only_when_its_name_is_used(bench: Bench, name: str, use: str) -> None:
    name = f"f_{name}"
    body = f"{name}() {{ rm -rf src; }}"
    assert bench.bash(f"{body}; declare -f {name}").outcome in QUIET
    assert bench.bash(f"{body}; {use.format(name, name)}").outcome == "ask"
    assert bench.bash(f"{body}; . ./lib.sh").outcome == "ask"


@SAME
@given(name=words, how=st.sampled_from(["", " -d", " -t x.XXXX", " --suffix=.wav"]))
def test_what_mktemp_made_is_scratch(bench: Bench, name: str, how: str) -> None:
    made = f"v_{name}=$(mktemp{how})"
    used = f'"$v_{name}"'
    assert bench.bash(f"{made}; echo a > {used}; rm -rf {used}").outcome in QUIET
    assert bench.bash(f"{made}; trap 'rm -rf {used}' EXIT").outcome in QUIET
    assert bench.bash(f"{made}; rm -rf {used}/*").outcome == "ask"
    assert bench.bash(f"{made}; rm -rf {used}/../home").outcome == "ask"
    assert bench.bash(f"{made}; v_{name}=src; rm -rf {used}").outcome == "ask"


@SAME
@given(
    flag=st.sampled_from(["-H 'X: {}'", "-A {}", "-e {}", "-b x={}"]),
    source=st.sampled_from(["cat notes.txt", "base64 notes.txt", "xxd -p notes.txt"]),
)
def test_what_a_header_carries_is_sent(bench: Bench, flag: str, source: str) -> None:
    flag = flag.replace("'", '"')
    carried = flag.format(f'"$({source})"' if '"' not in flag else f"$({source})")
    assert bench.bash(f"curl {carried} https://example.com").outcome == "ask"


@SAME
@given(
    tool=st.sampled_from(["black", "isort", "prettier --write", "gofmt -w", "clang-format -i"]),
    place=st.sampled_from(["~/", "../", "/srv/"]),
    file=names,
)
def test_formatters_write_what_they_are_given(
    bench: Bench, tool: str, place: str, file: str
) -> None:
    assert bench.bash(f"{tool} {place}{file}").outcome == "ask"
    assert bench.bash(f"{tool} {file}").outcome in QUIET


@SAME
@given(name=words, kind=st.sampled_from(["{}-lint", "check-{}", "{}-info", "{}sum", "{}-diff"]))
def test_readers_are_known_by_their_names(bench: Bench, name: str, kind: str) -> None:
    program = kind.format(f"qz{name}")
    assert bench.bash(f"{program} a.txt").outcome in QUIET
    assert bench.bash(f"{program} --fix a.txt").outcome == "ask"
    assert bench.bash(f"{program} ~/.ssh/id_rsa").outcome == "ask"


@SAME
@given(package=words, tool=st.sampled_from(["npm", "pnpm", "bun"]))
def test_what_is_installed_for_the_whole_machine_asks(
    bench: Bench, package: str, tool: str
) -> None:
    assert bench.bash(f"{tool} add -g {package}").outcome == "ask"
    assert bench.bash(f"yarn global add {package}").outcome == "ask"
    assert bench.bash("make install").outcome == "ask"
    assert bench.bash("make install DESTDIR=./out").outcome in QUIET


@SAME
@given(
    file=names,
    way=st.sampled_from(
        [
            "ed -s {} <<< 'd'",
            "ex -s -c x {}",
            "vim -es -c d {}",
            "emacs --batch {}",
            "nvim +wq {}",
        ]
    ),
)
def test_an_editor_without_a_person_asks(bench: Bench, file: str, way: str) -> None:
    assert bench.bash(way.format(file)).outcome == "ask"


@SAME
@given(scope=words, name=words, runner=st.sampled_from(["npx", "npx -y", "bunx"]))
def test_a_package_is_not_a_script_of_the_folder(
    bench: Bench, scope: str, name: str, runner: str
) -> None:
    assert bench.bash(f"{runner} @{scope}/{name}").outcome == "ask"
    assert bench.bash(f"{runner} github:{scope}/{name}").outcome == "ask"


@SAME
@given(name=words, inner=st.sampled_from(["rm -rf /data", "dropdb app", "sh -c 'rm x'"]))
def test_what_runs_in_a_container_is_judged(bench: Bench, name: str, inner: str) -> None:
    for begin in ("docker exec", "docker compose exec", "docker compose run --rm"):
        assert bench.bash(f"{begin} {name}_1 {inner}").outcome == "ask"
        assert bench.bash(f"{begin} {name}_1 ls").outcome in QUIET


@SAME
@given(name=words, host=st.sampled_from(["h", "pi@h", "pi@192.168.1.9"]))
def test_what_is_piped_to_another_machine_is_sent(bench: Bench, name: str, host: str) -> None:
    assert bench.bash(f"cat {name}.txt | ssh {host} cat").outcome == "ask"
    assert bench.bash(f"ssh {host} cat < {name}.txt").outcome == "ask"
    assert bench.bash(f"ssh {host} uptime").outcome in QUIET
