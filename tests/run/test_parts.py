"""Output folders of numbered parts: whose they are, when they may be written to, and what is in them."""

import hashlib
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.questions import Chunk, read_chunks
from rechain.formats.datasets.records import read_rows
from rechain.recoverer import RecovererConfig
from rechain.run import PartFormat
from rechain.run.parts import PartsFolder
from rechain.run.work import Tally, Work, Worker
from rechain.schema import Recovered
from rechain.system.files import LostOutputError
from rechain.system.provenance import read_provenance
from rechain.text.candidates import CandidateSettings
from rechain.version import __version__

LEXICAL = RecovererConfig("lexical")
FILES = {"a.jsonl": 7}
OPTIONS: dict[str, Any] = {"model": ("lexical",)}

Begin = Callable[..., PartsFolder]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def seen(folder: Path) -> dict[str, bytes]:
    return {name: part for name, part in content(folder).items() if not name.startswith(".")}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def begin(out: Path) -> Begin:
    """Begin with a folder."""

    def begin(
        files: dict[str, int] = FILES, options: Any = OPTIONS, *, overwrite: bool = False, resume: bool = False
    ) -> PartsFolder:
        folder = PartsFolder(str(out), PartFormat.jsonl)
        folder.inspect(files, options, overwrite, resume)
        folder.begin(overwrite)
        return folder

    return begin


def finish(out: Path) -> None:
    folder = PartsFolder(str(out), PartFormat.jsonl)
    folder.inspect(FILES, OPTIONS, False, True)
    folder.finish({})


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=str)
@pytest.mark.parametrize("is_there", [False, True], ids=["absent", "empty"])
def test_a_folder_that_is_not_there_or_empty_is_begun(out: Path, begin: Begin, options: Any, is_there: bool) -> None:
    if is_there:
        out.mkdir()
    folder = begin(**options)
    assert (folder.names, folder.parts) == (frozenset(), {})
    (made_by,) = content(out).values()
    fields = json.loads(made_by)
    assert fields.pop("sha256").keys() == {"_rechain.json"}
    assert fields.pop("began")
    assert fields == {
        "rechain": __version__,
        "command": "recover",
        "model": ["lexical"],
        "input": {"files": 1, "size": 7},
        "questions": {"a.jsonl": 7},
        "format": "jsonl",
    }


def test_a_folder_that_was_begun_is_not_begun_again_unasked(out: Path, begin: Begin) -> None:
    begin()
    (out / "00000-000000.jsonl").write_text("a part")
    before = content(out)
    with pytest.raises(RechainError) as raised:
        begin()
    assert str(raised.value) == (
        f"{out} exists; name another folder, replace it with --overwrite, or go on with it with --resume."
    )
    assert content(out) == before


def test_resume_tells_which_parts_are_there_and_keeps_them(out: Path, begin: Begin) -> None:
    begin()
    (out / "00000-000000.jsonl").write_text("a part")
    (out / "00001-000002.jsonl").write_text("another")
    before = content(out)
    assert begin(resume=True).names == {"00000-000000.jsonl", "00001-000002.jsonl", "_rechain.json"}
    assert content(out) == before


@pytest.mark.parametrize(
    "manifest",
    [
        (FILES, {"model": ("bm25",)}),
        ({"b.jsonl": 7}, OPTIONS),
        ({"a.jsonl": 7, "b.jsonl": 1}, OPTIONS),
        (FILES, {"model": ("lexical",), "top": 2}),
    ],
    ids=str,
)
def test_resume_with_anything_else_is_refused_and_changes_nothing(out: Path, begin: Begin, manifest: Any) -> None:
    begin()
    (out / "00000-000000.jsonl").write_text("a part")
    before = content(out)
    with pytest.raises(RechainError) as raised:
        begin(*manifest, resume=True)
    assert str(raised.value) == (
        f"{out} was begun with another input, model or option (see _rechain.json in it); "
        "name another folder, or replace it with --overwrite."
    )
    assert content(out) == before


