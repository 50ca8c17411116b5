"""From a question to its chains."""

import json
import pickle
import shutil
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain import CandidateSettings, Recoverer
from rechain.errors import QuestionError, RechainError
from rechain.formats.datasets import read_entries
from rechain.schema import Chain, Link, Mention, Passage, Problem, Question, Recovered
from rechain.scoring import BASELINES
from rechain.scoring.interface import BatchModel, Model, Scores
from rechain.text.candidates import Candidates
from rechain.text.collection import PassageCollection

if TYPE_CHECKING:
    from rechain.reader.model import ChainReaderModel


class LastIsBest:
    """A model that ranks candidates against their order."""

    def score(self, candidates: Candidates) -> Sequence[dict[str, float]]:
        return [{"place": float(number), "half": 0.5} for number, _ in enumerate(candidates.chains)]


@pytest.mark.parametrize("model", BASELINES)
def test_every_baseline_recovers_a_chain_of_the_question(bridge_question: Question, model: str) -> None:
    recovered = Recoverer(model).recover(bridge_question)
    (chain,) = recovered.chains
    assert (recovered.id, recovered.error) == ("q1", None)
    assert chain.passages[-1] in ("composer", "city")
    assert len(chain.links) == 1
    assert chain.why is None
    assert chain.confidence is None


def test_the_default_model_finds_the_chain_that_the_question_means(bridge_question: Question) -> None:
    (chain,) = Recoverer().recover(bridge_question).chains
    assert chain.passages == ["opera", "composer"]
    assert [link.entity for link in chain.links] == ["Anton Quillfeather"]


def test_chains_come_best_first_as_many_as_asked_for(bridge_question: Question) -> None:
    for top in (1, 2, 3, 10):
        chains = Recoverer(LastIsBest(), top=top).recover(bridge_question).chains
        assert [chain.score for chain in chains] == [2.5, 1.5, 0.5][:top]
    assert chains[0].passages == ["composer", "city"]


def test_an_explanation_tells_what_adds_up_to_the_score(bridge_question: Question) -> None:
    (chain,) = Recoverer("lexical", explain=True).recover(bridge_question).chains
    assert chain.why
    assert sum(chain.why.values()) == pytest.approx(chain.score)


def test_a_question_without_a_chain_has_its_error(bridge_question: Question) -> None:
    for answer, code in (("Vienna", "no_tail"), ("", "no_answer"), ("I don't know.", "no_answer")):
        recovered = Recoverer().recover(bridge_question.model_copy(update={"answer": answer}))
        assert (recovered.id, recovered.chains) == ("q1", [])
        assert recovered.error
        assert recovered.error.code == code


@pytest.mark.parametrize(
    ("answer", "verdict", "code"),
    [
        ("In Vienna.", "unsupported", "too_few_passages"),
        ("Yes.", "unsupported", "too_few_passages"),
        ("I don't know.", "no_answer", "no_answer"),
        ("", "no_answer", "no_answer"),
    ],
)
def test_an_answer_without_any_passage_has_a_verdict(default: Recoverer, answer: str, verdict: str, code: str) -> None:
    recovered = default.recover("Where was Anton Quillfeather born?", answer, [])
    assert (recovered.verdict, recovered.error and recovered.error.code) == (verdict, code)
    assert [claim.verdict for claim in recovered.claims] == ["unsupported"] * (verdict == "unsupported")


def test_each_claim_names_the_sentence_that_holds_it(default: Recoverer) -> None:
    text = "Staff have thirty days of leave. It rains often. Requests go to Petra Novotna."
    question, answer = "How much leave is there, and who grants it?", "You get 30 days. Petra Novotna grants it."
    claims = default.recover(question, answer, [text, "It snows."]).claims
    spans = [claim.span for claim in claims if claim.span]
    assert [text[start:end] for start, end in spans] == [
        "Staff have thirty days of leave.",
        "Requests go to Petra Novotna.",
    ]


def test_where_no_chain_is_as_long_as_was_asked_for_nothing_is_said_of_the_answer(default_model: Any) -> None:
    recoverer = Recoverer(default_model, settings=CandidateSettings(hops=3))
    recovered = recoverer.recover("Where was Anton born?", "Prague", ["Anton was born in Prague."])
    assert (recovered.verdict, recovered.error and recovered.error.code) == (None, "too_few_passages")


def test_a_bare_yes_has_the_passages_of_what_is_compared() -> None:
    passages = [
        {"title": "Zorilla", "text": "Zorilla is an opera of 1869."},
        {"title": "Rain", "text": "It falls in autumn."},
        {"title": "Brimlad", "text": "Brimlad is an opera of 1901."},
    ]
    (chain,) = Recoverer().recover("Is Brimlad older than Zorilla?", "No.", passages).chains
    assert (chain.shape, chain.passages, chain.links) == ("parallel", ["Brimlad", "Zorilla"], [])


def test_one_passage_may_suffice() -> None:
    passages = ["A Basic account costs €3 a month.", "A Plus account costs €5.", "Cards are sent by post."]
    (chain,) = Recoverer().recover("What does a Basic account cost?", "€3", passages).chains
    assert (chain.shape, chain.passages, chain.links) == ("single", ["0"], [])


