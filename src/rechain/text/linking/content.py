"""What of a passage may link: its title and text without markup, addresses, file names and page furniture.

What may not is overwritten with blanks, so that all offsets stay those of the text. Most passages of plain prose have
nothing of the kind, and are taken as they are.

Names and titles that are everywhere in a collection do not link, and a title that many passages have links less. In the
documents of an organisation its own name stands everywhere, and parts of one document share its title. A question's own
passages may be too few, or from too many documents, to show that. How rare other words and names are stays the fixed
table's: learnt weights rest on it, and with words, or names, counted in the collection fewer chains are found on
MuSiQue and on our own logs (docs/measured/default_model.md).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from math import log

from rechain.text.collection import Statistics
from rechain.text.languages import phrase_idf
from rechain.text.linking.linkers import Entity
from rechain.text.passage_views import PassageView, blank_lines, find_lines
from rechain.text.words import Text, strip_suffix

FEWEST_PARTS = 6
"""passages: of fewer it cannot be told whether what they share is their maker's name or a link"""
FEWEST_OF_MANY = 4
"""passages: of fewer, what more than half of them share may well be what the question is about"""
_ENDINGS = "pdf docx doc odt rtf md rst html htm txt xlsx xls csv pptx ppt json yaml yml xml toml zip"
_MARKUP_BY_SIGN = {
    "<": re.compile(r"<[^<>]{1,300}>"),
    "_": re.compile(r"(?<!\w)_{1,2}(?=[^\W_])|(?<=[^\W_])_{1,2}(?!\w)"),
    "]": re.compile(r"\]\([^()\s]*\)"),
}
"""tags, underscores of emphasis, and what follows the text of a Markdown link; other marks are in no word anyhow"""
_ADDRESSES = (
    re.compile(r"&#?\w{1,8};"),
    re.compile(r"\b(?:https?://|ftp://|www\.)[^\s<>)\]]+", re.IGNORECASE),
    re.compile(rf"(?<![\w.-])[\w.-]+\.(?:{_ENDINGS.replace(' ', '|')})\b", re.IGNORECASE),
)
"""character references, addresses and file names"""
_WORDS_OF_ADDRESSES = frozenset(("http", "https", "ftp", "www", "amp", "nbsp", "quot", *_ENDINGS.split()))
"""of these a text with one of those has one, but for rare references: most have none, and are not searched"""
_DOUBTFUL = re.compile(r"[_<&]|\.\w")
"""what a title has that is a file's name or has markup"""
_DIGIT = re.compile(r"\d")
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|januar|februar|märz|mai|juni|juli|oktober|dezember"
)
_PRINT_DATE = re.compile(
    rf"\b(?:(?:version|ver|v|rev|revision|release|edition|ausgabe|stand|fassung)\b[.:]?\s*\d[\w.]*"
    rf"|v\d[\w.]*|(?:{_MONTHS})\.?\s+\d{{4}}|\d{{4}}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{{4}})\b",
    re.IGNORECASE,
)
"""when something was written and which version it is: "March 2024", "Version 2.3", "Rev. 5" """
_FURNITURE = re.compile(
    r"©|\(c\)|\bcopyright\b|all rights reserved|\b(?:page|seite|p\.)\s*\d+|第\s*\d+\s*页"
    r"|\b(?:confidential|vertraulich|internal use|nur für den internen)\b|版权所有|内部资料",
    re.IGNORECASE,
)
"""what headers and footers of pages say; a line that two passages share and that says so is one"""
_FEWEST_IN_COLLECTION, _SHARE_OF_COLLECTION = 10, 20
"""passages that share a line, and one of how many passages of a collection: a document of some pages has one footer a
page, or only one of its five or ten passages has its menu"""
_NO_WORDS = " \t-–—_.,:;/|()[]#*"
_ENDS_OF_SENTENCES = (".", "!", "?", ",", ";", "。", "！", "？", "，", "；")
_HEADING = re.compile(r"\s*(?:#{1,6}\s+(?P<marked>[^\n]+)|(?P<short>[^\n]{2,80})\n(?P<below>[^\n]{0,200}))")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BEGINNING = re.compile(r"(?<!\w)\S")
_LEAST_OVERLAP, _LARGEST_OVERLAP = 24, 2_000  # characters with which two chunks end and begin
_MOST_COPIES = 8  # passages with the same beginning that are compared
_RARE = 6.0
"""idf: "It is", "This was" and "Employees are" define nothing"""
# "Zorilla is an opera", "Anton Quill (born 1901)": what a text defines in its first words is what it is about.
_DEFINED = re.compile(
    r"\s*(?:The |A |An )?(?P<name>[^\W\d_a-z][\w'’.-]*(?: (?:(?:of|the|and|de|in|for) )*[^\W_a-z][\w'’.-]*){0,7})"
    r"(?: ?\(| (?:is|was|are|were)\b|(?P<comma>,))"
)