def test_overwrite_takes_away_what_this_command_made_with_whatever_and_nothing_else(out: Path, begin: Begin) -> None:
    begin()
    half = f".00000-000002.jsonl.{16 * 'a'}"
    entry = ".00000-000000.jsonl.provenance"
    ours = ("00000-000000.jsonl", "00000-000001.parquet", half, entry, f".{entry}.{16 * 'b'}", "_SUCCESS")
    for name in (*ours, "notes.txt", ".notes"):
        (out / name).write_text("old")
    begin({}, {"model": ("bm25",)}, overwrite=True)
    assert sorted(content(out)) == [".notes", "_rechain.json", "notes.txt"]
    assert json.loads(content(out)["_rechain.json"])["model"] == ["bm25"]


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=str)
@pytest.mark.parametrize("name", ["thesis.tex", "00000-000000.jsonl", "within/_rechain.json", "_SUCCESS"])
def test_a_folder_of_other_files_is_refused_and_untouched(out: Path, begin: Begin, options: Any, name: str) -> None:
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("precious")
    with pytest.raises(RechainError) as raised:
        begin(**options)
    assert str(raised.value) == f"{out} is there and was not made by this command; name another folder."
    assert content(out) == {name: b"precious"}


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=str)
def test_a_file_of_the_folders_name_is_refused_and_untouched(out: Path, begin: Begin, options: Any) -> None:
    out.write_text("precious")
    with pytest.raises(RechainError, match="was not made by this command"):
        begin(**options)
    assert out.read_text() == "precious"


def test_what_a_folder_is_made_by_is_written_the_same_way_in_any_order(out: Path, begin: Begin) -> None:
    kinds = ["protein", "drug", "gene", "cell"]
    begin({}, {"b": frozenset(kinds), "a": Path("p.jsonl"), "settings": CandidateSettings(hops=3)})
    before = content(out)
    turned = {"settings": CandidateSettings(hops=3), "a": Path("p.jsonl"), "b": frozenset(kinds[::-1])}
    begin({}, turned, resume=True)
    assert content(out) == before


@pytest.mark.parametrize(
    "other",
    [
        Work(RecovererConfig("bm25", settings=CandidateSettings(), top=1)),
        Work(RecovererConfig("lexical", settings=CandidateSettings(hops=3), top=1)),
        Work(RecovererConfig("lexical", settings=CandidateSettings(), top=2)),
        Work(RecovererConfig("lexical", settings=CandidateSettings(), top=1), Path("passages.jsonl")),
        Work(RecovererConfig("lexical", settings=CandidateSettings(), top=1), only=("bridge",)),
    ],
    ids=["model", "hops", "top", "passages", "only"],
)
def test_work_that_comes_to_something_else_is_told_apart(begin: Begin, other: Work) -> None:
    work = Work(RecovererConfig("lexical", settings=CandidateSettings(), top=1))
    begin({}, work.described())
    assert begin({}, work.described(), resume=True).names
    with pytest.raises(RechainError, match="another input, model or option"):
        begin({}, other.described(), resume=True)


def test_where_a_model_computes_and_what_stops_the_work_make_no_difference(begin: Begin) -> None:
    begin({}, Work(RecovererConfig("default", device="cuda"), strict=True).described())
    assert begin({}, Work(RecovererConfig("default", device="cpu")).described(), resume=True).names


def test_a_model_that_was_trained_again_is_told_apart(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "weights").write_text("old")
    work = Work(RecovererConfig(str(tmp_path / "run")))
    begin({}, work.described())
    assert begin({}, work.described(), resume=True).names
    (tmp_path / "run" / "weights").write_text("newer")
    with pytest.raises(RechainError, match="another input, model or option"):
        begin({}, work.described(), resume=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"questions": ["a.jsonl"]}'])
def test_a_description_that_was_changed_by_hand_is_refused(out: Path, begin: Begin, text: str) -> None:
    begin()
    whole = (out / "_rechain.json").read_text()
    for content in (text, whole.replace("lexical", "bm25"), whole.replace('"began"', '"begun"'), whole[:-20]):
        (out / "_rechain.json").write_text(content)
        with pytest.raises(RechainError, match=r"_rechain\.json is damaged or of an older version"):
            begin(resume=True)
        provenance = read_provenance(out)
        assert provenance and "is damaged" in provenance.misfits()[0]


def test_inspection_changes_nothing(out: Path, begin: Begin) -> None:
    begin()
    finish(out)
    before = content(out)
    for options in ((True, False), (False, True)):
        PartsFolder(str(out), PartFormat.jsonl).inspect(FILES, OPTIONS, *options)
    assert content(out) == before


@pytest.mark.parametrize("place", [(10**5, 0), (0, 10**6)])
def test_there_are_no_names_for_more_parts_than_sort(out: Path, place: tuple[int, int]) -> None:
    with pytest.raises(RechainError, match="make --part-size larger"):
        PartsFolder(str(out), PartFormat.jsonl).name(*place)


