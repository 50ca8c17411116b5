"""Chunks of a document that were cut with an overlap."""

from rechain.schema import Passage
from rechain.text.linking.content import find_overlaps
from rechain.text.linking.graph import LinkGraph
from rechain.text.passage_views import PassageView

SHARED = "The harbour of Quillmouth was dug by Marsh."


def views(*texts: str, title: str = "harbour.txt") -> list[PassageView]:
    return [PassageView(Passage(id=str(n), title=title, text=text)) for n, text in enumerate(texts)]


def linked(passages: list[PassageView]) -> list[str]:
    return [edge.key.strip() for edge in LinkGraph(passages, 7.0).edges(1)]


def test_what_two_chunks_were_cut_from_is_no_link() -> None:
    passages = views(f"It is an old town. {SHARED}", f"{SHARED} It has two piers.")
    assert find_overlaps(passages) == {(0, 1): len(SHARED)}
    assert linked(passages) == []


def test_what_stands_in_both_rests_links() -> None:
    passages = views(f"Tom Quillfeather came. {SHARED}", f"{SHARED} Later Quillfeather left.")
    assert linked(passages) == ["quillfeather"]


def test_a_first_line_of_the_overlap_is_no_title_that_links() -> None:
    shared = "Quillmouth Harbour Board\n"
    assert linked(views(f"It is an old town. {shared}".strip(), f"{shared}It has two piers and a crane.")) == []


def test_passages_of_other_documents_are_not_compared() -> None:
    one, two = views(f"Old. {SHARED}", f"{SHARED} New.")
    other = PassageView(two.passage.model_copy(update={"title": "other.txt"}))
    assert find_overlaps([one, other]) == {}


def test_many_copies_take_linear_time() -> None:
    assert len(find_overlaps(views(*[f"{SHARED} " * 20] * 2_000))) < 20_000


def test_numbers_and_common_words_of_headings_are_no_titles() -> None:
    texts = "Use it to set 255 options here.", "It changes what is shown."
    for heading in ("Set", "255"):
        first, second = views(*texts)
        second = PassageView(second.passage.model_copy(update={"title": f"III Commands > {heading}"}))
        first = PassageView(first.passage.model_copy(update={"title": "II Basics > Options"}))
        assert linked([first, second]) == []


def test_the_first_of_many_lines_of_one_length_is_no_heading() -> None:
    lines = "The harbour of Quillmouth was dug\nby the men of the old northern town\nin a year.", "In Quillmouth."
    kinds = [edge.kind for edge in LinkGraph(views(*lines), 7.0).edges(1)]
    assert "title" not in kinds
