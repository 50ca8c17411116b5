"""Prepared questions: batches give back what was prepared."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rechain.errors import InputError
from rechain.paper.data import Batch, Prepared
from rechain.paper.lexicon import Lexicon
from rechain.paper.prepare import prepare
from rechain.paper.settings import GameSettings
from rechain.schema import Mention, Passage, Question
from rechain.scoring.interface import Lexical
from rechain.system.tensors import load_arrays, save_arrays
from rechain.text.candidates import Candidates
from rechain.text.words import Text, phrase


@pytest.fixture(params=[[0, 1, 2], [2, 0], [1]], ids=str)
def order(request: pytest.FixtureRequest) -> list[int]:
    return list(request.param)


@pytest.fixture
def batch(prepared: Prepared, order: list[int]) -> Batch:
    return prepared.batch(np.array(order))


def words_of(passage: Passage) -> list[str]:
    return [*Text(passage.title).words, *Text(passage.text).words]


def test_words_and_titles_come_back_and_what_is_missing_is_padding(
    batch: Batch, order: list[int], questions: list[Question], lexicon: Lexicon
) -> None:
    for row, number in enumerate(order):
        asked = lexicon.numbers(Text(questions[number].question).words)
        assert batch.question[row].tolist() == asked + [0] * (batch.question.shape[1] - len(asked))
        assert int(batch.question_lengths[row]) == len(asked)
        for place in range(batch.passages.shape[1]):
            passages = questions[number].passages
            words = lexicon.numbers(words_of(passages[place])) if place < len(passages) else []
            title = len(Text(passages[place].title).words) if place < len(passages) else 0
            assert batch.passages[row, place].tolist() == words + [0] * (batch.passages.shape[2] - len(words))
            assert int(batch.passage_lengths[row, place]) == len(words)
            assert int(batch.title_lengths[row, place]) == title
    assert batch.passages.shape[1] == max(len(questions[number].passages) for number in order)


def test_what_is_known_of_words_comes_back(prepared: Prepared, lexicon: Lexicon) -> None:
    arrays = lexicon.arrays()
    number = lexicon.numbers(["quorvath"])[0]
    assert int(prepared.words.vector_row[number]) == arrays["vector_row"][number] == 1
    assert torch.equal(prepared.words.ngrams, torch.from_numpy(arrays["ngrams"]))
    assert torch.equal(prepared.words.rarity, torch.from_numpy(arrays["rarity"]))


def test_chains_come_back_with_their_weights(batch: Batch, order: list[int], found: list[Candidates]) -> None:
    for row, number in enumerate(order):
        wanted = found[number].chains
        is_chain = batch.is_chain[row]
        assert int(is_chain.sum()) == len(wanted)
        assert batch.chains[row][is_chain].tolist() == [list(chain.passages) for chain in wanted]
        assert batch.chains[row][~is_chain].eq(-1).all()
        assert batch.chain_links[row].eq(-1).all()
        lexical = [sum(score.values()) for score in Lexical().score(found[number])]
        assert batch.lexical[row][is_chain].tolist() == pytest.approx(lexical, rel=1e-5)


def mentioned(batch: Batch, row: int, place: int) -> dict[int, list[int]]:
    """The first words of each entity's mentions."""
    found: dict[int, list[int]] = {}
    for entity, token in zip(batch.mention_entity[row, place], batch.mention_token[row, place], strict=True):
        if entity >= 0:
            found.setdefault(int(entity), []).append(int(token))
    return found


def names_of(candidates: Candidates) -> list[str]:
    """The entities of a question by number."""
    graph = candidates.all_links()
    places = range(len(candidates.views))
    known = {id(e): e for n in places for e in graph.entities(n) if e.name not in candidates.ends}
    return [entity.name for entity in sorted(known.values(), key=lambda entity: -entity.weight)]


def test_mentions_stand_where_the_words_of_the_entity_do(
    batch: Batch, order: list[int], questions: list[Question], found: list[Candidates]
) -> None:
    for row, number in enumerate(order):
        names = names_of(found[number])
        for place, passage in enumerate(questions[number].passages):
            words, title = [phrase(word).strip() for word in words_of(passage)], len(Text(passage.title).words)
            for entity, tokens in mentioned(batch, row, place).items():
                name = phrase(names[entity]).split()
                at = range(len(words) - len(name) + 1)
                expected = [n for n in at if words[n : n + len(name)] == name and not n < title < n + len(name)]
                assert sorted(tokens) == expected != []


def test_holders_are_the_passages_with_a_mention_also_beyond_the_eighth(batch: Batch, order: list[int]) -> None:
    for row in range(len(order)):
        for place in range(batch.passages.shape[1]):
            held = batch.contains[row, :, place].nonzero()[:, 0].tolist()
            assert held == sorted(mentioned(batch, row, place))
    assert batch.contains.shape[2] == batch.passages.shape[1]
    if 0 in order:
        assert batch.contains[order.index(0), :, 8:].any(0).tolist() == [True, True]