@pytest.mark.parametrize(
    "answer", ["The composer of Zorilla was born in **Prague**.", "It's Prague.", "I think Prague!"]
)
def test_an_answer_in_a_sentence_has_the_chain_of_the_short_one(answer: str) -> None:
    asked = "Where was the composer of Zorilla born?"
    short, long = (Recoverer().recover(asked, given, TEXTS).chains[0] for given in ("Prague", answer))
    assert (long.shape, long.passages, long.links) == (short.shape, short.passages, short.links)
    assert long.passages == ["0", "1"]


def test_a_dict_with_the_fields_of_a_question_will_do(bridge_question: Question) -> None:
    recoverer = Recoverer()
    assert recoverer.recover(bridge_question.model_dump()) == recoverer.recover(bridge_question)
    with pytest.raises(QuestionError, match=r"^question: the field answer is missing; the record has id, "):
        recoverer.recover(bridge_question.model_dump(exclude={"answer"}))


TEXTS = ["Zorilla is an opera by Anton Quillfeather.", "Anton Quillfeather was born in Prague.", "It rains."]


def test_plain_texts_will_do_as_passages() -> None:
    (chain,) = Recoverer().recover("Where was the composer of Zorilla born?", "Prague", TEXTS).chains
    assert chain.passages == ["0", "1"]


def test_dicts_and_passages_will_do_too() -> None:
    passages = [
        Passage(id="p", text=TEXTS[0]),
        {"title": "Anton Quillfeather", "text": TEXTS[1]},
        {"id": "r", "text": "."},
    ]
    (chain,) = Recoverer().recover("Where was the composer of Zorilla born?", "Prague", passages).chains
    assert chain.passages == ["p", "Anton Quillfeather"]


@pytest.mark.parametrize(
    ("answer", "passages", "code"),
    [(["Prague"], TEXTS, "bad_field"), ("Prague", [""], "empty_field"), ("Prague", [{"id": "p"}], "missing_field")],
)
def test_a_question_that_lacks_something_says_what(answer: Any, passages: list[Any], code: str) -> None:
    with pytest.raises(QuestionError) as caught:
        Recoverer().recover("Where?", answer, passages)
    assert caught.value.code == code


def test_passages_of_one_title_and_no_id_do_not_clash() -> None:
    passages = [{"title": "Zorilla", "text": TEXTS[0]}, {"title": "Zorilla", "text": TEXTS[1]}]
    two = CandidateSettings(hops=2)
    (chain,) = Recoverer(settings=two).recover("Where was the composer born?", "Prague", passages).chains
    assert len(set(chain.passages)) == 2


def test_an_unknown_model_is_an_error_that_names_the_known() -> None:
    with pytest.raises(RechainError, match="there is no model 'gpt'; the models are default, random, lexical, bm25"):
        Recoverer("gpt")


@pytest.mark.parametrize("model", BASELINES)
def test_a_question_has_the_same_chains_alone_and_among_others(bridge_question: Question, model: str) -> None:
    others = [
        bridge_question.model_copy(update={"id": f"other {n}", "answer": answer})
        for n, answer in enumerate(["Anton Quillfeather", "yes", "river"])
    ]
    recoverer = Recoverer(model, top=3)
    alone = Recoverer(model, top=3).recover(bridge_question)
    among = list(recoverer.recover_many([*others, bridge_question, *others]))
    assert among[3] == alone
    assert [recovered.id for recovered in among] == [
        "other 0",
        "other 1",
        "other 2",
        "q1",
        "other 0",
        "other 1",
        "other 2",
    ]


def test_a_model_without_batches_gets_many_questions_one_at_a_time(bridge_question: Question) -> None:
    taken = []

    def questions():
        for number in range(3):
            taken.append(number)
            yield bridge_question

    recovered = Recoverer("lexical").recover_many(questions())
    assert taken == []
    next(recovered)
    assert taken == [0]


# ---- models that score many questions together

Towns = Callable[..., list[Question]]
Fake = Callable[..., Any]


def numbered(questions: Sequence[Question], taken: list[str]) -> Iterator[Question]:
    """Yield questions and note which have been taken."""
    for question in questions:
        taken.append(question.id)
        yield question


def test_chains_carry_the_confidence_of_a_model_that_tells_one(bridge_question: Question, batch_fake: Fake) -> None:
    recovered = Recoverer(batch_fake(), top=3, explain=True).recover(bridge_question)
    assert [(chain.score, chain.confidence) for chain in recovered] == [(0.0, 0.8), (-1.0, 0.4), (-2.0, 0.2)]
    assert recovered[1].why == {"place": -1.0}


def test_questions_are_scored_in_batches_in_their_order(towns: Towns, batch_fake: Fake) -> None:
    model, questions = batch_fake(), towns(7)
    names = [question.id for question in questions]
    assert [recovered.id for recovered in Recoverer(model).recover_many(questions, batch_size=3)] == names
    assert model.batches == [names[:3], names[3:6], names[6:]]