def is_most(passages: int, of: int) -> bool:
    """Return whether so many of a question's passages are most of them: a line that they share is page furniture."""
    return of >= FEWEST_OF_MANY and 2 * passages > of


def is_nearly_all(passages: int, of: int) -> bool:
    """Return whether so many of a question's passages hold a word that it sets no two of them apart.

    More than of lines and whole titles, as the passages of a question are often about the same thing: with half or
    three quarters, HotpotQA train_300 loses a gold chain.
    """
    return of >= FEWEST_OF_MANY and 5 * passages > 4 * of


def are_parts(views: Sequence[PassageView]) -> bool:
    """Return whether most passages are parts of documents: neither entries about one thing nor lone sentences."""
    titles = Counter(view.title.joined for view in views)
    entries = sum(is_entry(view) for view in views if not view.title.words or titles[view.title.joined] == 1)
    return 4 * entries < len(views) and 2 * sum(len(view.sentences) > 1 for view in views) >= len(views)


def is_entry(view: PassageView) -> bool:
    """Return whether a passage is about what its title names or, where it has none, what its first words define."""
    if view.title.words:
        return view.title.joined in view.text.joined
    return bool(_find_defined(view.passage.text))


def is_common_in_parts(passages: int, of: int) -> bool:
    """Return whether so many parts of documents share a name that it says what they all are about."""
    return of >= FEWEST_PARTS and 5 * passages > 2 * of


def read_contents(views: Sequence[PassageView], collection: Statistics | None = None) -> list[PassageView]:
    """Return passages as linking sees them: those that have nothing to leave out, and a title, as they are."""
    texts = [view.passage.text for view in views]
    furniture = _find_furniture(texts, collection) if any("\n" in text for text in texts) else frozenset()
    titles = [view.passage.title for view in views]
    shared = _find_shared(titles) if len(set(titles)) < len(titles) else ()
    contents = []
    for view, title, text in zip(views, titles, texts, strict=True):
        linking = blank_lines(text, furniture.__contains__) if furniture else text
        linking = _blank_markup(linking, view.vocabulary)
        name = "" if title in shared else _clean_title(title)
        name = name if name.strip(_NO_WORDS) else _find_heading(linking)
        contents.append(view if name == title and linking == text else _content(view, name, linking))
    return contents


def _find_shared(titles: Sequence[str]) -> frozenset[str]:
    """Return the titles that most passages have."""
    return frozenset(title for title, passages in Counter(titles).items() if is_most(passages, len(titles)))


def _blank_markup(text: str, vocabulary: Set[str]) -> str:
    for sign, pattern in _MARKUP_BY_SIGN.items():
        if sign in text:
            text = pattern.sub(_blanks, text)
    if not _WORDS_OF_ADDRESSES.isdisjoint(vocabulary):
        for pattern in _ADDRESSES:
            text = pattern.sub(_blanks, text)
    return text


def _content(view: PassageView, title: str, text: str) -> PassageView:
    content = PassageView(view.passage)
    vars(content).update(title=Text(strip_suffix(title)))
    vars(content).update(text=view.text if text == view.passage.text else Text(text))
    return content


