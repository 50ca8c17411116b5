"""Links of passages as real documents have them: which appear, and which do not."""

import sys

import pytest

from rechain.schema import Passage
from rechain.text import languages
from rechain.text.linking.content import are_parts
from rechain.text.linking.graph import DEFAULT_MIN_WEIGHT, LinkGraph
from rechain.text.passage_views import PassageView

Row = tuple[str, str]


def links(*passages: Row) -> dict[tuple[int, int], set[str]]:
    """Return what links which passages, every mention checked against its offsets."""
    views = [PassageView(Passage(id=str(n), title=title, text=text)) for n, (title, text) in enumerate(passages)]
    graph = LinkGraph(views, DEFAULT_MIN_WEIGHT, links_a_pair=9)
    found: dict[tuple[int, int], set[str]] = {}
    for after in range(len(views)):
        for edge in graph.edges(after):
            if edge.before < after:
                found.setdefault((edge.before, after), set()).add(edge.link.entity)
                for number, span in zip((edge.before, after), edge.link.mentions, strict=True):
                    assert span is None or passages[number][1][slice(*span)].strip()
    return found


FOOTER = "\n\n© 2024 Quillmar GmbH – Zelkova Handbook – Page {} of 12"
HANDBOOK = (
    ("travel_policy_v3.pdf", "# Travel\nTrips are approved by Ortrun Vessel." + FOOTER.format(3)),
    ("travel_policy_v3.pdf", "# Finance team\nOrtrun Vessel heads the team in Wexelburg." + FOOTER.format(4)),
    (
        "handbook-2024.md",
        "# Parking\nCars park behind the **Dornhaus**. See https://wiki.quillmar.example/Gartenlaube"
        + FOOTER.format(5),
    ),
    (
        "handbook-2024.md",
        "# Doors\nThe <b>Dornhaus</b> closes at 8. See https://wiki.quillmar.example/Gartenlaube" + FOOTER.format(11),
    ),
)


def test_a_handbook_links_by_its_content_and_not_by_footers_file_names_or_addresses() -> None:
    assert links(*HANDBOOK) == {(0, 1): {"Ortrun Vessel"}, (2, 3): {"Dornhaus"}}


def test_a_footer_without_a_line_of_its_own_does_not_link_either() -> None:
    texts = ["Ortrun Vessel approves trips.", "Ortrun Vessel heads finance.", "Cars park here.", "Doors close at 8."]
    passages = [("", f"{text} Quillmar Zelkova") for text in texts]
    assert links(*passages) == {(0, 1): {"Ortrun Vessel"}}


def test_a_title_that_most_passages_have_gives_way_to_the_heading_of_the_text() -> None:
    passages = (
        ("Zelkova Handbook", "## Vorlander Scheme\nIt pays well."),
        ("Zelkova Handbook", "## Bonus\nSee the Vorlander Scheme."),
        ("Zelkova Handbook", "## Doors\nThey close at 8."),
        ("Zelkova Handbook", "## Cars\nThey park here."),
    )
    assert links(*passages) == {(0, 1): {"Vorlander Scheme"}}


def test_headings_of_instructions_do_not_link() -> None:
    passages = (
        ("How to take Zorvane", "Take one tablet and note how you feel."),
        ("How to store Belquin", "Take care how you store it. Overview Installation Getting Started"),
        ("How to take Belquin", "Getting Started: take it with water. Overview Installation"),
    )
    assert links(*passages) == {(1, 2): {"Belquin"}}


@pytest.mark.parametrize("title", ["March 2024", "Version 2.3", "Rev. 5", "2024-03-01", "Stand: März 2024"])
def test_dates_of_print_and_versions_do_not_link(title: str) -> None:
    assert links((f"Doors {title}", "They close."), (f"Cars {title}", "They park."), ("", f"the {title}")) == {}


