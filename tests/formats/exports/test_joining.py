"""Chains joined with questions: in step, selected, and refused where they do not belong together."""

from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from rechain.errors import InputError, QuestionError
from rechain.formats.datasets import Entry, read_entries
from rechain.formats.exports.joining import Joined, Selection, join, with_sentences
from rechain.schema import Claim, Passage, Question, Recovered


def question(name: str, text: str = "Some text.") -> Question:
    passages = [Passage(id="a", text=text), Passage(id="b", text=text)]
    return Question(id=name, question="What?", answer="text", passages=passages)


def entries(*names: str) -> list[Entry]:
    return [Entry(f"questions, line {number}", name, question(name)) for number, name in enumerate(names, 1)]


def located(*chains: Recovered) -> list[tuple[str, Recovered]]:
    return [(f"chains, line {number}", one) for number, one in enumerate(chains, 1)]


def joined(chains: Iterable[Recovered], asked: Iterable[Entry], selection: Selection | None = None) -> list[str]:
    told = join(located(*chains), ((entry, {}) for entry in asked), selection or Selection())
    return [one.question.id for one in told]


def test_every_chain_finds_its_question(recovered: Any) -> None:
    chains = [recovered(name, ["a", "b"]) for name in ("q1", "q2")]
    found = list(join(located(*chains), ((entry, {}) for entry in entries("q1", "q2")), Selection()))
    assert found == [Joined(question(name), one, {}) for name, one in zip(("q1", "q2"), chains, strict=True)]


def test_chains_may_be_of_some_questions_alone(recovered: Any) -> None:
    chains = [recovered(name, ["a", "b"]) for name in ("q2", "q4")]
    assert joined(chains, entries("q1", "q2", "q3", "q4", "q5")) == ["q2", "q4"]


def test_ids_that_stand_there_twice_are_told_apart_by_their_order(recovered: Any) -> None:
    asked = [Entry("", "q", question("q", "One text.")), Entry("", "q", question("q", "Two texts."))]
    told = join(located(recovered("q"), recovered("q", ["a", "b"])), ((entry, {}) for entry in asked), Selection())
    assert [one.question.passages[0].text for one in told] == ["Two texts."]


def test_both_are_streamed(recovered: Any) -> None:
    read = []

    def asked() -> Iterator[Entry]:
        for number in count():
            read.append(number)
            yield Entry("", str(number), question(str(number)))

    chains = (("", recovered(str(number), ["a", "b"])) for number in count(0, 2))
    assert len(list(islice(join(chains, ((entry, {}) for entry in asked()), Selection()), 5))) == 5
    assert len(read) == 9


@pytest.mark.parametrize("order", [("q2", "q1"), ("q1", "q9"), ("q1", "q1")], ids=" ".join)
def test_an_id_that_does_not_come_next_is_a_mistake(order: tuple[str, str], recovered: Any) -> None:
    with pytest.raises(InputError) as failure:
        joined([recovered(name, ["a", "b"]) for name in order], entries("q1", "q2"))
    assert str(failure.value) == (
        f"chains, line 2: the question '{order[1]}' does not come next among the questions, or not at all; "
        "give the questions from which the chains were recovered, and both in the same order."
    )


@pytest.mark.parametrize("chains", [(["a", "c"],), (["a", "b"], ["c", "b"])], ids=["best", "second"])
def test_a_passage_that_the_question_lacks_is_a_mistake(chains: tuple[list[str], ...], recovered: Any) -> None:
    with pytest.raises(InputError, match=r"^chains, line 1: a chain names the passage 'c', .*\(questions, line 1\)"):
        joined([recovered("q1", *chains)], entries("q1"))


@pytest.mark.parametrize("span", [(0, 11), (10, 12), (-1, 3), (4, 4)])
def test_a_place_that_the_passage_lacks_is_a_mistake(span: tuple[int, int], recovered: Any) -> None:
    link = {"entity": "x", "kind": "name", "weight": 1, "mentions": [None, span]}
    with pytest.raises(InputError, match=r"line 1: a link stands at .* of the passage 'b'.* its 10 characters"):
        joined([recovered("q1", ["a", "b"], links=[link])], entries("q1"))


