"""What stands around a place: clauses, rows with the heads of their columns, items, headings."""

import pytest

from rechain.recoverer import Recoverer
from rechain.schema import Passage
from rechain.scoring.contexts import Contexts, find_names, terms
from rechain.text.passage_views import PassageView
from rechain.text.values import normal

TABLE = """Rates

| City | Hotel | Meals |
|---|---|---|
| London | EUR 210 | EUR 48 |
| Zurich | EUR 180 | EUR 62 |"""
LINES = """City      Hotel      Meals
London    EUR 210    EUR 48
Zurich    EUR 180    EUR 62"""
ITEMS = """Where to meet

Castle Row: the gate of the churchyard
The Lantern: the car park"""


def contexts(*texts: str, title: str = "") -> Contexts:
    return Contexts([PassageView(Passage(id=str(n), title=title, text=text)) for n, text in enumerate(texts)])


@pytest.mark.parametrize("text", [TABLE, LINES, LINES.replace("    ", "\t"), TABLE.replace("| ", "", 1)])
def test_a_cell_has_the_words_of_its_row_and_of_the_head_of_its_column(text: str) -> None:
    read = contexts(text)
    (unit,) = (read.units[number] for item, number in read.values if item.key == "=180 EUR")
    assert {"zurich", "hotel"} <= unit.terms
    assert not {"london", "meal"} & unit.terms
    assert unit.table is not None


def test_a_table_that_was_cut_in_two_has_no_head() -> None:
    read = contexts("| London | EUR 210 |\n| Zurich | EUR 180 |")
    assert all("london" not in unit.terms for unit in read.units[2:])


def test_items_that_begin_with_names_are_rows_of_a_list() -> None:
    read = contexts(ITEMS)
    rows = [unit for unit in read.units if unit.table is not None]
    assert [("castl" in unit.terms, "lantern" in unit.terms) for unit in rows] == [(True, False)] * 2 + [
        (False, True)
    ] * 2


def test_a_single_line_with_a_colon_is_no_list() -> None:
    assert all(unit.table is None for unit in contexts("Note: rooms are cold. They have no window.").units)


def test_words_count_the_more_the_closer_they_are() -> None:
    read = contexts("Fees\n\nA lamp costs 5 euros and a chair 9 euros. Chairs are blue. A desk is green.", title="Shop")
    lamp = read.fits(read.weigh(["lamp"]))
    by_text = dict(zip((unit.start for unit in read.units), lamp.tolist(), strict=True))
    starts = sorted(by_text)
    # heading, clause with the lamp, clause with the chair, sentence after, sentence after that
    assert [by_text[start] for start in starts] == [0.35, 1.0, 0.6, 0.35, 0.15]


def test_a_heading_counts_for_what_follows_it() -> None:
    read = contexts("Hotels\n\nThe limit is 5 euros. Nothing else. That is all.")
    fits = read.fits(read.weigh(["hotel"]))
    assert fits[-1] == 0.35


def test_words_that_stand_nowhere_count_nothing() -> None:
    read = contexts("One sentence.", "Another one.")
    assert read.weigh(["zurich"]) == {}
    assert read.fits({}).tolist() == [0.0, 0.0]


def test_values_are_found_in_their_units() -> None:
    read = contexts("Bern pays 5 kg, Rome 7 kg.", "Oslo pays 9 kg.")
    found = {item.key: read.units[number] for item, number in read.values}
    assert [found[key].passage for key in ("=5 kg", "=7 kg", "=9 kg")] == [0, 0, 1]
    assert ("rome" in found["=7 kg"].terms, "rome" in found["=5 kg"].terms) == (True, False)


def test_names_are_several_words_with_capitals_and_no_function_words() -> None:
    assert find_names("At Altmoor it is Swantje Koll. The Lantern is shut, Castle Row too.") == [
        "Swantje Koll",
        "Castle Row",
    ]


def test_terms_have_no_endings_and_no_function_words() -> None:
    assert terms("The hotels of London") == {"hotel", "london"}


@pytest.mark.parametrize(
    "text", ["A" * 150_000, "A" * 150_000 + " B", "A " * 75_000, " " * 150_000 + "x", "x" + "\t " * 75_000]
)
def test_a_long_run_of_capitals_or_blanks_is_read_in_linear_time(text: str) -> None:
    """A pattern that tried each position of the run again would take minutes."""
    assert all(len(name) > 1 for name in find_names(text))
    assert contexts(f"{text} | Zurich | 180").units


def test_values_are_read_once_for_matching_and_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    items = normal.read_items
    monkeypatch.setattr("rechain.text.passage_views.read_items", lambda text: (read.append(text), items(text))[1])
    text = "".join(f"| Town {n} | {n} euros |\n" for n in range(6000))
    answer = "Town 7 has 7 euros, but Town 9 has 9 euros."
    recovered = Recoverer("lexical").recover("How many euros?", answer, [text, "Towns have euros."])
    assert recovered.chains and read.count(text) == 1
