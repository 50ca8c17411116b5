"""Which passages are found for a question and its answer."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets.questions import Entry
from rechain.index import FindSettings, Index, build_index, fill_questions, find_passages
from rechain.index.engine import Ask, Hit
from rechain.index.search import OWN, fill_entries, find_names
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question, Recovered
from rechain.text.words import Text

BORN = "Where was the composer of the Zorilla opera born?"


def question(text: str = BORN, answer: str = "Prague", **fields: object) -> Question:
    return Question.model_validate({"id": "q", "question": text, "answer": answer, "passages": [], **fields})


def ids(passages: Sequence[Passage]) -> list[str]:
    return [passage.id for passage in passages]


def test_a_chain_is_found_whose_end_shares_no_word_with_the_question(index: Index) -> None:
    (found,) = find_passages(index, [question()], FindSettings(2))
    assert set(ids(found)) == {"Zorilla", "Anton Quillfeather"}


def test_a_head_is_found_that_only_the_end_names(index: Index) -> None:
    # No word of the question stands in "Marellis", and "Brno" is held by two: the poet's entry names the opera.
    (found,) = find_passages(index, [question("For what stage work did the poet from Brno write?", "Marellis")])
    assert {"Ela Vontobel", "Brno", "Marellis"} <= set(ids(found))


@pytest.mark.parametrize(
    "answer",
    ["Prague", "He was born in Prague.", "prague", "The composer, Anton Quillfeather, was born in Prague, I think."],
)
def test_answers_may_be_whole_sentences(index: Index, answer: str) -> None:
    (found,) = find_passages(index, [question(answer=answer)], FindSettings(3))
    assert {"Zorilla", "Anton Quillfeather"} <= set(ids(found))


def test_an_alias_is_looked_for_too(index: Index) -> None:
    (found,) = find_passages(index, [question(answer="Praha", answer_aliases=["Prague"])], FindSettings(3))
    assert {"Zorilla", "Anton Quillfeather"} <= set(ids(found))


@pytest.mark.parametrize("answer", ["yes", "", "I do not know.", "!!!", "Ulaanbaatar"])
def test_without_an_end_passages_about_the_question_are_found(index: Index, answer: str) -> None:
    (found,) = find_passages(index, [question("Was Zorilla first given in Graz?", answer)], FindSettings(3))
    assert {"Zorilla", "Graz"} <= set(ids(found))


@pytest.mark.parametrize("text", ["?", "…", "the of and", "日本", "x" * 5000, "a " * 500])
def test_any_question_is_answered(index: Index, text: str) -> None:
    (found,) = find_passages(index, [question(text)])
    assert len(found) <= len(index)


def test_what_is_found_does_not_depend_on_the_questions_beside_it(index: Index) -> None:
    questions = [question(), question("Who wrote the words of Marellis?", "Ela Vontobel"), question(answer="yes")]
    together = find_passages(index, questions)
    assert together == [find_passages(index, [one])[0] for one in questions]


def test_own_passages_come_first_and_are_told_apart(index: Index) -> None:
    own = [
        Passage(id="p1", text="Quillfeather moved to Prague."),
        Passage(id="Zorilla", title="Zorilla", text="A mule."),
    ]
    (filled,) = fill_questions(index, [question(passages=own)])
    assert ids(filled.question.passages)[:2] == ["p1", f"Zorilla ({OWN} 1)"]
    assert filled.own == {"p1", f"Zorilla ({OWN} 1)"}
    assert "Zorilla" in ids(filled.question.passages)


def test_an_own_passage_that_is_in_the_index_is_the_index_s(index: Index, entries: list[Passage]) -> None:
    copy = entries[0].model_copy(update={"id": "context-0"})
    (filled,) = fill_questions(index, [question(passages=[copy])])
    assert filled.own == frozenset()
    assert ids(filled.question.passages).count("Zorilla") == 1
    assert "context-0" not in ids(filled.question.passages)


def test_a_question_that_names_its_passages_gets_no_others(index: Index) -> None:
    named = question(passages=[index["Prague"]], passage_ids=["Prague"])
    (filled,) = fill_questions(index, [named, question()][:1])
    assert ids(filled.question.passages) == ["Prague"]


def test_entries_that_are_filled_or_cannot_be_read_stay_as_they_are(index: Index) -> None:
    bad = Entry("line 1", None, QuestionError("bad_json", "not valid JSON"))
    good = Entry("line 2", "q", question())
    first = fill_entries(index, [bad, good])
    assert first[0] is bad
    assert first[1].own == frozenset()
    assert fill_entries(index, first)[1] is first[1]


def test_names_begin_and_end_with_a_capital() -> None:
    names = find_names(Text("He saw The Return of the King with Ann in 2003."))
    assert {"the return of the king", "ann", "2003", "king"} <= names
    assert not {"he saw", "of the", "saw"} & names


def test_settings_have_limits() -> None:
    with pytest.raises(RechainError, match="1 to 1,000 passages may be looked at for a question, not 0"):
        FindSettings(0)


def test_a_dataset_without_passages_is_mapped(index: Index) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"question": BORN, "answer": "Prague"}])
    (row,) = Recoverer("lexical", corpus=index).map(rows)
    assert row["collection"] == index.stamp
    assert row["chains"][0]["passages"] == ["Zorilla", "Anton Quillfeather"]


@pytest.mark.parametrize("asked", [(BORN, "Prague"), {"question": BORN, "answer": "Prague"}])
def test_python_takes_questions_without_passages(index: Index, asked: object) -> None:
    recoverer = Recoverer("lexical", corpus=index.folder)
    (recovered,) = recoverer.recover_many([asked])
    assert recovered[0].passages == ["Zorilla", "Anton Quillfeather"]
    assert recoverer.recover(BORN, "Prague") == recovered.model_copy(update={"id": "question"})


def test_a_copy_of_a_passage_that_was_not_found_is_the_index_s_too(index: Index, entries: list[Passage]) -> None:
    own = [entries[-1], Passage(id="Brno", title="Brno", text="A mule."), Passage(id="p", text="Another mule.")]
    (filled,) = fill_questions(index, [question(passages=own)], FindSettings(2))
    assert ids(filled.question.passages)[:3] == [f"Brno ({OWN} 1)", "p", "Weather"]
    assert filled.own == {f"Brno ({OWN} 1)", "p"}
    assert len(filled.question.passages) == 5


def test_own_passages_of_all_questions_are_looked_up_together(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    search = index.search

    def counted(asks: Sequence[Ask]) -> list[list[Hit]]:
        rounds.append(len(asks))
        return search(asks)

    monkeypatch.setattr(index, "search", counted)
    fill_questions(index, [question(passages=[Passage(id=str(n), text="A mule.")]) for n in range(9)])
    assert len(rounds) <= 5


def test_chains_of_documents_say_where_their_passages_come_from(tmp_path: Path) -> None:
    pytest.importorskip("lxml")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pier.html").write_text(
        "<title>Pier</title><h1 id=top>Pier</h1><p>Old.<h2 id=crane>Crane</h2><p>The Quillmouth crane was built by Tom "
        "Zorilla in 1871.</p>"
    )
    (docs / "people.txt").write_text("PEOPLE\n\nTom Zorilla was born in Ostrava.\n")
    build_index([docs], tmp_path / "index")
    recovered = Recoverer("lexical", corpus=tmp_path / "index").recover(
        "Where was the builder of the Quillmouth crane born?", "Ostrava"
    )
    (chain,) = recovered.chains
    places = {(one.file, one.anchor, one.line, one.heading) for one in chain.sources}
    assert places == {("pier.html", "top", None, "Pier"), ("people.txt", None, 3, "PEOPLE")}
    assert Recovered.model_validate_json(recovered.to_json()) == recovered


def test_each_source_that_a_question_names_is_searched(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    """The words of both claims are in many passages, of which only the source and the date tell the right ones."""
    papers = ("The Harbour Courier", "The Northern Ledger", "Island Wire")
    articles = [
        {
            "id": f"{paper} {day}",
            "text": f"The tower was sold {day} times.",
            "source": paper,
            "date": f"2023-10-{day:02}",
        }
        for paper in papers
        for day in range(1, 29)
    ]
    index = make_index([Passage.model_validate(article) for article in articles])
    asked = (
        "Did The Harbour Courier on October 5, 2023 report a sale, and did Island Wire report one on 7 October 2023?"
    )
    (found,) = find_passages(index, [question(asked, "Yes")])
    assert {"The Harbour Courier 5", "Island Wire 7"} <= set(ids(found))
    assert len(found) == 12


def test_parts_of_a_long_answer_are_found_side_by_side(make_index: Callable[[Sequence[Passage]], Index]) -> None:
    rows = [(f"chatter {n}", f"The client and the server wait, wait and wait {n}.") for n in range(30)]
    rows += [("a", "ServerAliveInterval is 300 seconds."), ("b", "TimeOut of Apache is 60 seconds.")]
    index = make_index([Passage(id=name, text=text) for name, text in rows])
    asked = question(
        "How long does the client wait, and how long the server?", "300 seconds by interval and 60 in Apache."
    )
    (found,) = find_passages(index, [asked])
    assert {"a", "b"} <= set(ids(found))
