import pytest
from hypothesis import given
from hypothesis import strategies as st

from rechain.errors import RechainError
from rechain.formats.documents import SplitSettings
from rechain.formats.documents.layout import Document
from rechain.formats.documents.plain_text import read_markdown, read_plain
from rechain.formats.documents.splitting import Piece, measure, split

SENTENCE = "The old harbour lies in the north of the town. "
"""ten words"""
SMALL = SplitSettings(passage_words=40)


def pieces(document: Document, settings: SplitSettings = SMALL) -> list[tuple[str, str]]:
    return [(title, document.text[start:end]) for title, start, end in split(document, "name", settings)]


def words_of(document: Document, settings: SplitSettings = SMALL) -> list[int]:
    return [len(text.split()) for _, text in pieces(document, settings)]


def test_titles_are_the_path_of_headings() -> None:
    body = SENTENCE * 3
    document = read_markdown(f"# A\n{body}\n## B\n{body}\n### C\n{body}\n## D\n{body}\n")
    assert [title for title, _ in pieces(document)] == ["A", "A > B", "A > B > C", "A > D"]


def test_a_heading_is_not_repeated_in_its_path() -> None:
    document = read_markdown(f"# Fees\n## fees\n{SENTENCE * 3}\n### Cash\n{SENTENCE * 3}")
    assert [title for title, _ in pieces(document)] == ["Fees", "Fees > Cash"]


def test_of_several_top_headings_none_is_the_title() -> None:
    document = read_markdown(f"# A\n{SENTENCE * 3}\n# B\n{SENTENCE * 3}")
    assert [title for title, _ in pieces(document)] == ["name > A", "name > B"]


def test_levels_may_be_left_out() -> None:
    document = read_markdown(f"#### A\n{SENTENCE * 3}\n## B\n{SENTENCE * 3}\n##### C\n{SENTENCE * 3}")
    assert [title for title, _ in pieces(document)] == ["name > A", "name > B", "name > B > C"]


def test_long_sections_are_cut_evenly_at_sentences() -> None:
    assert words_of(Document(SENTENCE * 5)) == [50]
    assert words_of(Document(SENTENCE * 6)) == [30, 30]
    assert words_of(Document(SENTENCE * 13)) == [40, 50, 40]


def test_paragraphs_are_kept_whole_where_that_is_near_enough() -> None:
    paragraphs = [SENTENCE * 3, SENTENCE * 5]
    assert words_of(Document("\n\n".join(paragraphs))) == [30, 50]


def test_what_has_no_blanks_is_cut_by_length() -> None:
    texts = [text for _, text in pieces(Document("x" * 10_000))]
    assert "".join(texts) == "x" * 10_000 and max(map(len, texts)) < 1_000


def test_scripts_without_blanks_are_cut_at_sentences() -> None:
    texts = [text for _, text in pieces(Document("这是一个关于港口历史的句子。" * 30))]
    assert len(texts) > 3 and all(text.endswith("。") for text in texts)


def test_very_short_sections_under_one_heading_are_joined_with_their_headings() -> None:
    document = read_markdown(f"# Staff\n\n{SENTENCE * 3}\n## Ann\nCalls 12.\n## Bob\nCalls 13.\n## Cy\n{SENTENCE * 3}")
    assert pieces(document)[1:] == [
        ("Staff", "## Ann\nCalls 12.\n## Bob\nCalls 13."),
        ("Staff > Cy", (SENTENCE * 3).strip()),
    ]


def test_sections_under_different_headings_are_not_joined() -> None:
    document = read_markdown("# S\n## A\n### A1\nOne.\n## B\n### B1\nTwo.\n")
    assert pieces(document) == [("S > A > A1", "One."), ("S > B > B1", "Two.")]


def test_a_heading_without_text_below_is_the_text() -> None:
    assert pieces(read_markdown("# Only a heading")) == [("Only a heading", "# Only a heading")]


def test_long_headings_are_shortened() -> None:
    [(title, _)] = pieces(read_markdown(f"# {'x' * 900}\ntext"))
    assert len(title) < 300


@pytest.mark.parametrize("words", [0, -1, 19, 10**6, 2.5, "many"])
def test_settings_are_checked(words: int) -> None:
    with pytest.raises(RechainError, match="passage_words"):
        SplitSettings(passage_words=words)


TEXTS = st.text(st.sampled_from("aB. \n#-=|`1。\t\u4e2d\U0001f600"), max_size=400) | st.text(max_size=200)


@given(TEXTS, st.sampled_from([read_markdown, read_plain]), st.integers(20, 60))
def test_pieces_are_stretches_in_order_that_hold_all_words(text: str, read: type, words: int) -> None:
    document = read(text)
    end = 0
    for piece in split(document, "name", SplitSettings(words)):
        assert isinstance(piece, Piece) and piece.title
        assert end <= piece.start < piece.end <= len(document.text)
        assert document.text[piece.start : piece.end].strip() == document.text[piece.start : piece.end]
        assert measure(document.text, piece.start, piece.end) <= 4 * words
        end = piece.end


def test_a_short_text_above_short_sections_is_joined_with_them() -> None:
    document = read_markdown("# Staff\n\nAll of us.\n\n## Ann\nCalls 12.\n")
    assert pieces(document) == [("Staff", "All of us.\n\n## Ann\nCalls 12.")]