def test_chains_of_a_question_that_cannot_be_read_are_a_mistake(recovered: Any) -> None:
    bad = Entry("questions, line 1", "q1", QuestionError("bad_json", "questions, line 1: not JSON."))
    with pytest.raises(
        InputError, match=r"^chains, line 1 has the chains of .* cannot be read: questions, line 1: not"
    ):
        joined([recovered("q1", ["a", "b"])], [bad])
    assert joined([recovered("q1"), recovered("q2", ["a", "b"])], [bad, *entries("q2")]) == ["q2"]


def test_chains_without_an_id_are_a_mistake_and_errors_without_one_are_left_out(recovered: Any) -> None:
    selection = Selection()
    assert joined([recovered(None), recovered("q1", ["a", "b"])], entries("q1"), selection) == ["q1"]
    assert selection.left_out == {"no_link": 1}
    with pytest.raises(InputError, match="line 1: the chains have no id"):
        joined([recovered(None, ["a", "b"])], entries("q1"))


def test_what_is_left_out_is_counted_by_its_reason(recovered: Any) -> None:
    selection = Selection(min_confidence=0.5)
    chains = [
        recovered("q1", ["a", "b"], confidence=0.5),
        recovered("q2", ["a", "b"], confidence=0.49),
        recovered("q3"),
        Recovered(id="q4", chains=[]),
    ]
    assert joined(chains, entries("q1", "q2", "q3", "q4"), selection) == ["q1"]
    assert selection.left_out == {"low_confidence": 1, "no_link": 1, "no_chain": 1}


def test_confidence_cannot_be_demanded_where_none_is_told(recovered: Any) -> None:
    with pytest.raises(InputError, match="chains, line 1: the model that recovered this chain tells no confidence"):
        joined([recovered("q1", ["a", "b"])], entries("q1"), Selection(min_confidence=0.0))


def test_a_question_that_a_format_refuses_is_left_out(bridge: Joined) -> None:
    def refuse(_: Joined) -> list[str]:
        raise QuestionError("refused", "no")

    selection = Selection()
    assert list(selection.rows([bridge], refuse)) == []
    assert list(selection.rows([bridge, bridge], lambda _: ["one", "two"])) == ["one", "two"] * 2
    assert (selection.exported, selection.left_out) == (2, {"refused": 1})


def test_passages_of_a_chain_have_the_spans_of_their_links(bridge: Joined) -> None:
    opera, composer = bridge.question.passages[:2]
    assert bridge.passages == [(opera, [(23, 41)]), (composer, [(0, 18)])]


def test_a_middle_passage_has_two_links_and_titles_count_none(recovered: Any, bridge_question: Question) -> None:
    links = [
        {"entity": "x", "kind": "name", "weight": 1, "mentions": [[0, 7], [0, 5]]},
        {"entity": "y", "kind": "name", "weight": 1, "mentions": [[31, 37], None]},
    ]
    chain = recovered("q1", ["opera", "composer", "city"], links=links)
    passages = Joined(bridge_question, chain, {}).passages
    assert [links for _, links in passages] == [[(0, 7)], [(0, 5), (31, 37)], []]


def test_sentences_stay_with_their_questions_among_bad_records(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    good = '{{"_id": "{0}", "question": "Q?", "answer": "A", "context": [["T", ["{0} is."]]]}}'
    bad = '{"_id": "bad", "question": "Q?", "answer": "A", "context": 7}'
    lines = [good.format("x"), "{", "7", bad, '{"question": "no id"}', good.format("y"), good.format("x")]
    path.write_text("\n".join(lines))
    pairs = [(entry.id, dict(sentences)) for entry, sentences in with_sentences(read_entries(path), path)]
    assert pairs == [("x", {"T": ["x is."]}), ("bad", {}), ("5", {}), ("y", {"T": ["y is."]}), ("x", {"T": ["x is."]})]


@pytest.mark.parametrize(
    ("held", "what"),
    [
        ({"passage": "a", "span": [0, 99]}, "the answer stands at 0 to 99 of the passage 'a'"),
        ({"passage": "gone", "span": None}, "names the passage 'gone'"),
    ],
)
def test_an_answer_that_stands_where_the_question_has_no_text_is_refused(
    recovered: Any, held: dict[str, Any], what: str
) -> None:
    in_chain = recovered("q1", ["a", "b"], answer={"match": "phrase", **held})
    claim = Claim.model_validate({"text": "x", "verdict": "supported", **held})
    for one in (in_chain, recovered("q1", ["a", "b"]).model_copy(update={"claims": [claim]})):
        with pytest.raises(InputError, match=what):
            joined([one], entries("q1"))