@pytest.mark.parametrize("form", PartFormat)
def test_names_sort_by_file_and_then_by_part(out: Path, form: PartFormat) -> None:
    folder = PartsFolder(str(out), form)
    places = [(file, part) for file in (0, 1, 9, 10, 123) for part in (0, 2, 10, 99_999)]
    names = [folder.name(*place) for place in places]
    assert names == sorted(names)
    assert len(set(names)) == len(places)
    assert folder.name(1, 2) == f"00001-000002.{form.value}"


@pytest.fixture
def chunks(town_file: Path) -> list[Chunk]:
    """Twelve questions and one that cannot be read."""
    town_file.write_text(town_file.read_text() + '{"id": "x"\n')
    return list(read_chunks(town_file, 5))


@pytest.fixture
def lines(chunks: list[Chunk]) -> bytes:
    """What the local engine writes."""
    worker = Worker(Work(LEXICAL))
    return b"".join(worker(chunk).lines for chunk in chunks)


def test_a_part_of_lines_is_what_the_local_engine_writes(out: Path, chunks: list[Chunk], lines: bytes) -> None:
    folder = PartsFolder(str(out), PartFormat.jsonl)
    part = folder.make("a.jsonl", chunks, Worker(Work(LEXICAL)))
    assert (part.size, part.sha256) == (len(lines), hashlib.sha256(lines).hexdigest())
    assert seen(out) == {"a.jsonl": lines}
    assert lines.count(b"\n") == 13
    assert part.tally == Tally(13, 12, {"bad_json": 1})


def test_a_part_of_parquet_holds_the_same_records_and_is_the_same_every_time(
    out: Path, chunks: list[Chunk], lines: bytes
) -> None:
    folder = PartsFolder(str(out), PartFormat.parquet)
    for name in ("a.parquet", "b.parquet"):
        folder.make(name, chunks, Worker(Work(LEXICAL)))
    recovered = [each for _, each in read_rows(out / "a.parquet", Recovered)]
    assert recovered == [Recovered.model_validate_json(line) for line in lines.splitlines()]
    assert content(out)["a.parquet"] == content(out)["b.parquet"]


def test_a_part_without_a_wanted_question_is_there_and_empty(out: Path, chunks: list[Chunk]) -> None:
    worker = Worker(Work(LEXICAL, only=("bridge",)))
    assert PartsFolder(str(out), PartFormat.jsonl).make("a.jsonl", chunks[:1], worker).tally == Tally()
    assert PartsFolder(str(out), PartFormat.parquet).make("a.parquet", chunks[:1], worker).tally == Tally()
    assert content(out)["a.jsonl"] == b""
    assert pyarrow.parquet.read_table(out / "a.parquet").num_rows == 0


def test_a_part_with_an_error_that_stops_the_work_is_not_there(out: Path, chunks: list[Chunk]) -> None:
    folder, worker = PartsFolder(str(out), PartFormat.jsonl), Worker(Work(LEXICAL, strict=True))
    folder.make("a.jsonl", chunks[:2], worker)
    with pytest.raises(QuestionError, match="line 13"):
        folder.make("b.jsonl", chunks, worker)
    assert list(seen(out)) == ["a.jsonl"]


def test_a_finished_folder_says_so_as_others_do(out: Path, begin: Begin) -> None:
    begin()
    finish(out)
    assert content(out)["_SUCCESS"] == b""
    provenance = read_provenance(out)
    assert provenance and provenance.end and not provenance.misfits()
    assert (provenance.end["questions"], provenance.end["parts"]) == (0, {})


@pytest.mark.parametrize("form", PartFormat)
def test_what_is_finished_tells_the_counts_of_all_parts(out: Path, chunks: list[Chunk], form: PartFormat) -> None:
    """Also of those that an earlier run has made."""
    worker = Worker(Work(LEXICAL))
    for resume in (False, True):
        folder = PartsFolder(str(out), form)
        folder.inspect(FILES, OPTIONS, False, resume)
        folder.begin(False)
        name = folder.name(0, int(resume))
        part = folder.make(name, chunks[resume::2], worker)
    folder.finish({name: part})
    provenance = read_provenance(out)
    assert provenance and provenance.end
    assert not provenance.misfits()
    facts = {name: provenance.end[name] for name in ("questions", "with_chain", "errors")}
    assert facts == {"questions": 13, "with_chain": 12, "errors": {"bad_json": 1}} == folder.tally.counts()
    assert provenance.end["parts"].keys() == {folder.name(0, 0), folder.name(0, 1)}
    if form == PartFormat.parquet:
        metadata = pyarrow.parquet.read_schema(out / name).metadata[b"rechain"]
        assert json.loads(metadata) == {"rechain": __version__, "command": "recover", "model": ["lexical"]}


