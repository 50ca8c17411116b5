"""rechain index, and what other commands do with an index."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.common import Command, write_lines

LEAVE = "# Leave\n\n## Parental leave\nParental leave is granted by the Quillfeather Office. It lasts 14 weeks.\n"
OFFICES = "# Offices\n\n## Quillfeather Office\nThe Quillfeather Office is in Lisbon, in the Alfama building.\n"
ASKED = {"question": "In which city is the office that grants parental leave?", "answer": "It is in Lisbon."}


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A folder of two documents."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "leave.md").write_text(LEAVE)
    (folder / "offices.md").write_text(OFFICES)
    return folder


@pytest.fixture
def index(handbook: Path, tmp_path: Path, rechain: Command) -> Path:
    """Their index."""
    assert rechain("index", handbook, "--out", tmp_path / "index").code == 0
    return tmp_path / "index"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of one answer, without passages."""
    return write_lines(tmp_path / "log.jsonl", ASKED)


@pytest.fixture
def recovered(index: Path, tmp_path: Path, rechain: Command) -> Command:
    """Recover a record with the index, by the lexical rule."""

    def run(record: dict[str, object], *options: object) -> Any:
        path = write_lines(tmp_path / "records.jsonl", record)
        return json.loads(rechain("recover", path, "--corpus", index, "--model", "lexical", *options).out)

    return run


def test_an_index_is_built_and_described(index: Path, rechain: Command) -> None:
    result = rechain("index", "--info", "--out", index)
    assert result.code == 0
    assert "passages       2" in result.out
    assert "markdown    leave.md" in result.out
    assert rechain("index", "--info", index).out == result.out


def test_a_second_build_takes_in_what_has_changed(index: Path, handbook: Path, rechain: Command) -> None:
    again = rechain("index", handbook, "--out", index)
    assert "2 passages of 2 files: 0 new, 0 dropped; 0 files read." in again.err
    (handbook / "offices.md").unlink()
    (handbook / "new.md").write_text("# New\n\nSomething new.\n")
    changed = rechain("index", handbook, "--out", index)
    assert "2 passages of 2 files: 1 new, 1 dropped; 1 file read." in changed.err
    assert "New: new.md.\nGone: offices.md.\n" in changed.err
    (handbook / "new.md").write_text("# New\n\nSomething else.\n")
    again = rechain("index", handbook, "--out", index, "--passage-words", 200)  # which reads all files again
    assert "Changed: new.md.\n" in again.err and "New" not in again.err


def test_passages_are_found_for_a_log_without_any(index: Path, recovered: Command, rechain: Command) -> None:
    record = recovered(ASKED)
    assert record["id"] == "1"
    assert record["collection"] in rechain("index", "--info", index).out
    assert record["chains"][0]["passages"] == ["leave.md#1", "offices.md#1"]
    assert "own" not in record["chains"][0]


def test_passages_of_the_log_are_said_to_be_its_own(recovered: Command) -> None:
    own = [{"id": "c1", "title": "Memo", "text": "Parental leave is decided by the Quillfeather Office alone."}]
    record = recovered({**ASKED, "passages": own}, "--top", 9)
    by_passages = {tuple(chain["passages"]): chain.get("own") for chain in record["chains"]}
    assert by_passages["c1", "offices.md#1"] == ["c1"]
    assert by_passages["leave.md#1", "offices.md#1"] is None


@pytest.mark.parametrize(
    ("record", "options"),
    [
        ({**ASKED, "passage_ids": ["leave.md#1", "offices.md#1"]}, []),
        ({"user_input": ASKED["question"], "response": ASKED["answer"]}, []),
        ({"query": ASKED["question"], "result": ASKED["answer"]}, []),
        (
            {"messages": [{"role": "user", "content": ASKED["question"]}, {"role": "assistant", "content": "Lisbon."}]},
            [],
        ),
        (
            {"ask": ASKED["question"], "said": {"text": ASKED["answer"]}},
            ["--map", "question=ask,answer=said.text"],
        ),
    ],
    ids=["passages by their ids in the index", "ragas", "langchain", "chat", "mapped fields"],
)
def test_logs_of_every_layout_need_no_passages(
    recovered: Command, record: dict[str, object], options: list[str]
) -> None:
    assert recovered(record, *options)["chains"][0]["passages"] == ["leave.md#1", "offices.md#1"]


def test_other_commands_find_passages_too(index: Path, log: Path, tmp_path: Path, rechain: Command) -> None:
    chains = tmp_path / "chains.jsonl"
    assert rechain("recover", log, "--corpus", index, "--model", "lexical", "--out", chains).code == 0
    assert rechain("candidates", log, "--corpus", index).code == 0
    paths = rechain("export", chains, "--to", "paths", "--questions", log, "--corpus", index)
    assert "Quillfeather Office" in paths.out