@pytest.mark.parametrize("heading", ["# Zorilla\n\n", "Zorilla\n", "<h1>Zorilla</h1>\n", ""])
def test_a_heading_or_what_a_text_defines_is_the_title_of_a_passage_without_one(heading: str) -> None:
    views = [
        PassageView(Passage(id="a", text=f"{heading}Zorilla is an opera.")),
        PassageView(Passage(id="b", text="She wrote Zorilla in Rome.")),
    ]
    (edge,) = LinkGraph(views, DEFAULT_MIN_WEIGHT).edges(1)
    assert (edge.link.kind, edge.link.entity) == ("title", "Zorilla")


GERMAN = (
    ("", "Die Reisekostenrichtlinie gilt für alle. Frau Müllers Büro prüft sie und ist zuständig."),
    ("", "Nach der Richtlinie für Reisekosten werden Hotels bis 120 Euro erstattet."),
    ("", "Frau Müller leitet die Abteilung und ist in Raum 12 zu finden."),
    ("", "Das Formular des Bundesamtes liegt im Intranet und ist von allen zu nutzen."),
    ("", "Das Bundesamt ist für die Genehmigung zuständig und nicht für den Versand."),
)


def test_german_nouns_link_inflected_and_in_compounds() -> None:
    assert links(*GERMAN) == {(0, 1): {"Reisekostenrichtlinie"}, (0, 2): {"Müllers"}, (3, 4): {"Bundesamtes"}}


CHINESE = (
    ("产品手册", "GTX-200 净水器使用复合滤芯。滤芯每六个月更换一次。"),
    ("产品手册", "复合滤芯由上海工厂生产，联系售后服务部门可以购买。"),
    ("产品手册", "售后服务部门的电话是 400-800。"),
    ("产品手册", "GTX-200 可以免费维修。"),
    ("产品手册", "安装前请关闭电源。"),
)


@pytest.mark.parametrize("has_jieba", [True, False])
def test_chinese_links_are_words_with_and_without_the_segmenter(
    has_jieba: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_jieba:
        pytest.importorskip("jieba")
    else:
        monkeypatch.setitem(sys.modules, "jieba", None)
    languages.read_segmenter.cache_clear()
    try:
        assert links(*CHINESE) == {(0, 1): {"复合滤芯"}, (1, 2): {"售后服务部门"}, (0, 3): {"GTX"}}
    finally:
        languages.read_segmenter.cache_clear()


def test_names_in_brackets_link_without_the_segmenter() -> None:
    languages.read_segmenter.cache_clear()
    tower = "The tower (东京铁塔) is painted in orange and white, as air safety rules require."
    assert links(("A", tower), ("B", f"Visitors of the city like it. {tower}"))[0, 1] >= {"东京铁塔"}
    assert languages.read_segmenter.cache_info().currsize == 0  # its dictionary takes 62 MB


def views(*passages: tuple[str, str]) -> list[PassageView]:
    return [PassageView(Passage(id=str(n), title=title, text=text)) for n, (title, text) in enumerate(passages)]


@pytest.mark.parametrize(("entries", "others", "expected"), [(0, 2, True), (1, 3, False), (1, 4, True), (2, 6, False)])
def test_few_passages_of_documents_say_what_their_titles_name(entries: int, others: int, expected: bool) -> None:
    named = [(f"Vexlor{n}", f"Vexlor{n} sings.") for n in range(entries)]
    pages = [(f"Page {n}", "Switch it off. Wait.") for n in range(others)]
    assert are_parts(views(*named, *pages)) == expected


def test_passages_that_share_a_title_are_parts_of_one_document() -> None:
    assert are_parts(views(*[("Vexlor Manual", f"The Vexlor Manual has pages. This is {n}.") for n in range(6)]))


def test_passages_without_titles_are_entries_if_they_begin_by_defining_something() -> None:
    assert not are_parts(views(*[("", f"Zimbelot Vexlor{n} is an opera.") for n in range(6)]))
    assert are_parts(views(*[("", f"Switch it off. Wait for {n} hours.") for n in range(6)]))


def test_lone_sentences_are_no_parts_of_documents() -> None:
    assert not are_parts(views(*[("", f"Switch it off for {n} hours.") for n in range(6)]))