def _find_furniture(texts: Sequence[str], collection: Statistics | None) -> frozenset[str]:
    """Return the lines, but for their numbers, of headers and footers: most passages have them, or they say so.

    So does a collection of which many passages have them, though few of the question's may.
    """
    counts = Counter(line for text in texts for line in set(find_lines(text)))
    furniture = {
        line
        for line, passages in counts.items()
        if passages > 1 and (passages == len(texts) or is_most(passages, len(texts)) or _FURNITURE.search(line))
    }
    if collection is not None:
        others = [line for line in counts if line not in furniture]
        furniture.update(line for line in others if _is_in_many(collection.count_line(line), collection.passages))
    return frozenset(furniture)


def _is_in_many(passages: int, of: int) -> bool:
    """Return whether so many passages of a collection share a line that it is part of their layout."""
    return passages >= _FEWEST_IN_COLLECTION and passages * _SHARE_OF_COLLECTION >= of


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _clean_title(title: str) -> str:
    """Return a title without markup, a file's name, dates of print and versions."""
    if _DOUBTFUL.search(title):
        title = _blank_markup(title, _WORDS_OF_ADDRESSES)
    return _PRINT_DATE.sub(_blanks, title) if _DIGIT.search(title) else title


def _find_heading(text: str) -> str:
    """Return the heading that a text begins with, a short first line, or else what its first words define."""
    heading = _HEADING.match(text)
    if heading and (line := heading["marked"] or heading["short"].rstrip()) and not line.endswith(_ENDS_OF_SENTENCES):
        # of a text with lines of one length the first is no heading, nor is what a cut has left of a word or a table
        is_wrapped = heading["short"] and len(heading["below"] or "") in range(len(line) // 2, 2 * len(line))
        if not is_wrapped and _LETTERS.search(line) and not line[0].islower():
            return _clean_title(line.rstrip("# "))
    return _find_defined(text)


def find_overlaps(views: Sequence[PassageView]) -> Mapping[tuple[int, int], int]:
    """Return with how many characters one passage ends and another of the same title begins.

    Chunks of a document are often cut so. Both have what is there from one place, so that it is no link between them.
    """
    titles = Counter(view.passage.title for view in views)
    begins: dict[tuple[str, str], list[int]] = {}
    for number, view in enumerate(views):
        head = view.passage.text[:_LEAST_OVERLAP]
        if titles[view.passage.title] > 1 and len(head) == _LEAST_OVERLAP:
            begins.setdefault((view.passage.title, head), []).append(number)
    overlaps: dict[tuple[int, int], int] = {}
    for number, view in enumerate(views) if begins else ():
        title, text = view.passage.title, view.passage.text
        for match in _BEGINNING.finditer(text, max(len(text) - _LARGEST_OVERLAP, 1)) if titles[title] > 1 else ():
            start = match.start()
            for other in begins.get((title, text[start : start + _LEAST_OVERLAP]), ())[:_MOST_COPIES]:
                if other != number and views[other].passage.text.startswith(text[start:]):
                    overlaps.setdefault((number, other), len(text) - start)
    return overlaps


def _find_defined(text: str) -> str:
    """Return the rare name that the first words of a text define, or nothing."""
    defined = _DEFINED.match(text)
    if defined is None or (defined["comma"] and " " not in defined["name"]):  # "Yes, it is"
        return ""
    return defined["name"] if phrase_idf(Text(defined["name"]).words) >= _RARE else ""


def is_everywhere(entity: Entity, collection: Statistics, are_parts: bool) -> bool:
    """Return whether too many passages of a collection share an entity, by the rules for those of a question."""
    if entity.is_given:
        return False
    is_common = is_common_in_parts if are_parts else is_nearly_all
    if entity.kind == "title":
        return is_common(collection.count_title(entity.name), collection.passages)
    # Hardly a name has words that are all everywhere, and an index counts words in no time, but not phrases.
    fewest = min(map(collection.count_word, entity.name.split()))
    return is_common(fewest, collection.passages) and is_common(collection.count_name(entity.name), collection.passages)


def less_where_shared(entity: Entity, collection: Statistics) -> Entity:
    """Return a title with less weight the more passages have it: one leads to an entry, thirty name a document."""
    if entity.kind != "title":
        return entity
    return entity._replace(weight=entity.weight - log(max(collection.count_title(entity.name), 1)))