@pytest.fixture
def finished(out: Path, chunks: list[Chunk]) -> list[Path]:
    """The parts of a finished folder."""
    folder = PartsFolder(str(out), PartFormat.jsonl)
    folder.inspect(FILES, OPTIONS, False, False)
    folder.begin(False)
    worker = Worker(Work(LEXICAL))
    folder.finish({(name := folder.name(0, n)): folder.make(name, [chunks[n]], worker) for n in range(3)})
    return sorted(out.glob("0*"))


def test_a_finished_folder_whose_parts_were_changed_is_told(out: Path, finished: list[Path]) -> None:
    def misfits() -> list[str]:
        provenance = read_provenance(out)
        assert provenance
        return provenance.misfits()

    assert misfits() == []
    text = finished[1].read_text()
    finished[1].write_text(text.replace("town-5", "town-X"))
    assert misfits() == [f"{finished[1]} was changed after it was written."]
    (out / "more.jsonl").write_text("{}\n")
    finished[0].unlink()
    finished[2].unlink()
    assert misfits() == [
        f"{finished[0]} is missing, and so it is with 1 more.",
        f"{finished[1]} was changed after it was written.",
        f"{out / 'more.jsonl'} was added after the others were written.",
    ]


@pytest.mark.parametrize("grown", [False, True], ids=["the same input", "a longer one"])
def test_a_resumed_folder_counts_the_parts_that_it_keeps(out: Path, finished: list[Path], grown: bool) -> None:
    folder = PartsFolder(str(out), PartFormat.jsonl)
    folder.inspect({"a.jsonl": 7 + grown}, OPTIONS, False, True)
    folder.begin(False)
    folder.finish({})
    provenance = read_provenance(out)
    assert provenance and provenance.end and not provenance.misfits()
    assert provenance.end["questions"] == folder.tally.questions == 13
    assert [*provenance.end["parts"]] == [part.name for part in finished]


def test_a_part_of_another_size_than_it_was_written_with_is_not_kept(out: Path, finished: list[Path]) -> None:
    finished[1].write_text(finished[1].read_text() + "{}\n")
    with pytest.raises(RechainError) as raised:
        PartsFolder(str(out), PartFormat.jsonl).inspect(FILES, OPTIONS, False, True)
    assert str(raised.value) == (f"{finished[1]} was changed after it was written; delete it and go on with --resume.")


@pytest.mark.parametrize("damage", [None, b"", b"{}", bytes(100)], ids=str)
def test_a_part_of_which_nobody_knows_what_it_was_made_of_is_made_again(
    out: Path, finished: list[Path], damage: bytes | None
) -> None:
    entry = out / f".{finished[1].name}.provenance"
    entry.unlink() if damage is None else entry.write_bytes(damage)
    folder = PartsFolder(str(out), PartFormat.jsonl)
    folder.inspect(FILES, OPTIONS, False, True)
    assert folder.parts.keys() == {finished[0].name, finished[2].name}


DISTURBANCES: dict[str, tuple[Callable[[Path], object], str]] = {
    "removed": (lambda out: (out / "00000-000000.jsonl").unlink(), "00000-000000.jsonl was removed; go on"),
    "cut": (lambda out: (out / "00000-000001.jsonl").write_text(""), "00000-000001.jsonl was changed; delete it"),
    "manifest": (lambda out: (out / "_rechain.json").write_text("{}"), "_rechain.json was changed by another program"),
    "folder": (shutil.rmtree, "was removed; go on"),
}


@pytest.mark.parametrize(("disturb", "message"), DISTURBANCES.values(), ids=DISTURBANCES)
def test_parts_that_others_disturb_are_no_success(
    out: Path, chunks: list[Chunk], disturb: Callable[[Path], object], message: str
) -> None:
    for resume in (False, True):
        folder = PartsFolder(str(out), PartFormat.jsonl)
        folder.inspect(FILES, OPTIONS, False, resume)
        folder.begin(False)
        part = folder.make(folder.name(0, int(resume)), chunks, Worker(Work(LEXICAL)))
    disturb(out)
    with pytest.raises(LostOutputError, match=message):
        folder.finish({folder.name(0, 1): part})
    assert not (out / "_SUCCESS").exists()


def test_a_folder_sent_to_another_process_writes_to_the_same_place(
    tmp_path: Path, chunks: list[Chunk], lines: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(PartsFolder("out", PartFormat.jsonl))
    monkeypatch.chdir("/")
    folder = pickle.loads(sent)
    folder.make(folder.name(0, 0), chunks, Worker(Work(LEXICAL)))
    assert seen(tmp_path / "out") == {"00000-000000.jsonl": lines}