def test_no_more_than_one_batch_is_read_ahead(towns: Towns, batch_fake: Fake) -> None:
    taken: list[str] = []
    recovered = Recoverer(batch_fake()).recover_many(numbered(towns(10), taken), batch_size=4)
    read = [len(taken), *(len(taken) for _ in recovered)]
    assert read == [0, 4, 4, 4, 4, 8, 8, 8, 8, 10, 10]


MIXED: list[Any] = [
    {"id": "no answer", "question": "Who?", "passages": []},
    ("Where was the composer of Zorilla born?", "Prague", TEXTS),
    ("Where?", "Vienna", TEXTS),
    ("Where?", "Prague", "one text"),
    {"id": "few", "question": "Who?", "answer": "Anton", "passages": [{"id": "p", "text": "Anton."}]},
    7,
    {"id": 7},
]
CODES = ["missing_field", None, "no_tail", "bad_field", "too_few_passages", "bad_record", "missing_field"]


def test_an_error_is_that_of_its_question_alone(towns: Towns, batch_fake: Fake) -> None:
    one, other = towns(2)
    for model in (batch_fake(), LastIsBest()):
        recovered = list(Recoverer(model).recover_many([one, *MIXED, other]))
        assert [r.error and r.error.code for r in recovered] == [None, *CODES, None]
        assert [r.id for r in recovered] == [one.id, "no answer", "2", "3", "4", "few", "6", "7", other.id]
        assert [recovered[0], recovered[-1]] == [Recoverer(model).recover(one), Recoverer(model).recover(other)]


def test_results_do_not_depend_on_the_size_of_batches(towns: Towns, batch_fake: Fake) -> None:
    questions = [*towns(4), *MIXED, *towns(3, first=4)]
    for model in (batch_fake(), batch_fake(refuses=["town-2", "town-4"]), LastIsBest()):
        recoverer = Recoverer(model, top=2)
        alone = list(recoverer.recover_many(questions, batch_size=1))
        assert len(alone) == len(questions)
        for size in (2, 3, 5, 100):
            assert list(recoverer.recover_many(questions, batch_size=size)) == alone


def test_a_question_that_the_model_refuses_does_not_disturb_its_neighbours(towns: Towns, batch_fake: Fake) -> None:
    first, refused, last = Recoverer(batch_fake(refuses=["town-1"])).recover_many(towns(3))
    assert first.chains and last.chains
    assert refused.error == Problem(code="refused", message="the model refuses town-1")


def test_a_model_is_not_asked_about_questions_without_a_chain(bridge_question: Question, batch_fake: Fake) -> None:
    model, hopeless = batch_fake(), bridge_question.model_copy(update={"answer": "yes"})
    list(Recoverer(model).recover_many([hopeless, hopeless, bridge_question, hopeless], batch_size=2))
    assert model.batches == [["q1"]]


def test_what_was_read_before_an_error_is_recovered_before_it_is_raised(towns: Towns, batch_fake: Fake) -> None:
    def questions() -> Iterator[Question]:
        yield from towns(3)
        raise RechainError("the file ends here.")

    recovered = Recoverer(batch_fake()).recover_many(questions(), batch_size=2)
    assert [next(recovered).id for _ in range(3)] == ["town-0", "town-1", "town-2"]
    with pytest.raises(RechainError, match="the file ends here"):
        next(recovered)


def test_a_dict_is_read_as_a_line_of_a_file_is(tmp_path: Path, bridge_question: Question, batch_fake: Fake) -> None:
    good = bridge_question.model_dump(mode="json")
    changes: list[dict[str, object]] = [{}, {"answer": [7]}, {"hops": 0}, {"passages": [{"id": "a"}]}, {"id": [7]}]
    records, path = [good | change for change in changes], tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    lines = list(Recoverer(batch_fake()).recover_many(read_entries(path)))
    dicts = list(Recoverer(batch_fake()).recover_many(records))
    assert dicts[0] == lines[0] == Recoverer(batch_fake()).recover(bridge_question)
    for number, (line, record) in enumerate(zip(lines, dicts, strict=True)):
        there, here = line.to_json(), record.to_json()
        assert here.replace(f"questions[{number}]: ", "") == there.replace(f"{path}, line {number + 1}: ", "")
        assert bool(record) == (number == 0)


def test_the_error_of_an_entry_names_its_place(tmp_path: Path, bridge_question: Question, batch_fake: Fake) -> None:
    path = tmp_path / "questions.jsonl"
    hopeless = bridge_question.model_copy(update={"answer": "yes"}).model_dump_json(exclude_none=True)
    path.write_text(f"{hopeless}\n7\n")
    messages = [r.error and r.error.message for r in Recoverer(batch_fake()).recover_many(read_entries(path))]
    assert [message and message.split(": ")[0] for message in messages] == [f"{path}, line 1", f"{path}, line 2"]


@pytest.mark.parametrize("confidence", [1.2, -0.1, float("nan")])
def test_a_confidence_that_is_no_probability_is_an_error(
    bridge_question: Question, batch_fake: Fake, confidence: float
) -> None:
    with pytest.raises(RechainError, match="no probability"):
        Recoverer(batch_fake(confidence)).recover(bridge_question)


