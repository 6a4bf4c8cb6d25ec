"""The command line: exit statuses, options, where what is printed, what is written and what is left alone."""

from __future__ import annotations

import io
import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import CORPUS
from collected import for_each
from logs_of_torch import LOG
from samples import SAMPLES

from diagnose.diagnosis import Diagnosis, Verdict
from diagnose.phrases import same
from diagnose.render.parts import view
from diagnose.surfaces.terminal import answer_command, console, patch_writer
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make `explain` and `check` answer with a given diagnosis (an exception is raised)."""
    import diagnose.pipeline  # noqa: F401 - loaded, so that it can be replaced below

    def tell(diagnosis: Diagnosis | Exception) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def fake(*given: object, **options: Any) -> Diagnosis:
            asked.append({"given": given, **options})
            if isinstance(diagnosis, Exception):
                raise diagnosis
            return diagnosis

        for name in ("explain", "check"):
            monkeypatch.setattr(sys.modules["diagnose.pipeline"], name, fake)
        return asked

    return tell


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "error.log").write_text(LOG)
    return tmp_path / "error.log"


# -- exit statuses


@pytest.mark.parametrize(("name", "status"), [("dpo_logits", 0), ("host_kill", 0), ("lookalike", 1)])
def test_explain_leaves_with_the_contracts_status(oomdoctor: Any, told: Any, log: Path, name: str, status: int) -> None:
    told(SAMPLES[name]())
    assert oomdoctor("explain", log).status == status


def test_check_leaves_with_whether_it_fits(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["before_a_run"]())
    assert oomdoctor("check", "--config", log).status == 0
    told(Diagnosis(Verdict("none", None, None, same("x"), None), asked="check"))
    assert oomdoctor("check", log).status == 4


def test_a_mistake_of_ours_is_one_sentence_and_status_3(oomdoctor: Any, told: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(ZeroDivisionError("of ours"))
    monkeypatch.delenv("OOMDOCTOR_DEBUG", raising=False)
    left = oomdoctor("explain", log)
    assert left.status == 3 and left.out == "" and len(left.err.splitlines()) == 1 and "OOMDOCTOR_DEBUG=1" in left.err
    monkeypatch.setenv("OOMDOCTOR_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        oomdoctor("explain", log)


@for_each("words", [("explain",), ("explain", "no-such.log"), ("check",), ("facts",), ("explain", "-", "-")])
def test_nothing_to_read_is_status_2_and_one_sentence(oomdoctor: Any, words: tuple[str, ...]) -> None:
    left = oomdoctor(*words)
    assert left.status == 2 and left.out == "" and len(left.err.splitlines()) == 1


def test_errors_are_in_the_language_asked_for(oomdoctor: Any) -> None:
    assert "没有给出日志" in oomdoctor("explain", "--lang", "zh").err


@pytest.mark.parametrize(
    ("line", "en", "zh"),
    [
        ("chek x", "`oomdoctor` has no command chek; did you mean check?", "`oomdoctor` 没有命令 chek；是否想写 check？"),
        ("bot irc", "`oomdoctor bot` has no command irc; `oomdoctor bot --help` tells more", "没有命令 irc"),
        ("explain x --gpu-count 8", "has no option --gpu-count; `oomdoctor explain --help` tells more", "没有选项 --gpu-count"),
        ("explain x --no-redct", "`oomdoctor explain` has no option --no-redct; did you mean --no-redact?", "是否想写 --no-redact？"),
        (
            "explain x --format jsn",
            "--format takes one of text, json, markdown, html, sarif, not 'jsn'; did you mean json?",
            "--format 可取",
        ),
        ("explain x --top many", "--top takes a whole number, not 'many'", "--top 需要整数，而不是 'many'"),
        ("serve --port 70000", "--port takes a number from 0 to 65535, not '70000'", "--port 需要 0 到 65535 之间的数"),
        ("explain x --verbose=3", "--verbose is a switch and takes no value", "--verbose 是开关"),
        ("explain --config", "--config needs a value", "--config 后面需要一个值"),
        ("rules show", "`oomdoctor rules show` needs ID; `oomdoctor rules show --help` tells more", "`oomdoctor rules show` 需要 ID"),
        ("schema x", "`oomdoctor schema` takes fewer arguments than that; `oomdoctor schema --help` tells more", "不接受这么多参数"),
    ],
)
def test_what_the_command_line_cannot_mean_is_one_sentence_and_status_2(
    oomdoctor: Any, monkeypatch: pytest.MonkeyPatch, line: str, en: str, zh: str
) -> None:
    """Said like every other complaint, with what was probably meant, in both languages; nothing of typer's own wording is left."""
    left = oomdoctor(*line.split())
    assert (left.status, left.out, len(left.err.splitlines())) == (2, "", 1) and left.err.startswith("oomdoctor: ") and en in left.err
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert zh in oomdoctor(*line.split()).err


