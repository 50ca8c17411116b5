"""What little linking knows of languages: words of headings, function words, and which language a text is in."""

from collections.abc import Sequence, Set

_ENGLISH_HEADINGS = """how what when where who why which take taking use using get getting start started set setting
setup store storing make making check checking work working before after about your you do not can contact overview
introduction installation configuration configure requirements general information section chapter part appendix annex
faq version release page note notes summary contents table figure example examples step steps guide manual handbook"""
_GERMAN_HEADINGS = """wie wann warum wer wo uberblick ubersicht einleitung anhang allgemeines hinweis hinweise abschnitt
kapitel seite anleitung handbuch stand"""
HEADING_WORDS = frozenset((*_ENGLISH_HEADINGS.split(), *_GERMAN_HEADINGS.split()))
"""words of the headings of all documents, which name nothing however rare they are in Wikipedia; folded"""

_ENGLISH = frozenset(("the", "of", "and", "is", "to", "with", "for", "was", "are", "that"))
_GERMAN_FUNCTION_WORDS = """der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist
sind war waren wird werden wurde wurden hat haben kann konnen muss mussen soll sollen darf durfen fur mit von vom zu
zum zur im in am an auf aus bei beim nach vor uber unter durch ohne bis als wie wenn dass ob sich sie er es wir ihr ihre
ihrer ihren ihrem sein seine seiner alle allen aller jede jeder jedes diese dieser dieses diesem auch nur noch
mehr sowie bitte gilt gelten hier dort dann"""
GERMAN_FUNCTION_WORDS = frozenset(_GERMAN_FUNCTION_WORDS.split())
_GERMAN = frozenset(
    (
        "der",
        "die",
        "und",
        "ist",
        "nicht",
        "fur",
        "mit",
        "das",
        "den",
        "von",
        "des",
        "im",
        "zu",
        "bei",
        "wird",
        "werden",
        "nach",
        "oder",
        "eine",
        "ein",
        "auf",
        "sind",
    )
)
_LEAST_SIGNS = 4
"""distinct function words in all passages: German names in English texts have one or two ("Verein der Freunde")"""


def find_german(vocabularies: Sequence[Set[str]]) -> frozenset[int]:
    """Return which of some passages, given as their folded words, are German."""
    signs = {number: _GERMAN & words for number, words in enumerate(vocabularies)}
    if sum(map(len, signs.values())) < _LEAST_SIGNS:
        return frozenset()
    german = {n: found for n, found in signs.items() if len(found) > len(_ENGLISH & vocabularies[n])}
    return frozenset(german) if len(frozenset().union(*german.values())) >= _LEAST_SIGNS else frozenset()
