"""Questions given as dicts, tuples and objects of other libraries."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets import Entry, read_questions
from rechain.formats.datasets.inputs import as_entry, as_question, rows_of
from rechain.schema import Passage, Question

TEXTS = ["Zorilla is an opera by Anton Quillfeather.", "Anton Quillfeather was born in Prague."]


def read(given: Any) -> Entry:
    return as_entry("here", "7", given)


def test_a_question_is_taken_as_it_is(bridge_question: Question) -> None:
    assert read(bridge_question) == Entry("", "q1", bridge_question)


def test_an_entry_is_taken_as_it_is(bridge_question: Question) -> None:
    entry = Entry("file, line 3", "q1", bridge_question, share=0.5)
    assert read(entry) is entry


def test_a_dict_has_the_fields_of_a_question(bridge_question: Question) -> None:
    assert read(bridge_question.model_dump()) == Entry("", "q1", bridge_question)


def test_a_tuple_is_a_question_with_its_answer_and_passages() -> None:
    entry = read(("Where?", "Prague", iter([TEXTS[0], {"title": "Anton", "text": TEXTS[1]}])))
    passages = [Passage(id="0", text=TEXTS[0]), Passage(id="Anton", title="Anton", text=TEXTS[1])]
    assert entry == Entry("", "7", Question(id="7", question="Where?", answer="Prague", passages=passages))


@pytest.mark.parametrize(
    ("given", "name", "code", "message"),
    [
        (
            7,
            "7",
            "bad_record",
            "a question should be a Question, a dict or a tuple of question, answer and passages, not 7",
        ),
        ("Who?", "7", "bad_record", "a question should be"),
        (("Who?", "Anton"), "7", "bad_record", "a question should be"),
        (("Who?", "Anton", TEXTS[0]), "7", "bad_field", "passages should be a list of passages, not 'Zorilla"),
        (("Who?", "Anton", {"0": TEXTS[0]}), "7", "bad_field", "passages should be a list of passages, not {'0'"),
        (("Who?", "Anton", None), "7", "bad_field", "passages should be a list of passages, not None"),
        (("Who?", "Anton", [7]), "7", "bad_field", "passages[0] should be a text, a dict or a Passage, not 7"),
        ((7, "Anton", TEXTS), "7", "bad_field", "question: input should be a valid string"),
        ({}, "7", "missing_field", "the fields question, answer and passages are missing"),
        ({"id": "q"}, "q", "missing_field", "the fields question, answer and passages are missing; the record has id"),
        (
            {"user_input": "Who?", "response": "Anton"},
            "7",
            "missing_field",
            "the field retrieved_contexts is missing; the record has user_input and response",
        ),
        ({"id": 8}, "8", "missing_field", "the fields question, answer and passages are missing"),
        ({"id": ["q"]}, None, "missing_field", "the fields question, answer and passages are missing"),
    ],
    ids=str,
)
def test_what_is_no_question_says_why(given: object, name: str | None, code: str, message: str) -> None:
    entry = read(given)
    assert isinstance(entry.content, QuestionError)
    assert (entry.id, entry.content.code) == (name, code)
    assert str(entry.content).startswith(f"here: {message}")
    assert str(entry.content).endswith(".")


@pytest.mark.parametrize("field", ["id", "title"])
def test_a_field_of_a_passage_that_is_nested_deeply_is_its_error(field: str) -> None:
    """Its text would be made by recursion, and would be as long as it is deep."""
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    entry = read({"question": "Who?", "answer": "Anton", "passages": [{"text": TEXTS[0], field: deep}]})
    assert isinstance(entry.content, QuestionError)
    assert f"passages[0].{field}: input should be a valid string" in str(entry.content)


ASKED = "Which airport is near the head office?"
SAID = "Thalerhof is near it."
OFFICES = ["The head office is in Graz.", "Thalerhof airport lies south of Graz."]
ROW = {"user_input": ASKED, "response": SAID, "retrieved_contexts": OFFICES, "tag": "travel"}


def library(name: str) -> Any:
    """Return a library of the extra `rag`, or skip the test."""
    return pytest.importorskip(name, reason=f"{name} is missing: pip install 'rechain[rag]'", exc_type=ImportError)


def question_of(given: Any) -> Question:
    entry = as_entry("here", "7", given)
    assert isinstance(entry.content, Question), entry.content
    return entry.content


def check(question: Question, titles: list[str]) -> None:
    assert (question.id, question.question, question.answer) == ("7", ASKED, SAID)
    assert [passage.text for passage in question.passages] == OFFICES
    assert [passage.title for passage in question.passages] == titles


# ---- tables


def entries_of(table: Any) -> list[Entry]:
    return [as_entry("row", str(number), row) for number, row in enumerate(rows_of(table))]


def tables() -> list[tuple[str, Any]]:
    def pandas(rows: list[dict[str, Any]]) -> Any:
        return library("pandas").DataFrame(rows)

    def arrow(rows: list[dict[str, Any]]) -> Any:
        return library("pyarrow").Table.from_pylist(rows)

    def reader(rows: list[dict[str, Any]]) -> Any:
        return arrow(rows).to_reader(max_chunksize=1)

    def dataset(rows: list[dict[str, Any]]) -> Any:
        return library("datasets").Dataset.from_list(rows)

    def formatted(rows: list[dict[str, Any]]) -> Any:
        return dataset(rows).with_format("numpy")

    return [(make.__name__, make) for make in (pandas, arrow, reader, dataset, formatted)]


@pytest.mark.parametrize("make", [make for _, make in tables()], ids=[name for name, _ in tables()])
def test_rows_of_a_table_are_questions(make: Any) -> None:
    entries = entries_of(make([ROW | {"id": 3}, ROW | {"id": None, "tag": None}]))
    assert [entry.id for entry in entries] == ["3", "1"]
    first, second = (entry.content for entry in entries)
    assert isinstance(first, Question) and isinstance(second, Question)
    assert [passage.text for passage in first.passages] == OFFICES
    assert (first.answer, first.model_extra, second.model_extra) == (SAID, {"tag": "travel"}, {})


def test_what_pandas_has_for_nothing_was_not_given() -> None:
    pandas = library("pandas")
    table = pandas.DataFrame([ROW, ROW]).convert_dtypes()
    table["created_at"] = pandas.to_datetime(["2026-03-01", None])
    table.loc[1, "response"] = pandas.NA
    table["retrieved_contexts"] = [OFFICES, float("nan")]
    _, entry = entries_of(table)
    assert isinstance(entry.content, Question)
    assert (entry.content.answer, entry.content.passages, entry.content.model_extra) == ("", [], {"tag": "travel"})


@pytest.mark.parametrize("library_name", ["pandas", "pyarrow"])
def test_columns_of_the_same_name_are_a_mistake(library_name: str) -> None:
    table = library("pandas").DataFrame([["a", "b"]], columns=["answer", "answer"])
    if library_name == "pyarrow":
        columns = [["a"], ["b"]]
        table = library("pyarrow").Table.from_arrays(list(map(library("pyarrow").array, columns)), ["answer", "answer"])
    with pytest.raises(RechainError, match="two columns of the table have the name 'answer'"):
        list(rows_of(table))


def test_cells_of_pandas_that_came_from_parquet_are_arrays(tmp_path: Path) -> None:
    pandas = library("pandas")
    pandas.DataFrame([ROW]).to_parquet(tmp_path / "log.parquet")
    (entry,) = entries_of(pandas.read_parquet(tmp_path / "log.parquet"))
    assert isinstance(entry.content, Question)
    assert [passage.text for passage in entry.content.passages] == OFFICES
    (question,) = read_questions(tmp_path / "log.parquet")
    assert (question.id, question.passages) == ("1", entry.content.passages)


def test_dates_of_a_table_are_kept_as_text() -> None:
    pandas = library("pandas")
    (entry,) = entries_of(pandas.DataFrame([ROW | {"created_at": pandas.Timestamp("2026-03-01")}]))
    assert isinstance(entry.content, Question)
    assert (entry.content.model_extra or {})["created_at"] == "2026-03-01T00:00:00"


@pytest.mark.parametrize("given", ["questions.jsonl", {"question": "Who?"}, 7], ids=repr)
def test_what_does_not_hold_many_questions_is_a_mistake(given: Any) -> None:
    with pytest.raises(RechainError, match=r"recover_many takes many questions|the questions should be a list"):
        rows_of(given)


# ---- LangChain


def documents() -> list[Any]:
    document = library("langchain_core.documents").Document
    return [
        document(page_content=OFFICES[0], metadata={"source": "offices.md"}),
        document(page_content=OFFICES[1], metadata={"title": "Airports"}, id="d2"),
    ]


def test_documents_of_langchain_are_passages() -> None:
    question = as_question("here", "7", ASKED, SAID, documents())
    check(question, ["offices.md", "Airports"])
    assert [passage.id for passage in question.passages] == ["offices.md", "d2"]


@pytest.mark.parametrize("names", [("query", "result", "source_documents"), ("input", "answer", "context")])
def test_what_chains_of_langchain_return_is_a_question(names: tuple[str, str, str]) -> None:
    question = question_of(dict(zip(names, (ASKED, SAID, documents()), strict=True)))
    check(question, ["offices.md", "Airports"])
    assert (question.question, question.answer) == (ASKED, SAID)


def test_messages_of_langchain_are_an_answer_or_a_chat() -> None:
    messages = library("langchain_core.messages")
    answer = {"question": ASKED, "answer": messages.AIMessage(SAID), "context": documents()}
    check(question_of(answer), ["offices.md", "Airports"])
    tools = [messages.ToolMessage(text, tool_call_id="c") for text in OFFICES]
    chat = question_of({"messages": [messages.HumanMessage(ASKED), *tools, messages.AIMessage(SAID)]})
    check(chat, ["", ""])
    assert [passage.text for passage in chat.passages] == OFFICES


def test_documents_with_scores_are_passages() -> None:
    pairs = [(document, 0.5) for document in documents()]
    question = question_of({"query": ASKED, "result": SAID, "source_documents": pairs})
    check(question, ["offices.md", "Airports"])
    assert (question.passages[0].model_extra or {})["score"] == 0.5


# ---- Ragas, LlamaIndex, Haystack: seconds to import each


@pytest.mark.slow
def test_samples_and_datasets_of_ragas_are_questions(tmp_path: Path) -> None:
    schema = library("ragas.dataset_schema")
    sample = schema.SingleTurnSample(user_input=ASKED, retrieved_contexts=OFFICES, response=SAID, reference="Thalerhof")
    check(question_of(sample), ["", ""])
    without = schema.SingleTurnSample(user_input=ASKED, retrieved_contexts=OFFICES, reference=SAID)
    check(question_of(without), ["", ""])
    dataset = schema.EvaluationDataset(samples=[sample, without])
    assert [entry.id for entry in entries_of(dataset)] == ["0", "1"]
    dataset.to_jsonl(tmp_path / "log.jsonl")
    dataset.to_csv(tmp_path / "log.csv")
    assert [question.answer for question in read_questions(tmp_path / "log.jsonl")] == [SAID, SAID]
    # A table has a column for every field; a cell of the response without any is a response that was not given.
    assert [question.answer for question in read_questions(tmp_path / "log.csv")] == [SAID, ""]
    entries = entries_of(dataset.to_pandas())
    assert [entry.content.answer for entry in entries if isinstance(entry.content, Question)] == [SAID, ""]


@pytest.mark.slow
def test_samples_of_several_turns_of_ragas_are_chats() -> None:
    schema, messages = library("ragas.dataset_schema"), library("ragas.messages")
    call = messages.AIMessage(content="", tool_calls=[messages.ToolCall(name="search", args={})])
    turns = [messages.HumanMessage(content=ASKED), call]
    turns += [*(messages.ToolMessage(content=text) for text in OFFICES), messages.AIMessage(content=SAID)]
    question = question_of(schema.MultiTurnSample(user_input=turns))
    check(question, ["", ""])
    assert [passage.text for passage in question.passages] == OFFICES


@pytest.mark.slow
def test_nodes_and_responses_of_llamaindex_are_questions() -> None:
    schema, responses = library("llama_index.core.schema"), library("llama_index.core.base.response.schema")
    nodes = [
        schema.TextNode(text=OFFICES[0], id_="n1", metadata={"file_name": "offices.md"}, embedding=[0.5] * 9),
        schema.Node(text_resource=schema.MediaResource(text=OFFICES[1]), id_="n2", metadata={"title": "Airports"}),
    ]
    scored = [schema.NodeWithScore(node=node, score=0.5) for node in nodes]
    response = responses.Response(response=SAID, source_nodes=scored)
    given = [(ASKED, response), {"query": ASKED, "response": response}, (ASKED, SAID, scored), (ASKED, SAID, nodes)]
    written = {"query": ASKED, "response": SAID, "source_nodes": [node.to_dict() for node in scored]}
    for one in [*given, written]:
        question = question_of(one)
        check(question, ["offices.md", "Airports"])
        assert [passage.id for passage in question.passages] == ["n1", "n2"]
        assert "embedding" not in (question.passages[0].model_extra or {})
    check(as_question("here", "7", ASKED, response), ["offices.md", "Airports"])


@pytest.mark.slow
def test_documents_and_answers_of_haystack_are_questions() -> None:
    haystack = library("haystack")
    documents = [
        haystack.Document(content=OFFICES[0], meta={"source": "offices.md"}, id="h1"),
        haystack.Document(content=OFFICES[1], meta={"title": "Airports"}, id="h2"),
    ]
    answer = haystack.GeneratedAnswer(data=SAID, query=ASKED, documents=documents)
    result = {"answer_builder": {"answers": [answer]}}
    for given in (answer, answer.to_dict(), result, (ASKED, SAID, documents), (ASKED, answer)):
        question = question_of(given)
        check(question, ["offices.md", "Airports"])
        assert [passage.id for passage in question.passages] == ["h1", "h2"]


def test_no_tool_is_imported_to_read_its_objects() -> None:
    source = Path(importlib.import_module("rechain.formats.datasets").__file__ or "").parent
    code = "\n".join(file.read_text() for file in source.glob("*.py"))
    for name in ("ragas", "langchain", "langchain_core", "llama_index", "haystack", "pandas"):
        assert f"import {name}" not in code and f"from {name}" not in code


def test_passages_of_ours_stay_as_they_are() -> None:
    passage = Passage(id="p", title="T", text=OFFICES[0], score=3)
    assert question_of((ASKED, SAID, [passage, OFFICES[1]])).passages[0] == passage