def test_a_mistake_is_told_in_the_language_that_the_line_asks_for(oomdoctor: Any) -> None:
    assert "没有选项 --nonsense" in oomdoctor("explain", "--nonsense", "--lang", "zh").err
    assert "没有选项 --nonsense" in oomdoctor("explain", "--nonsense", "--lang=zh").err


@pytest.mark.parametrize("line", ["", "rules", "bot"])
def test_without_words_the_commands_are_listed(oomdoctor: Any, line: str) -> None:
    left = oomdoctor(*line.split())
    assert left.status == 2 and left.err.startswith(f"Usage: oomdoctor {line}".rstrip()) and "Commands:" in left.err
    assert ("`oomdoctor train.log`" in re.sub(r"\s+", " ", left.err)) is (line == "")


def test_an_unusable_config_is_a_sentence_and_with_strict_an_error(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["length_ignored"]())
    left = oomdoctor("explain", log)
    assert left.status == 0 and "ds.json" in left.err and len(left.err.splitlines()) == 1
    assert oomdoctor("explain", log, "--strict").status == 2


# -- the words of the line


def test_every_option_reaches_the_answer(oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(answer_command, "explain", lambda *given: heard.extend(given))
    line = (
        "explain - b.log --config x.yaml --config deepspeed=y.json --model m --gpu g --gpus 8 --set a=b --set c=d --rules r --trial"
        " --snapshot s --format=markdown --lang zh --top=5 -v --explain-all --explain-budget --no-redact --strict --patch - --apply"
    )
    assert oomdoctor(*line.split()).status == 0
    logs, asked, shown = heard
    assert list(logs) == ["-", "b.log"]
    assert asked == AnswerInputs(["x.yaml", "deepspeed=y.json"], "m", "g", 8, ["a=b", "c=d"], ["r"], trial=True, snapshot="s")
    assert shown == DisplayOptions(
        "markdown", "zh", 5, verbose=True, every_rule=True, budget=True, redact=False, strict=True, patch="-", apply=True
    )


def test_what_is_not_asked_for_has_its_default(oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(answer_command, "explain", lambda *given: heard.extend(given))
    assert oomdoctor("explain", "a.log").status == 0
    assert (list(heard[0]), *heard[1:]) == (["a.log"], AnswerInputs(), DisplayOptions())


def test_after_two_dashes_every_word_is_a_file(oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(answer_command, "explain", lambda *given: heard.extend(given))
    assert oomdoctor("explain", "--config", "x.yaml", "--", "--help").status == 0
    assert list(heard[0]) == ["--help"]


@pytest.mark.parametrize(
    ("words", "command", "log"),
    [
        ("-- echo --help", ["echo", "--help"], None),
        ("echo --log x -- -v", ["echo", "--log", "x", "--", "-v"], None),
        ("--log k echo --log x", ["echo", "--log", "x"], "k"),
        ("-- -- a", ["--", "a"], None),
        ("- a", ["-", "a"], None),
    ],
)
def test_run_hands_the_words_of_a_command_on(
    oomdoctor: Any, monkeypatch: pytest.MonkeyPatch, words: str, command: list[str], log: str | None
) -> None:
    """From its first word on the line is the command's, options and dashes included."""
    from diagnose.surfaces.run import run_command as run

    heard: list[Any] = []

    def hear(*given: Any) -> int:
        heard.extend(given)
        return 7

    monkeypatch.setattr(run, "run", hear)
    assert oomdoctor("run", *words.split()).status == 7
    assert heard[0] == command and heard[1]["log"] == log


# -- inputs


def test_what_is_asked_reaches_explain(oomdoctor: Any, told: Any, log: Path, tmp_path: Path) -> None:
    asked = told(SAMPLES["dpo_logits"]())
    (tmp_path / "t.yaml").write_text("a: 1\n")
    oomdoctor("explain", log, "--config", tmp_path / "t.yaml", "--gpus", "8", "--set", "zero.stage=3", "--set", "zero.stage=2", "--trial")
    assert asked[0]["given"] == ([log],)
    assert asked[0]["configs"] == [tmp_path / "t.yaml"]
    assert asked[0]["set"] == {"zero.stage": "2"}
    assert asked[0]["gpus"] == 8 and asked[0]["trial"] is True


def test_a_kind_can_be_forced(oomdoctor: Any, told: Any, log: Path, tmp_path: Path) -> None:
    asked = told(SAMPLES["dpo_logits"]())
    (tmp_path / "t.yaml").write_text("a: 1\n")
    assert oomdoctor("explain", log, "--config", f"axolotl={tmp_path / 't.yaml'}").status == 0
    assert asked[0]["configs"][0].data == b"a: 1\n"
    left = oomdoctor("explain", log, "--config", f"nonsense={tmp_path / 't.yaml'}")
    assert left.status == 2 and "axolotl" in left.err


def test_standard_input_is_a_log(oomdoctor: Any, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = told(SAMPLES["dpo_logits"]())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LOG.encode())))
    assert oomdoctor("explain", "-").status == 0
    assert asked[0]["given"][0][0].read() == LOG.encode()


def test_a_log_alone_is_a_question_to_explain(oomdoctor: Any, told: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `oomdoctor train.log` and `cat train.log | oomdoctor`."""
    told(SAMPLES["dpo_logits"]())
    assert oomdoctor(log).out == oomdoctor("explain", log).out
    with log.open() as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        assert oomdoctor().out == oomdoctor("explain", "-").out


def test_a_config_among_the_logs_is_a_config(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    asked = told(SAMPLES["dpo_logits"]())
    left = oomdoctor("explain", log, config)
    assert str(config) in left.err and [str(path) for path in asked[0]["configs"]] == [str(config)]
    assert oomdoctor("explain", config).out and len(asked[1]["given"][0]) == 1  # which is `check`


def test_json_and_scripts_among_the_logs_are_configs_where_they_read_as_one(oomdoctor: Any, told: Any, log: Path, tmp_path: Path) -> None:
    """By what they hold: records of a log in JSON stay a log."""
    asked = told(SAMPLES["dpo_logits"]())
    files = {
        "ds.json": '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}',
        "run.sh": "llamafactory-cli train sft.yaml\n",
        "events.json": '{"message": "CUDA out of memory. Tried to allocate 2.00 GiB"}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    left = oomdoctor("explain", log, *(tmp_path / name for name in files))
    assert [path.name for path in asked[0]["given"][0:1][0]] == ["error.log", "events.json"]
    assert [path.name for path in asked[0]["configs"]] == ["ds.json", "run.sh"] and "ds.json" in left.err and "events.json" not in left.err
    assert len(oomdoctor("explain", tmp_path / "ds.json").out) and asked[1]["given"] == ([tmp_path / "ds.json"],), "which is a check"


def test_a_config_that_is_not_there_is_said_first_and_once(oomdoctor: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal by the answer itself; in a pipe also on standard error, before it."""
    left = oomdoctor("explain", log, "--config", "nope.yaml")
    assert left.out.index("nope.yaml") < left.out.index("1. ") and "nope.yaml: no such file" in left.err
    assert "--apply" not in left.out and "--patch" not in left.out
    monkeypatch.setattr(view, "terminal", lambda _: True)
    on_terminal = oomdoctor("explain", log, "--config", "nope.yaml")
    assert "nope.yaml" not in on_terminal.err and on_terminal.out.count("nope.yaml") == 1


def test_what_only_a_page_shows_is_no_file_to_apply(oomdoctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are those of the page, and no option is offered that would write nothing."""
    monkeypatch.chdir(CORPUS / "vllm-second-server-on-the-card")
    left = oomdoctor("explain", "error.log")
    assert "error.log:3: --gpu-memory-utilization" in left.out and "#block" not in left.out and "--apply" not in left.out


@for_each("name, near", [("A100-90GB", "A100-80GB"), ("RTX4090Ti", "RTX4090-24GB"), ("V100-64GB", "V100-32GB")])
def test_a_card_that_nobody_makes_is_answered_with_the_nearest(oomdoctor: Any, log: Path, name: str, near: str) -> None:
    left = oomdoctor("explain", log, "--gpu", name)
    assert left.status == 2 and near in left.err and len(left.err.splitlines()) == 1 and "T4-16GB" not in left.err


def test_a_paste_into_a_terminal_is_told_how_to_end(oomdoctor: Any, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told(SAMPLES["dpo_logits"]())
    for is_terminal in (True, False):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LOG.encode()), isatty=lambda held=is_terminal: held))
        assert ("Ctrl-D" in oomdoctor("explain", "-").err) is is_terminal


def test_a_folder_is_handed_on_as_it_is(oomdoctor: Any, told: Any, log: Path, tmp_path: Path) -> None:
    """What of it is a log, the library knows (tests/inputs/test_folders.py)."""
    asked = told(SAMPLES["dpo_logits"]())
    oomdoctor("explain", tmp_path)
    assert asked[0]["given"] == ([tmp_path],)


def test_a_folder_without_a_log_is_one_clear_sentence(oomdoctor: Any, tmp_path: Path) -> None:
    left = oomdoctor("explain", tmp_path)
    assert left.status == 2 and str(tmp_path) in left.err and "no log" in left.err


# -- outputs


def test_the_report_is_on_standard_output_and_colourless_in_a_pipe(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    left = oomdoctor("explain", log)
    assert left.out.startswith("OUT OF MEMORY (error.log:84)\n") and "\x1b" not in left.out and left.err == ""


def test_json_is_the_report(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    assert json.loads(oomdoctor("explain", log, "--format", "json").out) == json.loads(json.dumps(SAMPLES["dpo_logits"]().to_dict()))


def test_markdown_is_masked_and_text_is_not_unless_asked(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["lookalike"]())
    secret = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    assert secret not in oomdoctor("explain", log, "--format", "markdown").out
    assert secret in oomdoctor("explain", log, "--format", "markdown", "--no-redact").out
    assert secret in oomdoctor("explain", log).out
    assert secret not in oomdoctor("explain", log, "--redact", "--format", "json").out


def test_columns_and_no_color_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True, encoding="utf-8"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.view().width == 60 and console.view().colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not console.view().colour


@pytest.mark.parametrize(("variable", "lang"), [("zh_CN.UTF-8", "zh"), ("en_US.UTF-8", "en"), ("C", "en"), ("de_DE", "en")])
def test_the_language_is_the_locales(monkeypatch: pytest.MonkeyPatch, variable: str, lang: str) -> None:
    monkeypatch.setenv("LC_ALL", variable)
    assert console.language() == lang


def test_a_terminal_that_cannot_write_bars_gets_plain_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii"))
    console.say("█ 显存")
    assert buffer.getvalue() == b"# ??\n"


def test_schema_and_version_are_printed(oomdoctor: Any) -> None:
    assert json.loads(oomdoctor("schema").out)["title"] == "Report"
    assert oomdoctor("--version").out.startswith("oomdoctor ")


def test_facts_names_lines_and_keys(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    left = oomdoctor("facts", log)
    assert left.status == 0 and "error.log:84" in left.out and re.search(r"qwen2vl_dpo.yaml.*\n(?:.*\n)*? +19 cutoff_len", left.out)
    assert list(json.loads(oomdoctor("facts", log, "--format", "json").out)) == ["schema", "tool", "inputs", "events", "facts", "notices"]
    assert "| `train.max_seq_len` | 4096 |" in oomdoctor("facts", log, "--format", "markdown").out


def test_rules_are_listed_shown_and_missed_with_a_hint(oomdoctor: Any) -> None:
    listed = oomdoctor("rules", "list").out.splitlines()
    assert listed
    name = listed[0].split()[0]
    assert name in oomdoctor("rules", "show", name).out
    left = oomdoctor("rules", "show", name[:-1])
    assert left.status == 2 and name in left.err


def test_a_reader_that_goes_away_is_no_error(log: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m diagnose explain {log} --format json | head -c 5", shell=True, capture_output=True, text=True, check=False
    )
    assert done.stderr == "" and done.stdout


# -- patches


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config as the sample's plan edits it, in the folder one works in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "qwen2vl_dpo.yaml"
    path.write_text("cutoff_len: 4096\n")
    path.chmod(0o640)
    return path


def test_a_patch_is_printed_after_the_report(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    out = oomdoctor("explain", log, "--config", config.name, "--patch", "-").out
    assert out.startswith("OUT OF MEMORY") and "\n-cutoff_len: 4096\n+cutoff_len: 1536\n" in out


def test_a_patch_cannot_share_standard_output_with_json(oomdoctor: Any, told: Any, log: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    left = oomdoctor("explain", log, "--patch", "-", "--format", "json")
    assert left.status == 2 and left.out == ""


def test_a_patch_goes_to_a_file(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    assert oomdoctor("explain", log, "--config", config.name, "--patch", "fix.diff", "--format", "json").status == 0
    assert "+cutoff_len: 1536" in Path("fix.diff").read_text()
    assert config.read_text() == "cutoff_len: 4096\n"


def test_apply_writes_the_plan_and_keeps_the_original_and_the_mode(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    assert oomdoctor("explain", log, "--config", config.name, "--apply").status == 0
    original = config.with_name(config.name + ".orig")
    assert config.read_text() == "cutoff_len: 1536\n" and original.read_text() == "cutoff_len: 4096\n"
    assert stat.S_IMODE(config.stat().st_mode) == stat.S_IMODE(original.stat().st_mode) == 0o640
    assert sorted(path.name for path in config.parent.iterdir()) == ["error.log", config.name, original.name]


def test_a_check_of_ones_own_runs_on_the_changed_files(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    """It sees the new content; where it fails, the status says so. Without --apply nothing would have changed."""
    told(SAMPLES["dpo_logits"]())
    call = ("explain", log, "--config", config.name)
    assert oomdoctor(*call, "--check-with", "true").status == 2
    seen = oomdoctor(*call, "--apply", "--check-with", f"grep -q 1536 {config.name}")
    assert seen.status == 0 and "passed" in seen.err
    config.write_text("cutoff_len: 4096\n")
    failed = oomdoctor(*call, "--apply", "--check-with", "exit 3")
    assert failed.status == 2 and "exit status 3" in failed.err and ".orig" in failed.err


def test_the_first_original_is_never_overwritten(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    original = config.with_name(config.name + ".orig")
    original.write_text("the very first\n")
    assert oomdoctor("explain", log, "--config", config.name, "--apply").status == 0
    assert original.read_text() == "the very first\n" and config.read_text() == "cutoff_len: 1536\n"


def test_a_link_is_not_followed(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    target = config.rename(config.parent / "elsewhere.yaml")
    config.symlink_to(target)
    left = oomdoctor("explain", log, "--config", config.name, "--apply")
    assert left.status == 2 and target.read_text() == "cutoff_len: 4096\n"


def test_a_file_that_changed_meanwhile_is_left_alone(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    told(SAMPLES["dpo_logits"]())
    config.write_text("cutoff_len: 8192\n")
    left = oomdoctor("explain", log, "--config", config.name, "--apply")
    assert left.status == 2 and config.read_text() == "cutoff_len: 8192\n"


def test_a_file_that_was_not_given_is_not_written(oomdoctor: Any, told: Any, log: Path, config: Path) -> None:
    """A plan may name a file that a config refers to; only what the user named is changed."""
    told(SAMPLES["dpo_logits"]())
    oomdoctor("explain", log, "--apply")
    assert config.read_text() == "cutoff_len: 4096\n"


def test_a_plan_without_edits_writes_nothing_and_says_so(oomdoctor: Any, told: Any, log: Path, tmp_path: Path) -> None:
    told(SAMPLES["host_kill"]())
    left = oomdoctor("explain", log, "--patch", tmp_path / "fix.diff")
    assert left.status == 0 and not (tmp_path / "fix.diff").exists() and "no patch" in left.err


# -- start-up


@pytest.mark.parametrize(
    "line",
    [
        "explain error.log --format json --top 2 --set zero.stage=3",
        "explain error.log",
        "facts error.log",
        "run -- cat error.log",
        "--help",
    ],
)
def test_a_line_is_read_without_pydantic_and_rich(line: str, log: Path) -> None:
    """typer reads values through the one and draws help with the other; each takes a third of the time of a diagnosis to import."""
    code = (
        "import sys; sys.argv = ['oomdoctor', *sys.argv[1:]]\n"
        "from diagnose.surfaces.cli.entry import run\n"
        "try: run()\n"
        "except SystemExit: print(*sorted({'pydantic', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *line.split()], capture_output=True, text=True, check=True, cwd=log.parent)
    assert done.stdout and done.stderr.strip() == ""


def test_a_patch_on_a_terminal_cannot_steer_it(monkeypatch: pytest.MonkeyPatch, told: Any) -> None:
    """In a pipe it is exact to the byte; on a screen it is only looked at."""
    monkeypatch.setattr("diagnose.plan.patch.patching.unified_diff", lambda *_: "+key: 1\n # \x1b[2J\n")
    printed: list[str | bytes] = []
    monkeypatch.setattr(console, "say", printed.append)
    for tty in (True, False):
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda tty=tty: tty))
        patch_writer.write(SAMPLES["dpo_logits"](), (), "-", False, "en")
    assert printed == ["+key: 1\n # �[2J\n", b"+key: 1\n # \x1b[2J\n"]