class Short:
    """A model that says too little: of one question less than asked, or of one chain."""

    chooses_hops = False

    def __init__(self, questions: int, chains: int) -> None:
        self.questions, self.chains = questions, chains

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        return [Scores([{}] * self.chains, [0.5] * self.chains)] * self.questions

    def to(self, device: str) -> "Short":
        return self


@pytest.mark.parametrize(("questions", "chains"), [(0, 3), (1, 2), (2, 3)])
def test_a_model_that_does_not_score_every_chain_is_not_believed(
    bridge_question: Question, questions: int, chains: int
) -> None:
    assert len(Recoverer(Short(1, 3), top=9).recover(bridge_question)) == 3
    with pytest.raises(RechainError, match="did not score every candidate"):
        Recoverer(Short(questions, chains)).recover(bridge_question)


# ---- the least confidence


def test_chains_of_less_confidence_are_dropped(bridge_question: Question, batch_fake: Fake) -> None:
    for least, kept in ((None, 3), (0.0, 3), (0.2, 3), (0.3, 2), (0.4, 2), (0.8, 1)):
        assert len(Recoverer(batch_fake(), top=3, min_confidence=least).recover(bridge_question)) == kept


def test_without_the_best_chain_there_is_none(bridge_question: Question, batch_fake: Fake) -> None:
    recovered = Recoverer(batch_fake(0.42357), top=3, min_confidence=0.9).recover(bridge_question)
    assert recovered.chains == []
    message = "the best chain has confidence 0.4236, below the 0.9 demanded"
    assert recovered.error == Problem(code="low_confidence", message=message)


class Hesitant:
    """A model that prefers the first chain and is more confident of the last."""

    chooses_hops = False

    def score_many(self, batch: Sequence[Candidates]) -> Sequence[Scores]:
        return [Scores([{"s": 3.0}, {"s": 2.0}, {"s": 1.0}], [0.3, 0.6, 0.9]) for _ in batch]

    def to(self, device: str) -> "Hesitant":
        return self


def test_the_score_says_which_chain_is_the_best(bridge_question: Question) -> None:
    assert [chain.confidence for chain in Recoverer(Hesitant(), top=3).recover(bridge_question)] == [0.3, 0.6, 0.9]
    assert not Recoverer(Hesitant(), top=3, min_confidence=0.5).recover(bridge_question)


@pytest.mark.parametrize(("model", "name"), [("lexical", "'lexical'"), (LastIsBest(), "LastIsBest")])
def test_a_model_without_confidence_cannot_be_held_to_one(model: str | Model, name: str) -> None:
    with pytest.raises(RechainError, match=f"^the model {name} tells no confidence, so none can be demanded"):
        Recoverer(model, min_confidence=0.5)


# ---- devices and progress


def test_a_model_is_moved_to_the_device_first(towns: Towns, batch_fake: Fake) -> None:
    model: BatchModel = batch_fake()
    Recoverer(model).recover_many([])
    assert model.device == "nowhere"  # type: ignore[attr-defined]
    Recoverer(model).recover_many([], device="cpu")
    assert model.device == "cpu"  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", ["lexical", LastIsBest()])
def test_a_model_that_cannot_be_moved_says_so(model: str | Model) -> None:
    with pytest.raises(RechainError, match="cannot be moved to a device"):
        Recoverer(model).recover_many([], device="cpu")


def test_a_device_that_is_not_there_is_an_error(batch_fake: Fake) -> None:
    with pytest.raises(RechainError, match="there is no device 'abacus' here"):
        Recoverer(batch_fake()).recover_many([], device="abacus")


@pytest.mark.parametrize(("give", "shown"), [(list, r"100% 5 questions"), (iter, " 5 questions")])
def test_progress_is_shown_where_it_is_asked_for(
    towns: Towns, batch_fake: Fake, capsys: pytest.CaptureFixture[str], give: Callable[..., Any], shown: str
) -> None:
    recoverer = Recoverer(batch_fake())
    quiet = list(recoverer.recover_many(give(towns(5)), batch_size=2))
    assert capsys.readouterr() == ("", "")
    assert list(recoverer.recover_many(give(towns(5)), batch_size=2, show_progress=True)) == quiet
    assert shown in capsys.readouterr().err


# ---- records survive being written and read

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
filled = texts.filter(lambda text: any(not c.isspace() and c.isprintable() for c in text))
floats = st.floats(allow_nan=False, allow_infinity=False)
spans = st.tuples(st.integers(0, 100), st.integers(0, 100))


@st.composite
def passages(draw: st.DrawFn, number: int) -> Passage:
    text = draw(filled)
    starts = draw(st.lists(st.integers(0, len(text) - 1), max_size=3))
    mentions = [Mention(entity=draw(filled), start=s, end=draw(st.integers(s + 1, len(text)))) for s in starts]
    return Passage(id=f"{number}{draw(texts)}", title=draw(texts), text=text, mentions=mentions)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    hops = draw(st.one_of(st.none(), st.integers(2, 8)))
    types = st.lists(filled, min_size=(hops or 3) - 1, max_size=(hops or 3) - 1)
    return Question(
        id=draw(filled),
        question=draw(filled),
        answer=draw(filled),
        answer_aliases=draw(st.lists(filled, max_size=2)),
        question_entities=draw(st.lists(filled, max_size=2)),
        answer_entity=draw(st.one_of(st.none(), filled)),
        hops=hops,
        link_types=draw(st.one_of(st.none(), types)),
        passages=[draw(passages(number)) for number in range(draw(st.integers(0, 3)))],
        level=draw(st.one_of(st.none(), texts, st.integers(), st.lists(st.booleans()))),
    )