def test_every_entity_may_be_the_one_link_of_two_passages(
    batch: Batch, found: list[Candidates], order: list[int]
) -> None:
    for row, number in enumerate(order):
        entities = len(names_of(found[number]))
        assert batch.may_link[row].tolist() == [[n < entities] for n in range(batch.contains.shape[1])]


# ---- entities that the data names, three hops, marks


def given_question(name: str, passages: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> Question:
    """A passage is its text and (entity, offset) of mentions of two letters."""
    rows = [
        Passage(id=str(n), text=text, mentions=[Mention(entity=e, start=at, end=at + 2) for e, at in mentions])
        for n, (text, mentions) in enumerate(passages)
    ]
    ends = {"answer_entity": "drug:Z", "question_entities": ["drug:A"]}
    types = ["gene", "gene"]
    return Question(id=name, question="A?", answer="Zz", hops=3, link_types=types, passages=rows, **ends)


GIVEN = given_question(
    "given",
    [
        ("Aa meets Xx and Xx", [("drug:A", 0), ("gene:X", 9), ("gene:X", 16)]),
        ("Xx near Yy", [("gene:X", 0), ("gene:Y", 8)]),
        ("Yy with Zz", [("gene:Y", 0), ("drug:Z", 8)]),
        ("nothing here", []),
    ],
)


def given_batch(**settings: str) -> Batch:
    return Prepared(prepare([GIVEN], Lexicon({})).arrays(), GameSettings(**settings)).batch(np.array([0]))


def test_entities_that_the_data_names_come_back_in_chains_and_mentions() -> None:
    batch = given_batch()
    assert batch.chains.tolist() == [[[0, 1, 2]]]
    x, y = batch.chain_links[0, 0].tolist()
    assert sorted([x, y]) == [0, 1]
    assert [mentioned(batch, 0, place) for place in range(4)] == [{x: [2, 4]}, {x: [0], y: [2]}, {y: [0]}, {}]
    assert batch.contains[0, [x, y]].int().tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]
    assert batch.may_link[0].tolist() == [[True, True], [True, True]]


def test_the_questions_entities_are_marked_and_the_answers_for_steps_alone() -> None:
    asked, answer, beside_asked, beside_answer = given_batch(selects="steps").marks[0].unbind(-1)
    assert asked.nonzero().tolist() == [[0, 0]]
    assert answer.nonzero().tolist() == [[2, 2]]
    assert beside_asked.nonzero()[:, 0].unique().tolist() == [0]
    assert beside_answer.nonzero()[:, 0].unique().tolist() == [2]
    hidden = given_batch().marks[0]
    assert hidden[..., [1, 3]].eq(0).all()
    assert torch.equal(hidden[..., 0], asked)


def test_all_words_of_a_sentence_with_the_questions_entity_are_marked_as_beside_it() -> None:
    text = "Nothing here. Zed binds Xap. Nor here."
    first = Passage(id="1", text=text, mentions=[_mention("d:z", text, "Zed"), _mention("g:x", text, "Xap")])
    second = Passage(id="2", text="Xap Y", mentions=[_mention("g:x", "Xap Y", "Xap"), _mention("d:y", "Xap Y", "Y")])
    third = Passage(id="3", text="Y W", mentions=[_mention("d:y", "Y W", "Y"), _mention("g:w", "Y W", "W")])
    question = Question(
        id="q", question="Zed?", answer="W", question_entities=["d:z"], answer_entity="g:w", hops=3,
        passages=[first, second, third],
    )  # fmt: skip
    batch = Prepared(prepare([question], Lexicon({})).arrays(), GameSettings()).batch(np.array([0]))
    assert batch.marks[0, 0, :, 2].tolist() == [0, 0, 1, 1, 1, 0, 0]


def _mention(entity: str, text: str, name: str) -> Mention:
    return Mention(entity=entity, start=text.index(name), end=text.index(name) + len(name))


# ---- merged entities


def test_merged_entities_are_fewer_and_no_word_mentions_one_twice(questions: list[Question], lexicon: Lexicon) -> None:
    arrays = prepare(questions, lexicon).arrays()
    rows = (GameSettings(row=row) for row in ("cooperative", "as written"))
    merged, every = (Prepared(arrays, settings).batch(np.arange(3)) for settings in rows)
    assert merged.contains.any(-1).sum() < every.contains.any(-1).sum()
    for row, place in np.ndindex(3, 10):
        words: set[tuple[int, int]] = set()
        spans = zip(
            *(getattr(merged, f"mention_{name}")[row, place] for name in ("entity", "token", "end")), strict=True
        )
        for entity, first, end in spans:
            own = {(int(entity), word) for word in range(int(first), int(end))} if entity >= 0 else set()
            assert not own & words
            words |= own


# ---- edges


def without(arrays: dict[str, np.ndarray], *kinds: str) -> dict[str, np.ndarray]:
    """Empty some lists."""
    for kind in kinds:
        for name in [name for name in arrays if name.startswith(f"{kind}_") and name != f"{kind}_start"]:
            arrays[name] = arrays[name][:0]
        arrays[f"{kind}_start"] = np.zeros_like(arrays[f"{kind}_start"])
    return arrays


