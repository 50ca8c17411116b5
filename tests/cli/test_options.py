"""Option groups, and where records go: what is checked before anything is written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from rechain.cli.options import CandidateOptions, OutputOptions, grouped, show_provenance
from rechain.errors import RechainError
from rechain.system.provenance import describe_input, heading, read_provenance, sidecar_of, write_provenance
from rechain.text.candidates import CandidateSettings
from rechain.version import __version__


@dataclass(frozen=True)
class Town:
    name: Annotated[str, typer.Argument(metavar="NAME")]
    size: Annotated[int, typer.Option("--size", min=1)] = 7


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["Oslo"], "Town(name='Oslo', size=7) None False"),
        (["--hops", "3", "Oslo", "--size", "9", "--loud"], "Town(name='Oslo', size=9) 3 True"),
    ],
    ids=" ".join,
)
def test_a_command_gets_its_groups_whole(arguments: list[str], output: str) -> None:
    @grouped
    def command(*, loud: bool = False, town: Town, candidates: CandidateOptions) -> None:
        print(town, candidates.hops, loud)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.output.strip()) == (0, output)
    for wrong in ([], ["Oslo", "--size", "0"], ["Oslo", "--town", "x"]):
        assert CliRunner().invoke(app, wrong).exit_code == 2


def test_options_that_are_left_out_leave_the_settings_alone() -> None:
    assert CandidateOptions().settings() == CandidateSettings()
    settings = CandidateOptions(link_types=" gene, drug,", linkers="names, ", limit=5).settings()
    assert settings == CandidateSettings(link_types=["gene", "drug"], linkers=["names"], limit=5)


@pytest.fixture
def existing(tmp_path: Path) -> Path:
    path = tmp_path / "chains.jsonl"
    path.write_text("precious")
    return path


def problem(out: Path | None, overwrite: bool, *inputs: Path | None, resume: bool | None = None) -> str | None:
    """Return what is wrong with an output, if anything is."""
    try:
        OutputOptions(out, overwrite).check(*inputs, resume=resume)
    except RechainError as error:
        return str(error)
    return None


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("resume", [None, False])
def test_standard_output_and_a_new_file_are_always_fine(tmp_path: Path, overwrite: bool, resume: bool | None) -> None:
    assert problem(None, overwrite, resume=resume) is None
    assert problem(tmp_path / "new", overwrite, tmp_path / "questions", None, resume=resume) is None


def test_an_existing_file_needs_a_word(existing: Path) -> None:
    start = f"{existing} exists; name another file, "
    assert problem(existing, False) == start + "or replace it with --overwrite."
    asked = problem(existing, False, resume=False)
    assert asked == start + "replace it with --overwrite, or go on with it with --resume."
    assert problem(existing, True) is None
    assert problem(existing, True, resume=False) is None
    assert problem(existing, False, resume=True) is None


def test_resume_goes_with_a_file_and_without_overwrite(existing: Path) -> None:
    assert problem(None, False, resume=True) == "--resume goes on with an output file; name it with --out FILE."
    both = "--resume goes on with a file and --overwrite replaces it; choose one of them."
    assert problem(existing, True, resume=True) == both
    assert problem(existing.with_name("new"), False, resume=True) is None


@pytest.mark.parametrize("resume", [False, True])
def test_what_is_read_is_not_written(existing: Path, resume: bool) -> None:
    link = existing.with_name("link")
    link.symlink_to(existing)
    for out, source in ((existing, existing), (link, existing), (existing, link)):
        assert problem(out, not resume, None, source, resume=resume) == (
            f"{out} is what is read; name another file for the output."
        )


def test_a_pipe_in_the_place_of_the_provenance_is_not_waited_for(
    tmp_path: Path, make_pipe: Callable[[Path], None]
) -> None:
    out = tmp_path / "chains.jsonl"
    make_pipe(sidecar_of(out))
    expected = f"{sidecar_of(out)} exists and says nothing of {out}; move it, or name another output."
    assert problem(out, False, resume=False) == expected


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    out = tmp_path / "missing" / "chains.jsonl"
    assert problem(out, False, resume=True) == f"{out} cannot be written: there is no folder {out.parent}."


def test_what_made_chains_is_shown_with_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chains, questions = tmp_path / "chains.jsonl", tmp_path / "questions.jsonl"
    chains.write_text("{}\n")
    questions.write_text("{}\n")
    assert read_provenance(chains) is None
    assert read_provenance(tmp_path) is None
    show_provenance(None, questions)
    assert capsys.readouterr().err == ""
    made_by = heading("recover", model={"name": "lexical"}, input=describe_input(questions))
    write_provenance(chains, made_by, {"questions": 3, "errors": {"no_link": 2}})
    show_provenance(read_provenance(chains), questions)
    line = capsys.readouterr().err
    start = f"{chains}: by rechain {__version__} recover with model lexical from questions.jsonl, "
    assert line.startswith(start)
    assert line.endswith(", 3 questions, 2 with an error\n")
    chains.write_text("{} \n")
    questions.write_text("{}\n{}\n")
    show_provenance(read_provenance(chains), questions)
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"warning: {chains} was changed after it was written.",
        f"warning: {chains} was recovered from other questions (questions.jsonl) than {questions}.",
    ]
    sidecar_of(chains).write_bytes(sidecar_of(chains).read_bytes().splitlines(keepends=True)[0])
    show_provenance(read_provenance(chains))
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"warning: {chains} is not finished; `rechain recover` goes on with it with --resume."
    ]
    sidecar_of(chains).write_text("precious")
    show_provenance(read_provenance(chains))
    summary, warning = capsys.readouterr().err.splitlines()
    assert summary == f"{chains}: of unknown provenance"
    assert warning.startswith(f"warning: {sidecar_of(chains)} is damaged (at line 1)")


def test_a_provenance_file_replaces_no_file_of_another_purpose(tmp_path: Path) -> None:
    out, sidecar = tmp_path / "chains", tmp_path / "chains.provenance"
    sidecar.write_text("precious")
    assert problem(out, False) == f"{sidecar} exists and says nothing of {out}; move it, or name another output."
    read = f"{sidecar}, where the output's provenance goes, is what is read; name another output."
    assert problem(out, True, sidecar) == read
    out.write_text("chains")
    for content in ("precious", '{"id": 1}\n'):
        sidecar.write_text(content)
        assert "says nothing of" in str(problem(out, True))
        assert sidecar.read_text() == content
    write_provenance(out, heading("recover"), {})
    whole = sidecar.read_bytes()
    for damaged in (b"", whole, whole[:50], b"x" + whole[1:], whole.replace(b"recover", b"recovex")):
        sidecar.write_bytes(damaged)
        assert problem(out, True) is None