links = st.builds(
    Link,
    entity=texts,
    kind=st.sampled_from(["mention", "identifier", "title", "title part", "name", "word"]),
    weight=floats,
    mentions=st.tuples(st.one_of(st.none(), spans), st.one_of(st.none(), spans)),
)
chains = st.builds(
    Chain,
    passages=st.lists(texts, min_size=1, max_size=3),
    links=st.lists(links, max_size=2),
    score=floats,
    confidence=st.one_of(st.none(), st.floats(0, 1)),
    why=st.one_of(st.none(), st.dictionaries(texts, floats, max_size=2)),
)
problems = st.builds(Problem, code=texts, message=texts)
answers = st.builds(
    Recovered, id=st.one_of(st.none(), texts), chains=st.lists(chains, max_size=3), error=st.one_of(st.none(), problems)
)


@given(questions())
def test_a_question_written_and_read_is_the_same(question: Question) -> None:
    assert Question.model_validate_json(question.model_dump_json()) == question


@given(answers)
def test_recovered_chains_written_and_read_are_the_same(recovered: Recovered) -> None:
    line = recovered.to_json()
    assert "\n" not in line
    assert Recovered.model_validate_json(line) == recovered


def test_many_plain_texts_get_their_ids_one_look_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are not sought again and again among those that are taken."""
    looks = 0

    class Counted(set[str]):
        def __contains__(self, name: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__contains__(name)

    monkeypatch.setattr("rechain.formats.datasets.formats.set", Counted, raising=False)
    recovered = Recoverer("lexical").recover("Who?", "Nobody", [f"Some text, {number}." for number in range(10_000)])
    assert recovered.error and recovered.error.code == "no_tail"
    assert looks == 10_000


def test_ids_that_are_taken_are_not_given_again() -> None:
    passages = [{"title": "1", "text": "by Quorvath"}, {"title": "1", "text": "Quorvath of Ostrela"}, "Quorvath"]
    recovered = Recoverer(top=9).recover("Who?", "Ostrela", passages)
    assert {passage for chain in recovered.chains for passage in chain.passages} == {"1", "1.1", "2"}


# ---- the model that comes with the package


@pytest.fixture(scope="module")
def default(default_model: "ChainReaderModel") -> Recoverer:
    return Recoverer(default_model, top=3)


def test_the_default_model_tells_its_confidence_and_why(towns: Towns, default_model: "ChainReaderModel") -> None:
    recoverer = Recoverer(default_model, top=1000, explain=True)
    for recovered in recoverer.recover_many(towns(6)):
        assert 0 < sum(chain.confidence or 0 for chain in recovered) <= 1 + 1e-9
        assert [chain.score for chain in recovered] == sorted((chain.score for chain in recovered), reverse=True)
        for chain in recovered:
            assert chain.why
            steps = chain.why.pop("steps", [])
            assert sum(chain.why.values()) == chain.score
            assert [step["player"] for step in steps] in ([], ["ranker", "reasoner"])
            assert all(0 <= step["probability"] <= 1 for step in steps)
            assert all(step["link"] == chain.links[-1].entity for step in steps[1:])


def test_the_default_model_chooses_the_number_of_hops(default: Recoverer) -> None:
    texts = [
        "Zimbelot is an opera by Anton Quorvath.",
        "Anton Quorvath was married to Clara Brimlad.",
        "Clara Brimlad was born in the town of Vexlor.",
    ]
    passages = [
        {"title": title, "text": text}
        for title, text in zip(["Zimbelot", "Anton Quorvath", "Clara Brimlad"], texts, strict=True)
    ]
    found = default.recover("In which town was the wife of the composer of Zimbelot born?", "Vexlor", passages)
    assert found[0].passages == ["Zimbelot", "Anton Quorvath", "Clara Brimlad"]
    found = default.recover("In which town was the wife of Anton Quorvath born?", "Vexlor", passages)
    assert found[0].passages == ["Anton Quorvath", "Clara Brimlad"]


def test_a_saved_model_recovers_the_same(tmp_path: Path, towns: Towns, default: Recoverer) -> None:
    default.save_pretrained(tmp_path / "saved")
    loaded = Recoverer.from_pretrained(tmp_path / "saved", top=3)
    assert list(loaded.recover_many(towns(6))) == list(default.recover_many(towns(6)))


@pytest.mark.parametrize(("model", "name"), [("lexical", "'lexical'"), (LastIsBest(), "LastIsBest")])
def test_a_model_that_is_no_chain_reader_cannot_be_saved(model: str | Model, name: str, tmp_path: Path) -> None:
    recoverer = Recoverer(model)
    for give in (recoverer.save_pretrained, recoverer.push_to_hub):
        with pytest.raises(
            RechainError, match=f"^the model {name} is not a chain reader, which alone can be saved or shared so.$"
        ):
            give(str(tmp_path / "saved"))
    assert not (tmp_path / "saved").exists()


def test_a_name_that_is_nowhere_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, words in (("gpt", "there is no model 'gpt'"), ("no/where", "there is no folder 'no/where'")):
        with pytest.raises(RechainError) as caught:
            Recoverer.from_pretrained(name)
        assert str(caught.value).startswith(words)
        assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(RechainError) as caught:
        Recoverer.from_pretrained(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


# ---- what is large or strange


def chatter(number: int) -> str:
    return f"It has been said that {number} of them went on to the other side of the hill. " * 3


def large(size: int) -> list[dict[str, str]]:
    """Passages that all hold the answer and a common name; two of them are what the question means."""
    rows = [
        {"title": f"Place {number}", "text": f"{chatter(number)} Near Place {number} and Quorvath there is Ostrela."}
        for number in range(size - 2)
    ]
    rows.insert(size // 2, {"title": "Zimbelot", "text": "Zimbelot is an opera by Anton Brimlad."})
    return [*rows, {"title": "Anton Brimlad", "text": f"{chatter(3)} Anton Brimlad was born in Ostrela."}]


def test_a_thousand_passages_are_answered_in_bounded_memory(default: Recoverer) -> None:
    asked, passages = "Where was the composer of Zimbelot born?", large(1000)
    default.recover(asked, "Ostrela", large(10))
    tracemalloc.start()
    try:
        recovered = default.recover(asked, "Ostrela", passages)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert recovered[0].passages == ["Zimbelot", "Anton Brimlad"]
    assert memory < 200_000_000


@pytest.mark.parametrize(
    ("asked", "answer", "passages"),
    [
        (
            "佐里拉歌剧的作曲家出生在哪里?",
            "布拉格",
            ["佐里拉是安东·奎尔费瑟创作的歌剧。", "安东·奎尔费瑟出生于布拉格。", "秋天经常下雨。"],
        ),
        (
            "Πού γεννήθηκε ο συνθέτης της Ζορίλα;",
            "Πράγα",
            ["Η Ζορίλα είναι όπερα του Κουιλφέδερ.", "Ο Κουιλφέδερ γεννήθηκε στην Πράγα.", "Βρέχει συχνά."],
        ),
        (
            "أين ولد مؤلف أوبرا زوريلا؟",
            "براغ",
            ["زوريلا أوبرا من تأليف كويلفيذر.", "ولد كويلفيذر في براغ.", "تمطر كثيرا."],
        ),
    ],
)
def test_a_question_in_another_script_gets_its_chain(
    default: Recoverer, asked: str, answer: str, passages: list[str]
) -> None:
    recovered = default.recover(asked, answer, passages)
    assert recovered[0].passages == ["0", "1"]


@pytest.mark.parametrize("asked", ["佐里拉歌剧的作曲家出生在哪里?", "Πού γεννήθηκε ο συνθέτης της Ζορίλα;", "🎼❓"])
def test_of_a_question_without_a_word_of_the_passages_only_the_answer_tells(default: Recoverer, asked: str) -> None:
    passages = ["Zorilla is by Quillfeather.", "Quillfeather was born in Prague."]
    recovered = default.recover(asked, "Prague", passages)
    assert recovered[0].passages[-1] == "1"
    of_two = Recoverer(settings=CandidateSettings(hops=2)).recover(asked, "Prague", passages)
    assert of_two[0].passages == ["0", "1"]
    assert default.recover(asked, "🎹", ["🎼 by Quorvath", "Quorvath 🎹"])[0].passages[-1] == "1"


def test_a_question_of_two_thousand_words_is_answered(default: Recoverer, bridge_question: Question) -> None:
    asked = f"{bridge_question.question} {chatter(1) * 60}"
    assert len(asked.split()) > 2000
    recovered = default.recover(bridge_question.model_copy(update={"question": asked, "hops": None}))
    assert recovered[0].passages[:2] == ["opera", "composer"]


def test_passages_of_twenty_thousand_words_are_searched_to_their_end(default: Recoverer) -> None:
    padding = "It rained on that day. " * 4000
    passages = [
        {"title": "Zimbelot", "text": f"{padding} Zimbelot is an opera by Anton Quorvath."},
        {"title": "A life", "text": f"{padding} Anton Quorvath was born in Ostrela."},
        {"title": "Another", "text": f"{padding} Anton Quorvath liked Ostrela's weather."},
    ]
    recovered = default.recover("Where was the composer of Zimbelot born?", "Ostrela", passages)
    assert recovered[0].passages[-1] in ("A life", "Another")
    assert recovered[0].passages[0] == "Zimbelot"
    start, end = recovered[0].links[0].mentions[1] or (0, 0)
    assert start > len(padding) and passages[1]["text"][start:end] == "Anton Quorvath"


# ---- sent to other processes


def sent(recoverer: Recoverer) -> Recoverer:
    return pickle.loads(pickle.dumps(recoverer))


def test_a_recoverer_sent_elsewhere_recovers_the_same(towns: Towns) -> None:
    recoverer = Recoverer("lexical", settings=CandidateSettings(hops=3, min_weight=5), top=3, explain=True)
    again = list(sent(recoverer).recover_many(towns(6)))
    assert again == list(recoverer.recover_many(towns(6)))
    assert any(len(recovered) > 1 for recovered in again)
    assert {len(chain.passages) for recovered in again for chain in recovered} == {3}
    assert all(chain.why for recovered in again for chain in recovered)


def test_a_model_that_has_a_name_is_sent_by_it(tmp_path: Path, bridge_question: Question, default: Recoverer) -> None:
    by_name = Recoverer(min_confidence=0.5)
    assert len(pickle.dumps(by_name)) < 1000
    assert list(sent(by_name).recover(bridge_question)) == default.recover(bridge_question)[:1]
    default.save_pretrained(tmp_path / "model")
    by_path = Recoverer(tmp_path / "model")
    assert len(pickle.dumps(by_path)) < 1000
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(RechainError, match="model"):
        sent(by_path)


class Constant:
    """A model with something to remember."""

    def __init__(self, score: float) -> None:
        self._score = score

    def score(self, candidates: Candidates) -> Sequence[dict[str, float]]:
        return [{"constant": self._score}] * len(candidates.chains)


def test_a_model_that_is_an_object_is_sent_as_it_is(bridge_question: Question, batch_fake: Fake) -> None:
    assert sent(Recoverer(Constant(2.5))).recover(bridge_question)[0].score == 2.5
    confident = sent(Recoverer(batch_fake(0.625), min_confidence=0.5))
    assert confident.has_confidence
    assert confident.recover(bridge_question)[0].confidence == 0.625
    doubtful = sent(Recoverer(batch_fake(0.25), min_confidence=0.5)).recover(bridge_question)
    assert doubtful.error and doubtful.error.code == "low_confidence"


# ---- many questions in worker processes


@pytest.fixture(scope="module")
def mixed(towns: Towns) -> list[Any]:
    """Questions, dicts, tuples and what is none of these."""
    first, second, third, fourth, fifth, sixth, seventh = towns(7)
    texts = [passage.text for passage in third.passages]
    return [
        first,
        second.model_dump(exclude_none=True),
        (third.question, third.answer, texts),
        "no question",
        {"question": fourth.question, "answer": fourth.answer, "passages": [p.text for p in fourth.passages]},
        fifth.model_copy(update={"answer": "yes"}),
        {"id": "half", "question": sixth.question},
        (seventh.question, "", texts),
    ]


@pytest.fixture(scope="module")
def alone(mixed: list[Any]) -> list[Recovered]:
    """What this process makes of them."""
    return list(Recoverer("lexical").recover_many(mixed))


def test_what_is_not_a_question_has_its_place_among_them(alone: list[Recovered]) -> None:
    assert [recovered.id for recovered in alone] == ["town-0", "town-1", "2", "3", "4", "town-4", "half", "7"]
    assert [bool(recovered) for recovered in alone] == [True, True, True, False, True, False, False, False]
    assert alone[3].error and alone[3].error.message.startswith("questions[3]: ")


@pytest.mark.parametrize(("workers", "size"), [(1, 32), (2, 1), (2, 3)])
def test_worker_processes_make_the_same_in_the_same_order(
    mixed: list[Any], alone: list[Recovered], workers: int, size: int
) -> None:
    recoverer = Recoverer("lexical")
    assert list(recoverer.recover_many(iter(mixed), workers=workers, batch_size=size)) == alone


def test_worker_processes_take_the_entries_of_a_file(town_file: Path) -> None:
    town_file.write_text(town_file.read_text() + '{"id": "x"\n')
    recoverer = Recoverer("lexical", top=2)
    alone = list(recoverer.recover_many(read_entries(town_file)))
    assert list(recoverer.recover_many(read_entries(town_file), workers=2, batch_size=4)) == alone
    assert alone[-1].error and alone[-1].error.message.startswith(f"{town_file}, line 13: ")


def test_nothing_is_read_before_the_first_chain_is_wanted_and_little_ahead(towns: Towns) -> None:
    taken: list[str] = []
    recovering = Recoverer("lexical").recover_many(numbered(towns(40), taken), workers=2, batch_size=2)
    assert taken == []
    for number, _ in enumerate(recovering):
        assert number < len(taken) <= number + 2 * 2 * 2 + 2
    assert len(taken) == 40


@pytest.mark.parametrize("error", [RechainError("no more"), KeyError("passages")], ids=["ours", "another"])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_the_source_comes_after_all_that_was_read(towns: Towns, workers: int, error: Exception) -> None:
    def questions() -> Iterator[Question]:
        yield from towns(5)
        raise error

    recovering, seen = Recoverer("lexical").recover_many(questions(), workers=workers, batch_size=3), []
    with pytest.raises(type(error)) as raised:
        seen.extend(recovered.id for recovered in recovering)
    assert raised.value is error
    assert seen == [f"town-{number}" for number in range(5)]


# ---- arguments


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ([None], {}, "a model should be a name, a folder or something that scores candidates, not None."),
        ([3], {}, "a model should be a name, a folder or something that scores candidates, not 3."),
        ([""], {}, "there is no model ''; the models are default, random, lexical, bm25"),
        (["lexical"], {"top": "a"}, "top should be a whole number, 1 or more, not 'a'."),
        (["lexical"], {"top": 1.5}, "top should be a whole number, 1 or more, not 1.5."),
        (["lexical"], {"min_confidence": "a"}, "min_confidence should be a number between 0 and 1, not 'a'."),
        (["lexical"], {"min_confidence": 1.1}, "min_confidence should be a number between 0 and 1, not 1.1."),
        (["lexical"], {"min_confidence": float("nan")}, "min_confidence should be a number between 0 and 1, not nan."),
    ],
)
def test_a_mistaken_argument_is_one_sentence(arguments: list[Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(RechainError) as failure:
        Recoverer(*arguments, **options)
    assert str(failure.value).startswith(words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"questions": None}, "the questions should be a list, or anything that yields them, not None."),
        *(
            ({"batch_size": size}, f"batch_size should be a whole number, 1 or more, not {size!r}.")
            for size in (0, "a")
        ),
        *(({"workers": n}, f"workers should be a whole number, 0 or more, not {n!r}.") for n in (-1, 1.5, "2", None)),
    ],
)
def test_mistaken_arguments_for_many_questions_are_one_sentence(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RechainError) as failure:
        Recoverer("lexical").recover_many(**({"questions": []} | arguments))
    assert str(failure.value) == message


@pytest.mark.parametrize("model", ["lexical", "default"])
def test_every_record_has_the_stamp_of_the_collection(bridge_question: Question, model: str) -> None:
    collection = PassageCollection({passage.id: passage for passage in bridge_question.passages})
    unanswered = bridge_question.model_copy(update={"answer": "Nobody at all"})
    recoverer = pickle.loads(pickle.dumps(Recoverer(model, corpus=collection)))
    found, none = recoverer.recover_many([bridge_question, unanswered])
    assert found.chains
    assert none.error
    assert found.collection == none.collection == collection.stamp
    assert json.loads(found.to_json())["collection"] == collection.stamp


def test_without_a_collection_a_record_does_not_speak_of_one(bridge_question: Question) -> None:
    recovered = Recoverer("lexical").recover(bridge_question)
    assert recovered.collection is None
    assert "collection" not in recovered.to_dict()


@pytest.mark.parametrize("corpus", [{"p": Passage(id="p", text="Prague lies on a river.")}, 7, [], object()])
def test_what_is_no_collection_is_refused(corpus: Any) -> None:
    kind = type(corpus).__name__
    with pytest.raises(RechainError, match=rf"^a corpus should be .* or a PassageCollection, not {kind}\.$"):
        Recoverer("lexical", corpus=corpus)


@pytest.mark.parametrize("found", [0, 5000, -1, 2.5, "many"])
def test_a_number_of_passages_that_cannot_be_found_is_refused_at_once(found: Any) -> None:
    with pytest.raises(RechainError, match=r"^1 to 1,000 passages may be looked at for a question, not "):
        Recoverer("lexical", found=found)


def test_another_process_has_the_same_index_or_says_that_it_is_another(tmp_path: Path) -> None:
    from rechain.index import BuildSettings, build_index

    source = tmp_path / "passages.jsonl"
    source.write_text('{"id": "a", "text": "Prague lies on a river."}\n')
    build_index([source], tmp_path / "index", BuildSettings(workers=0))
    sent = pickle.dumps(Recoverer("lexical", corpus=str(tmp_path / "index")))
    assert pickle.loads(sent).collection.passages == 1
    source.write_text('{"id": "a", "text": "Brno lies on a river."}\n')
    build_index([source], tmp_path / "index", BuildSettings(workers=0))
    with pytest.raises(RechainError, match="was built again while it was read"):
        pickle.loads(sent)


def test_questions_that_are_recovered_jointly_inform_each_other(drugs: Callable[[int, int], list[Question]]) -> None:
    asked, recoverer = drugs(3, 7), Recoverer("lexical", top=2)
    alone = [recovered[0].passages[-1] for recovered in recoverer.recover_many(asked)]
    jointly = list(recoverer.recover_jointly(iter(asked)))
    assert alone == ["bad-Z"] * 3 + ["good"] * 7
    assert [recovered[0].passages[-1] for recovered in jointly] == ["good"] * 10
    assert [recovered.id for recovered in jointly] == [question.id for question in asked]
    assert len(jointly[0]) == 2
    assert list(recoverer.recover_jointly(asked, workers=2, batch_size=3)) == jointly


def test_joint_recovery_keeps_errors_and_other_questions_as_they_are(
    drugs: Callable[[int, int], list[Question]], bridge_question: Question
) -> None:
    recoverer = Recoverer("lexical")
    asked = [bridge_question, {"id": "broken"}, *drugs(1, 2)]
    jointly, alone = list(recoverer.recover_jointly(asked)), list(recoverer.recover_many(asked))
    assert jointly[:2] == alone[:2]
    assert list(recoverer.recover_jointly([])) == []