def test_no_entities_mentions_and_marks_at_all(questions: list[Question], lexicon: Lexicon) -> None:
    arrays = without(prepare(questions, lexicon).arrays(), "entity", "merged", "mention", "mark")
    batch = Prepared(arrays, GameSettings()).batch(np.arange(3))
    assert batch.mention_entity.eq(-1).all()
    assert not batch.contains.any()
    assert not batch.may_link.any()
    assert batch.marks.eq(0).all()
    assert batch.passages.shape[:2] == (3, 10)


def test_what_lies_beyond_the_most_words_is_not_read_nor_mentioned(questions: list[Question], lexicon: Lexicon) -> None:
    arrays = prepare(questions, lexicon).arrays()
    whole, cut = (Prepared(arrays, GameSettings(max_tokens=most)).batch(np.arange(3)) for most in (200, 4))
    assert torch.equal(cut.passages, whole.passages[..., :4])
    assert torch.equal(cut.question, whole.question[:, :4])
    assert torch.equal(cut.passage_lengths, whole.passage_lengths.clamp(max=4))
    assert torch.equal(cut.marks, whole.marks[:, :, :4])
    dropped = whole.mention_token >= 4
    assert (dropped & (whole.mention_entity >= 0)).any()
    assert torch.equal(cut.mention_entity, whole.mention_entity.masked_fill(dropped, -1))
    kept = cut.mention_entity >= 0
    assert torch.equal(cut.mention_token[kept], whole.mention_token[kept])
    assert cut.mention_token.max() < 4
    assert torch.equal(cut.contains, whole.contains)


def test_batches_come_in_the_order_asked_for(prepared: Prepared) -> None:
    sizes = [batch.is_passage.sum(-1).tolist() for batch in prepared.batches(np.array([2, 0, 1]), 2)]
    assert sizes == [[4, 10], [2]]
    assert len(prepared) == 3
    assert prepared.hops == 2


def test_a_text_is_kept_once_however_many_questions_have_it(questions: list[Question]) -> None:
    twice = [questions[2], questions[2].model_copy(update={"id": "again", "question": "Where was he born?"})]
    arrays = prepare(twice, Lexicon({})).arrays()
    first, second = arrays["passage_text"].reshape(2, 4)
    assert first.tolist() == second.tolist()
    assert len(set(first)) == 4
    batch = Prepared(arrays, GameSettings()).batch(np.array([0, 1]))
    assert torch.equal(batch.passages[0], batch.passages[1])


@settings(max_examples=30)
@given(order=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_a_question_is_the_same_in_any_batch(prepared: Prepared, order: list[int]) -> None:
    batch = prepared.batch(np.array(order))
    for row, number in enumerate(order):
        alone = prepared.batch(np.array([number]))
        for name in (
            "question",
            "passages",
            "marks",
            "mention_entity",
            "mention_token",
            "contains",
            "chains",
            "lexical",
        ):
            one, other = getattr(alone, name)[0], getattr(batch, name)[row]
            inside = tuple(map(slice, one.shape))
            assert torch.equal(other[inside], one), name
            padding = -1 if name in ("mention_entity", "chains") else 0
            assert int((other != padding).sum()) == int((one != padding).sum()), name


def test_arrays_are_written_and_read_again(tmp_path: Path, questions: list[Question]) -> None:
    arrays = prepare(questions, Lexicon({})).arrays()
    save_arrays(arrays, tmp_path / "questions.safetensors")
    again = load_arrays(tmp_path / "questions.safetensors")
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype


@pytest.mark.parametrize("content", [None, b"", b"no tensors"])
def test_a_file_of_something_else_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "wrong.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"wrong\.safetensors"):
        load_arrays(path)


# ---- a batch of the networks' tests


def test_masks_distinguish_words_passages_and_chains_from_padding(tiny: ModuleType) -> None:
    batch = tiny.make_batch()
    assert batch.question_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.passage_mask.sum(-1).tolist() == batch.passage_lengths.tolist() == [[5, 3, 4], [2, 5, 0]]
    assert batch.is_passage.tolist() == [[True, True, True], [True, True, False]]
    assert batch.is_chain.tolist() == [[True, True], [True, False]]


def test_some_passages_come_in_the_order_asked_for(tiny: ModuleType) -> None:
    batch = tiny.make_batch(marks=torch.rand(2, 3, 5, 4), mention_weight=torch.rand(2, 3, 3))
    passages = [[2, 0, 2, 1], [1, 1, 0, 2]]
    chosen = batch.at(torch.tensor(passages))
    names = ["passages", "passage_lengths", "title_lengths", "marks", "mention_entity", "mention_token"]
    for name in [*names, "mention_end", "mention_weight"]:
        expected = torch.stack([getattr(batch, name)[row][numbers] for row, numbers in enumerate(passages)])
        assert torch.equal(getattr(chosen, name), expected), name
    for name in ("question", "contains", "may_link", "chains"):
        assert torch.equal(getattr(chosen, name), getattr(batch, name)), name
