"""Which sentences of a long passage are shown, and that they are shown as they stand."""

from hypothesis import given
from hypothesis import strategies as st

from rechain.schema import Passage
from rechain.text.highlights import Mark
from rechain.text.passages import PassageView
from rechain.web.excerpts import excerpt, roles_of_step, telling_sentences

FILLER = "Nothing of note was written down by the clerks of the town in that year. "
TEXT = f"{FILLER * 3}Ada met Bob. {FILLER * 2}Ada wrote to Carl about Bob. {FILLER * 3}Dora never came."
VIEW = PassageView(Passage(id="p", text=TEXT))


def mark(word: str, role: str, nth: int = 0) -> Mark:
    start = -1
    for _ in range(nth + 1):
        start = TEXT.index(word, start + 1)
    return Mark(start, start + len(word), role)


def words(spans: list[tuple[int, int]]) -> list[str]:
    return [TEXT[start:end].strip() for start, end in spans]


def test_one_sentence_that_holds_all_is_enough() -> None:
    marks = [mark("Ada", "question"), mark("Ada", "question", 1), mark("Carl", "link 1"), mark("Bob", "link 1")]
    assert words(telling_sentences(VIEW, marks, ["question", "link 1"])) == ["Ada met Bob."]
    more = [*marks, mark("Bob", "link 1", 1)]
    assert words(telling_sentences(VIEW, more, ["question", "link 1"])) == ["Ada wrote to Carl about Bob."]


def test_else_there_is_a_sentence_for_each_in_their_order() -> None:
    marks = [mark("Dora", "link 1"), mark("Bob", "answer")]
    assert words(telling_sentences(VIEW, marks, ["link 1", "answer"])) == ["Ada met Bob.", "Dora never came."]
    assert words(telling_sentences(VIEW, marks, ["link 1"])) == ["Dora never came."], "what does not matter is left out"


def test_where_nothing_is_held_the_first_sentence_stands_for_the_text() -> None:
    assert words(telling_sentences(VIEW, [], ["answer"])) == [FILLER.strip()]


def test_an_excerpt_has_its_marks() -> None:
    shown = excerpt(VIEW, [mark("Bob", "answer"), mark("Carl", "link 1")], ["answer"])
    assert shown is not None
    assert [[piece for piece in sentence if piece.roles] for sentence in shown] == [[("Bob", ("answer",))]]


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt(PassageView(Passage(id="p", text="Ada met Bob. It rained.")), [], ["answer"]) is None


def test_a_long_sentence_loses_what_is_far_from_all_that_matters() -> None:
    text = f"{'so it went on and ' * 30}Ada met Bob{' and so it went on' * 30}."
    start = text.index("Ada")
    shown = excerpt(PassageView(Passage(id="p", text=text)), [Mark(start, start + 3, "answer")], ["answer"])
    assert shown is not None
    line = "".join(piece.text for piece in shown[0])
    assert "Ada met Bob" in line and len(line) < 260
    assert not line.startswith(" ") and text[text.index(line) - 1] == " ", "it begins with a whole word"


def test_what_matters_depends_on_the_place_in_the_chain() -> None:
    assert roles_of_step(0, 3, 2) == ["question", "link 1", "claim"]
    assert roles_of_step(1, 3, 2) == ["link 1", "link 2", "claim"]
    assert roles_of_step(2, 3, 2) == ["link 2", "answer", "claim"]
    assert roles_of_step(1, 2, 0) == ["question", "answer", "claim"], "side by side"


@given(
    st.text(alphabet="ab. \n", min_size=1, max_size=1500).filter(str.strip),
    st.lists(st.tuples(st.integers(0, 1499), st.integers(1, 40), st.sampled_from(["answer", "link 1", "claim"]))),
)
def test_every_role_that_matters_is_in_the_excerpt_and_nothing_is_invented(
    text: str, places: list[tuple[int, int, str]]
) -> None:
    marks = sorted(Mark(start, min(start + size, len(text)), role) for start, size, role in places if start < len(text))
    shown = excerpt(PassageView(Passage(id="p", text=text)), marks, ["answer", "link 1"])
    if shown is None:
        return
    sentences = ["".join(piece.text for piece in sentence) for sentence in shown]
    assert all(sentence in text for sentence in sentences)
    held = {role for sentence in shown for piece in sentence for role in piece.roles}
    visible = {mark.role for mark in marks if text[mark.start : mark.end].strip()} & {"answer", "link 1"}
    assert visible <= held