def test_workers_write_the_same_bytes(index: Path, tmp_path: Path, rechain: Command) -> None:
    path = write_lines(tmp_path / "many.jsonl", *({**ASKED, "id": str(n)} for n in range(80)))
    outputs = []
    for workers in (0, 2):
        out = tmp_path / f"out{workers}.jsonl"
        options = ("--corpus", index, "--model", "lexical", "--workers", workers, "--out", out)
        assert rechain("recover", path, *options).code == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 80


def test_resuming_with_another_collection_is_refused(
    index: Path, handbook: Path, log: Path, tmp_path: Path, rechain: Command
) -> None:
    out = tmp_path / "chains.jsonl"
    command = ("recover", log, "--corpus", index, "--model", "lexical", "--out", out)
    assert rechain(*command).code == 0
    (handbook / "leave.md").write_text(LEAVE.replace("14", "16"))
    assert rechain("index", handbook, "--out", index).code == 0
    result = rechain(*command, "--resume")
    assert result.code == 2
    assert "collection" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name what to index and where the index goes"),
        (["handbook"], "name what to index and where the index goes"),
        (["--info"], "--info takes one index and nothing else"),
        (["nowhere", "--out", "index"], "nowhere"),
        (
            ["--info", "--out", "nowhere"],
            "there is no index nowhere; build one with 'rechain index SOURCE --out nowhere'",
        ),
        (["--info", "--out", "handbook"], "handbook is no index"),
        (["handbook", "--out", "handbook/leave.md"], "handbook/leave.md is a file; name a folder for the index"),
        (["handbook", "--out", "full"], "full is no index and holds notes.txt; name a new or an empty folder"),
    ],
)
def test_mistakes_are_one_sentence(
    handbook: Path, rechain: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(handbook.parent)
    Path("full").mkdir()
    Path("full/notes.txt").write_text("mine")
    result = rechain("index", *arguments)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert Path("full/notes.txt").read_text() == "mine"


def test_an_index_and_a_file_of_passages_are_not_both_taken(index: Path, log: Path, rechain: Command) -> None:
    result = rechain("recover", log, "--corpus", index, "--passages", log)
    assert result.code == 2
    assert "choose one of them" in result.err


def test_what_is_left_out_is_named_and_the_rest_goes_on(handbook: Path, tmp_path: Path, rechain: Command) -> None:
    (handbook / "empty.txt").write_text("")
    (handbook / "binary.txt").write_bytes(bytes(range(256)) * 40)
    (handbook / "circle").symlink_to("..")
    for number in range(30):
        (handbook / f"{number}.png").write_bytes(b"\x89PNG")
    result = rechain("index", handbook, "--out", tmp_path / "index")
    assert result.code == 0
    assert "2 passages of 2 files" in result.err
    assert "empty.txt holds no text" in result.err
    assert "binary.txt" in result.err
    assert "circle is a link that leads out of" in result.err
    assert "Files of kinds that are not read are left out: 30 .png." in result.err


def test_of_very_many_bad_rows_the_first_are_named(tmp_path: Path, rechain: Command) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "p", "text": "Some text."}\n' + '{"id": 1}\n' * 50)
    result = rechain("index", rows, "--out", tmp_path / "index")
    assert "1 passage of 1 file: 1 new, 0 dropped; 1 file read, 50 left out." in result.err
    assert "30 more files or rows are left out for such reasons." in result.err


def test_the_length_of_passages_is_one_that_the_index_remembers(index: Path, handbook: Path, rechain: Command) -> None:
    assert rechain("index", handbook, "--out", index, "--passage-words", 5000).code == 0
    assert "0 files read" in rechain("index", handbook, "--out", index).err
    assert "passage words  5000" in rechain("index", "--info", index).out
    assert rechain("index", handbook, "--out", index, "--passage-words", 5001).code == 2


def test_an_index_is_not_emptied_by_a_folder_that_is_gone(index: Path, tmp_path: Path, rechain: Command) -> None:
    (tmp_path / "mount").mkdir()
    result = rechain("index", tmp_path / "mount", "--out", index)
    assert result.code == 2
    assert "no file that can be read was found" in result.err
    assert "passages       2" in rechain("index", "--info", index).out


def test_a_log_without_passages_and_without_an_index_says_what_to_do(log: Path, rechain: Command) -> None:
    result = rechain("recover", log)
    assert result.code == 2
    assert "or an index that finds them with --corpus" in result.err


