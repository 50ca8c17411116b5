"""Chains as HotpotQA's predictions: which sentences, and under which numbers."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import InputError
from rechain.formats.datasets import read_entries
from rechain.formats.datasets.formats import join_sentences
from rechain.formats.exports.joining import Joined, Selection, join, with_sentences
from rechain.formats.exports.predictions import Evidence, facts, numbered, prediction, row, supporting
from rechain.recoverer import Recoverer
from rechain.schema import Passage, Question, Recovered

HEAD = ["Zorilla is an opera.", "  ", " It is by Anton Quillfeather. ", "It is long."]
TAIL = ["", "Anton Quillfeather composed.", "He was born in Prague.", "He left Prague soon."]


def make(recovered: Any, mentions: list[Any], head: list[str] = HEAD, tail: list[str] = TAIL, **fields: Any) -> Joined:
    """Return a question of two passages, of which the sentences are given, with its chain."""
    sentences = {"Zorilla": head, "Anton Quillfeather": tail}
    passages = [Passage(id=name, title=name, text=join_sentences(parts)) for name, parts in sentences.items()]
    question = Question(id="q1", question="Where?", answer="Prague", passages=passages, **fields)
    link = {"entity": "Anton Quillfeather", "kind": "title", "weight": 9.5, "mentions": mentions}
    return Joined(question, recovered("q1", list(sentences), links=[link]), sentences)


def test_the_sentences_of_links_and_the_answer_are_supporting_facts(recovered: Any) -> None:
    joined = make(recovered, [[30, 48], None])
    assert joined.question.passages[0].text[30:48] == "Anton Quillfeather"
    assert facts(joined) == [("Zorilla", 2), ("Anton Quillfeather", 2)]
    assert row(joined) == [("q1", "Prague", facts(joined))]


def test_the_answer_and_a_link_may_stand_in_two_sentences(recovered: Any) -> None:
    assert facts(make(recovered, [[30, 48], [0, 18]])) == [
        ("Zorilla", 2),
        ("Anton Quillfeather", 1),
        ("Anton Quillfeather", 2),
    ]


def test_where_nothing_stands_the_first_sentence_that_is_not_blank_is_taken(recovered: Any) -> None:
    joined = make(recovered, [None, None], head=["", *HEAD], tail=["", " ", "He composed."])
    assert facts(joined) == [("Zorilla", 1), ("Anton Quillfeather", 2)]


def test_the_answer_of_another_passage_than_the_last_does_not_count(recovered: Any) -> None:
    joined = make(recovered, [None, None], head=["It is old.", "It was first heard in Prague."])
    assert facts(joined)[0] == ("Zorilla", 0)


def test_an_answer_that_reaches_over_two_sentences_counts_both_or_the_first(recovered: Any) -> None:
    tail = ["He was born.", "He lived in St.", "Louis then.", "In St. Louis he died."]
    joined = make(recovered, [None, None], tail=tail)
    joined = joined._replace(question=joined.question.model_copy(update={"answer": "St Louis"}))
    assert facts(joined, rule=lambda evidence: evidence.answering)[-3:] == [
        ("Anton Quillfeather", number) for number in (1, 2, 3)
    ]
    assert facts(joined)[-1] == ("Anton Quillfeather", 1)


def test_the_answers_entity_is_found_by_its_mentions(recovered: Any) -> None:
    joined = make(recovered, [None, None], answer_entity="city:1")
    tail = joined.question.passages[1]
    start = tail.text.rindex("Prague")
    marked = tail.model_validate(
        tail.model_dump() | {"mentions": [{"entity": "city:1", "start": start, "end": start + 6}]}
    )
    question = joined.question.model_copy(update={"passages": [joined.question.passages[0], marked]})
    assert facts(joined._replace(question=question))[-1] == ("Anton Quillfeather", 3)


def test_without_sentences_in_the_file_they_end_at_full_stops(bridge: Joined) -> None:
    assert facts(bridge) == [("Zorilla", 0), ("Anton Quillfeather", 0)]
    text = "Zorilla is old. It is an opera by Anton Quillfeather."
    passages = [bridge.question.passages[0].model_copy(update={"title": "", "text": text})]
    question = bridge.question.model_copy(update={"passages": passages + bridge.question.passages[1:]})
    link = bridge.best.links[0].model_copy(update={"mentions": ((34, 52), None)})
    chain = bridge.best.model_copy(update={"links": [link]})
    told = bridge.recovered.model_copy(update={"chains": [chain]})
    assert facts(Joined(question, told, {})) == [("opera", 1), ("Anton Quillfeather", 0)]


@pytest.mark.parametrize(
    ("evidence", "chosen"),
    [
        (Evidence([0, 1, 2], [1], []), [1]),
        (Evidence([0, 1, 2], [], [1, 2]), [1]),
        (Evidence([1, 2, 3], [3], [1, 2]), [3, 1]),
        (Evidence([2, 3], [], []), [2]),
    ],
)
def test_the_rule(evidence: Evidence, chosen: list[int]) -> None:
    assert list(supporting(evidence)) == chosen


def test_all_predictions_are_one_object() -> None:
    rows: list[Any] = [("q1", "Prague", [("A", 0)]), ("q2", "Rome", [("B", 1), ("C", 0)])]
    assert prediction(rows) == {
        "answer": {"q1": "Prague", "q2": "Rome"},
        "sp": {"q1": [("A", 0)], "q2": [("B", 1), ("C", 0)]},
    }
    with pytest.raises(InputError, match="two questions have the id 'q1'"):
        prediction([rows[0], rows[0]])


SENTENCES = st.lists(st.text(alphabet="ab. \t\u00a0\u2028é", max_size=8), max_size=6)


@given(SENTENCES)
def test_a_numbered_sentence_is_the_one_of_that_number(sentences: list[str]) -> None:
    text = join_sentences(sentences)
    found = list(numbered(sentences))
    assert [number for number, _ in found] == [n for n, sentence in enumerate(sentences) if sentence.strip()]
    assert all(text[start:end] == sentences[number].strip() for number, (start, end) in found)


@given(SENTENCES.filter(join_sentences), st.data())
def test_the_sentences_taken_hold_the_link(sentences: list[str], data: st.DataObject) -> None:
    text = join_sentences(sentences)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    passages = [Passage(id="a", text=text), Passage(id="b", text="Prague")]
    question = Question(id="q", question="Where?", answer="Prague", passages=passages)
    link = {"entity": "x", "kind": "name", "weight": 1, "mentions": [[start, end], None]}
    chain = {"passages": ["a", "b"], "links": [link], "score": 0}
    joined = Joined(question, Recovered.model_validate({"id": "q", "chains": [chain]}), {"a": sentences})
    numbers = [number for name, number in facts(joined) if name == "a"]
    spans = dict(numbered(sentences))
    held = {place for number in numbers for place in range(*spans[number])}
    blanks = {place for place in range(start, end) if all(place not in range(*span) for span in spans.values())}
    assert held >= set(range(start, end)) - blanks
    assert all(spans[number][0] < end and start < spans[number][1] for number in numbers) or numbers == [min(spans)]


@pytest.mark.parametrize("file", ["hotpotqa/train_300.json.gz", "2wiki/train_500.json.gz"])
def test_sentences_of_real_files_hold_the_links(real_data: Path, file: str) -> None:
    path = real_data / file
    chains = (("", one) for one in Recoverer("lexical").recover_many(read_entries(path)))
    linked = 0
    for joined in join(chains, with_sentences(read_entries(path), path), Selection()):
        found = facts(joined)
        for passage, links in joined.passages:
            raw = joined.sentences[passage.id]
            numbers = [number for title, number in found if title == passage.title]
            assert all(raw[number].strip() for number in numbers)
            for start, end in links:
                linked += any(passage.text[start:end] in raw[number].strip() for number in numbers)
                together = " ".join(raw[number].strip() for number in numbers)
                assert passage.text[start:end] in together
    assert linked > 100


def test_passages_side_by_side_are_looked_at_for_the_answer_alike(recovered: Any) -> None:
    joined = make(recovered, [None, None], head=["It is old.", "It was first heard in Prague."])
    side_by_side = joined.recovered[0].model_copy(update={"shape": "parallel", "links": []})
    joined = joined._replace(recovered=Recovered(id="q1", chains=[side_by_side]))
    assert facts(joined) == [("Zorilla", 1), ("Anton Quillfeather", 2)]


def test_of_a_graph_the_end_of_each_line_is_looked_at_for_the_answer(recovered: Any) -> None:
    joined = make(recovered, [None, None], head=["It is old.", "It was first heard in Prague."])
    chain, more = joined.recovered[0], [("c", "It is. By C. In Prague."), ("d", "It is. D: by C. In Prague.")]
    extra = [Passage(id=name, title=name, text=text) for name, text in more]
    link = chain.links[0]
    links = [link.model_copy(update={"mentions": (None, None), "between": ends}) for ends in ((0, 1), (2, 3))]
    links[1] = links[1].model_copy(update={"mentions": ((10, 11), (13, 14))})
    graph = chain.model_copy(update={"shape": "graph", "passages": [*chain.passages, "c", "d"], "links": links})
    question = joined.question.model_copy(update={"passages": [*joined.question.passages, *extra]})
    joined = joined._replace(question=question, recovered=Recovered(id="q1", chains=[graph]))
    found = facts(joined)
    assert found[:2] == [("Zorilla", 0), ("Anton Quillfeather", 2)]  # the end of the first line holds the answer
    assert found[2:] == [("c", 1), ("d", 1), ("d", 2)]  # the link; the link and the answer


def test_an_answer_that_no_text_holds_word_for_word_counts_where_the_record_says(recovered: Any) -> None:
    joined = make(recovered, [None, None])
    joined = joined._replace(question=joined.question.model_copy(update={"answer": "He left the town."}))
    start = joined.question.passages[1].text.index("He left")
    held = {"match": "words", "passage": "Anton Quillfeather", "span": [start, start + 20]}
    made = recovered("q1", joined.recovered[0].passages, answer=held)
    assert facts(joined._replace(recovered=made))[-1] == ("Anton Quillfeather", 3)