def test_the_row_that_answers_is_found_among_many_that_look_alike(tmp_path: Path, rechain: Command) -> None:
    texts = [f"Pump Zorvath{n}x delivers {n} litres and is sold by Quill{n}er Ltd." for n in range(60)]
    rows = write_lines(tmp_path / "rows.jsonl", *({"id": f"p{n}", "text": text} for n, text in enumerate(texts)))
    assert rechain("index", rows, "--out", tmp_path / "index").code == 0
    asked = [{"question": f"Who sells Pump Zorvath{n}x?", "answer": f"Quill{n}er Ltd"} for n in range(60)]
    path = write_lines(tmp_path / "asked.jsonl", *asked)
    found = rechain("candidates", path, "--corpus", tmp_path / "index", "--json")
    assert json.loads(found.out)["questions without a chain"].get("no_tail", 0) == 0


# ---- an index without passages, and chains of more passages than are looked for


@pytest.fixture
def empty(tmp_path: Path, rechain: Command) -> Path:
    """An index of a document without text."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "empty.md").write_text("")
    assert rechain("index", tmp_path / "documents", "--out", tmp_path / "empty.index").code == 0
    return tmp_path / "empty.index"


def test_an_index_without_passages_has_no_candidates(empty: Path, log: Path, rechain: Command) -> None:
    outcome = rechain("candidates", log, "--corpus", empty, "--json", "--max-error-rate", 1)
    assert outcome.code == 0
    assert json.loads(outcome.out)["questions without a chain"] == {"too_few_passages": 1}


def test_an_index_without_passages_supports_nothing(empty: Path, log: Path, rechain: Command) -> None:
    outcome = rechain("recover", log, "--corpus", empty, "--model", "lexical", "--max-error-rate", 1)
    assert outcome.code == 0
    assert outcome.rows[0]["error"]["code"] == "too_few_passages"


@pytest.fixture
def few(tmp_path: Path, rechain: Command) -> Path:
    """An index of three passages, one of which has all words of the question."""
    passages = [
        ("leave", "Parental leave", "Parental leave is granted by the Quillfeather Office."),
        ("office", "Quillfeather Office", "The Quillfeather Office is in Lisbon."),
        ("city", "Lisbon", "In the city of Lisbon an office grants parental leave to sailors."),
    ]
    rows = write_lines(
        tmp_path / "rows.jsonl", *({"id": name, "title": title, "text": text} for name, title, text in passages)
    )
    assert rechain("index", rows, "--out", tmp_path / "index").code == 0
    return tmp_path / "index"


@pytest.fixture
def chains(few: Path, log: Path, tmp_path: Path, rechain: Command) -> Path:
    """What was recovered from more passages than are looked for later."""
    out = tmp_path / "chains.jsonl"
    assert rechain("recover", log, "--corpus", few, "--found", 12, "--hops", 2, "--out", out).code == 0
    return out


def test_chains_of_more_passages_than_are_found_are_exported(
    chains: Path, few: Path, log: Path, rechain: Command
) -> None:
    options = ("export", chains, "--to", "paths", "--questions", log, "--corpus", few)
    whole, fewer = rechain(*options), rechain(*options, "--found", 1)
    assert (whole.code, fewer.code) == (0, 0), fewer.err
    assert whole.rows == fewer.rows


def test_chains_of_more_passages_than_are_found_are_audited(
    chains: Path, few: Path, log: Path, tmp_path: Path, rechain: Command
) -> None:
    options = ("audit", log, "--chains", chains, "--corpus", few, "--out", tmp_path / "page.html", "--overwrite")
    pages = []
    for more in ((), ("--found", 1)):
        assert rechain(*options, *more).code == 0
        pages.append((tmp_path / "page.html").read_text())
    assert pages[1].count("Quillfeather Office") == pages[0].count("Quillfeather Office") > 0


def test_candidates_are_those_that_recovery_has(tmp_path: Path, rechain: Command) -> None:
    texts = {"a": "The lodge keeper works for Quorvath.", "b": "At Quorvath the fee is 12 krones."}
    texts |= {str(number): f"Rule {number} of Quorvath." for number in range(40)}
    passages = write_lines(tmp_path / "passages.jsonl", *({"id": id, "text": text} for id, text in texts.items()))
    asked = {"id": "q", "question": "What does the keeper pay?", "answer": "12 krones", "passage_ids": ["a", "b"]}
    path = write_lines(tmp_path / "asked.jsonl", asked)
    assert rechain("index", passages, "--out", tmp_path / "index").code == 0
    for where in (("--passages", passages), ("--corpus", tmp_path / "index")):
        options = (path, *where, "--max-error-rate", 1)
        (recovered,) = rechain("recover", *options, "--model", "lexical").rows
        counted = json.loads(rechain("candidates", *options, "--json").out)
        assert counted["questions without a chain"] == {recovered["error"]["code"]: 1} == {"no_link": 1}
