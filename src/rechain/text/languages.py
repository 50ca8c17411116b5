"""What is known of words in English and, little, in other languages: how rare they are, and their stems.

Rarity comes from a fixed table of document frequencies that is part of the package, built by `research/build_idf.py`,
never from the file that is read: a question's chains do not depend on the questions beside it.

Learnt weights were fitted to `stem`: another stemmer, such as Snowball's, changes scores of 20 and a verdict of 1 of 37
questions of our own logs.

Linking needs words of scripts without blanks; matching sees their single characters. Chinese words are those of jieba
if the extra `segment` is installed. Without it, and for other scripts, every character is a unit, and only longer rows
of units are taken for words.
"""

import gzip
import re
from collections.abc import Iterable, Sequence, Set
from functools import cache, lru_cache
from importlib.resources import files
from math import log
from typing import Any, NamedTuple

import orjson

from rechain.text.words import Text, fold

# The rarest word of the table has 9.4; beyond 12 more words no longer make a name less ambiguous.
MAX_PHRASE_IDF = 12.0
# In a question, a word in at most 1 of 400 passages (e^6) names something whatever its case; a capitalised one also if
# it is more common, but not like "The" or "American" (more than 1 of 7, e^2).
_RARE, _UNCOMMON = 6.0, 2.0
_FOREIGN = 2
"""function words of another language that show that a text is in it: one alone may be English, as "die" or "war" """
_FUNCTION_WORD = 0.5
"""the rarity of a function word, as that of "of" in English"""


@cache
def _table() -> tuple[dict[str, float], float]:
    """Return the idf of every word in the table, and that of all others, which are rarer."""
    packed = files("rechain").joinpath("data/idf.json.gz").read_bytes()
    table = orjson.loads(gzip.decompress(packed))
    passages = table["passages"]
    idf = {word: log(passages / count) for word, count in table["counts"].items()}
    return idf, log(passages / table["min_count"])


def idf(word: str) -> float:
    """Return the inverse document frequency of a folded word."""
    known, rare = _table()
    return known.get(word, rare)


def phrase_idf(words: Iterable[str]) -> float:
    """Return the rarity of several words together, as if they were independent, up to a ceiling."""
    known, rare = _table()
    return min(sum(known.get(word, rare) for word in words), MAX_PHRASE_IDF)


@cache
def words_below(bound: float) -> frozenset[str]:
    """Return the words of the table whose idf is below a bound."""
    known, _ = _table()
    return frozenset(word for word, value in known.items() if value < bound)


def naming_words(question: Text) -> set[str]:
    """Return the words of a question that name something: rare ones, and capitalised ones but for the first."""
    capitalised = {fold(word) for word in question.raw_words[1:] if word[0].isupper()}
    rare = rarities(question)
    if not all(map(str.isascii, capitalised)):
        # The table knows no word of another script: in one that has case, case alone tells names.
        rare.update((word, 0.0) for word in rare if not word.isascii() and word not in capitalised)
    return {w for w in question.terms if rare[w] >= _RARE or (w in capitalised and rare[w] >= _UNCOMMON)}


def rarities(text: Text) -> dict[str, float]:
    """Return the distinct terms of a text, and how rare each is.

    The table is of English, in which the function words of other languages are rare.
    """
    rare = {word: idf(word) for word in text.terms}
    if _is_foreign(rare.keys()):
        rare.update(dict.fromkeys(function_words() & rare.keys(), _FUNCTION_WORD))
    return rare


def is_foreign(text: Text) -> bool:
    """Return whether a text is not English: by its function words, or since it is written without blanks."""
    return text.has_unspaced or _is_foreign(frozenset(text.words))


def _is_foreign(words: Set[str]) -> bool:
    """Return whether the function words show another language: not "in" and "was", nor "man" and "war" alone."""
    signs = [idf(word) for word in function_words() & words]
    return sum(rarity >= _UNCOMMON for rarity in signs) >= _FOREIGN and max(signs) >= _RARE


@cache
def function_words() -> frozenset[str]:
    """Return function words of languages other than English."""
    return frozenset(files("rechain").joinpath("data/function_words.txt").read_text("utf-8").split())


# --- Headings, function words, German, and words of scripts without blanks --------------------------------------------

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
_GERMAN_SIGNS = "der die und ist nicht fur mit das den von des im zu bei wird werden nach oder eine ein auf sind"
_GERMAN = frozenset(_GERMAN_SIGNS.split())
_LEAST_SIGNS = 4
"""distinct function words in all passages: German names in English texts have one or two ("Verein der Freunde")"""


def find_german(vocabularies: Sequence[Set[str]]) -> frozenset[int]:
    """Return which of some passages, given as their folded words, are German."""
    signs = {number: _GERMAN & words for number, words in enumerate(vocabularies)}
    if sum(map(len, signs.values())) < _LEAST_SIGNS:
        return frozenset()
    german = {n: found for n, found in signs.items() if len(found) > len(_ENGLISH & vocabularies[n])}
    return frozenset(german) if len(frozenset().union(*german.values())) >= _LEAST_SIGNS else frozenset()


_HAN, _KATAKANA, _OTHER = "\u3400-\u9fff\uf900-\ufaff", "\u30a0-\u30ff", "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUN = re.compile(f"(?P<han>[{_HAN}]+)|(?P<kana>[{_KATAKANA}]+)|(?P<other>[{_OTHER}]+)")
"""rows of one script; hiragana writes endings and particles, and links nothing"""
_IS_HAN = re.compile(f"[{_HAN}]")
_FEWEST_HAN, _SHARE_OF_HAN = 4, 8
"""characters of a Chinese text, and of how many one is Han: passages of HotpotQA with names in brackets have up to 9 %,
those of our Chinese manuals 42 % or more. The segmenter takes 0.5 s and 62 MB"""
_SHORTEST = {"han": 2, "kana": 3, "other": 5}
"""characters of a word: a syllable of katakana or a letter of Thai says less than a Han character"""
_LONGEST = 8
"""characters or words: what is longer is found by its parts"""
_FUNCTION_CHARACTERS = frozenset(
    "的了是在和与及或等为以于对从到由被把将也都就而且但若如则并不无有个之其此该这那您你我他她它们请可能会应须需要按照每各后前时中上下内外第本"
)
_COMMON_WORDS = """可以 使用 需要 进行 如果 必须 或者 以及 以下 以上 根据 相关 其他 我们 您的 公司 应当 应该 不得 不能
没有 时间 情况 部分 方式 通过 提供 包括 内容 规定 要求 问题 一个 工作 不要 注意 说明 请勿 确保 首先 然后 之后 之前 期间
手册 用户 操作"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""what a manual says on every page, for where there are no frequencies"""
_WORDS_OF_A_PASSAGE = 100
"""by this a word's frequency becomes that of passages with it, as the table of rarities has it"""
_BY_LENGTH = {2: 7.0, 3: 8.0}
"""the rarity of a row of characters where frequencies are unknown; of more than 3 that of the rarest words"""


class Word(NamedTuple):
    """A row of characters that may be a word, or several."""

    text: str
    rarity: float


def is_chinese(text: str) -> bool:
    """Return whether a text is Chinese, or Japanese with its Han characters, not one that only names something so."""
    characters = len(_IS_HAN.findall(text))
    return characters >= _FEWEST_HAN and _SHARE_OF_HAN * characters >= len(text)


def find_words(text: str, segment: bool) -> set[Word]:
    """Return what may link in the runs of a text that are written without blanks.

    `segment` cuts Chinese into words, which loads a dictionary; otherwise rows of characters are words.
    """
    words: set[Word] = set()
    for match in _RUN.finditer(text):
        script, run = str(match.lastgroup), match.group()
        if script == "kana":
            if len(run) >= _SHORTEST[script]:
                words.add(Word(run, idf("")))
        elif script == "han" and segment and read_segmenter() is not None:
            words.update(_rows_of_words(read_segmenter().lcut(run, HMM=False)))
        else:
            words.update(_rows_of_characters(run, _SHORTEST[script]))
    return words


def _rows_of_words(run: list[str]) -> set[Word]:
    """Return rows of up to 3 words; the rarest counts in full and the others by half, as in a name."""
    rows: set[Word] = set()
    weights, ends = list(map(_rarity, run)), [word not in _FUNCTION_CHARACTERS for word in run]
    for start in (number for number, may_end in enumerate(ends) if may_end):
        for end in range(start + 1, min(start + 3, len(run)) + 1):
            row = "".join(run[start:end])
            if ends[end - 1] and len(row) > 1:
                rarities = weights[start:end]
                rows.add(Word(row, min(MAX_PHRASE_IDF, (max(rarities) + sum(rarities)) / 2)))
    return rows


def _rows_of_characters(run: str, shortest: int) -> set[Word]:
    rows: set[Word] = set()
    for start in range(len(run)):
        for end in range(start + shortest, min(start + _LONGEST, len(run)) + 1):
            row = run[start:end]
            if _FUNCTION_CHARACTERS.isdisjoint((row[0], row[-1])) and row not in _COMMON:
                rows.add(Word(row, _BY_LENGTH.get(len(row), idf(""))))
    return rows


@lru_cache(maxsize=1 << 16)
def _rarity(word: str) -> float:
    """Return the rarity of a Chinese word; one character is half a word, and no name."""
    if len(word) == 1 or word in _COMMON:
        return 0.0
    jieba = read_segmenter()
    frequency = jieba.FREQ.get(word, 0) or 1
    return max(0.0, min(idf(""), log(jieba.total / frequency / _WORDS_OF_A_PASSAGE)))


@cache
def read_segmenter() -> Any:
    """Return jieba's tokenizer, or None without the extra; its cache in the folder of temporary files is not used."""
    try:
        import jieba
    except ImportError:
        return None
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


# --- Words without their inflection -----------------------------------------------------------------------------------

_STEM_ENDINGS = (
    *("ations", "ation", "ings", "ing", "ions", "ion", "ors", "or", "ers", "er", "ies", "ied", "ed", "es", "en"),
    *("s", "e", "y"),
)
# So many words are kept with their stems, as texts say the same words again and again: some megabytes.
_STEMS = 1 << 15
SHORTEST_NOUN = 4
"""letters: shorter ones are parts of words by chance"""
_INFLECTION = re.compile(r"(?:ern|en|em|er|es|e|n)?(?<![aeious])s?$|(?:ern|en|em|er|es|e|n)$")
_IRREGULAR = {
    "children": "child", "men": "man", "women": "woman", "people": "person", "feet": "foot", "teeth": "tooth",
    "mice": "mouse", "geese": "goose", "criteria": "criterion", "phenomena": "phenomenon", "analyses": "analysis",
    "indices": "index", "matrices": "matrix", "vertices": "vertex", "appendices": "appendix", "diagnoses": "diagnosis",
    "hypotheses": "hypothesis", "crises": "crisis", "bases": "base", "knives": "knife", "wives": "wife",
    "shelves": "shelf", "halves": "half", "wolves": "wolf", "calves": "calf",
    "loaves": "loaf", "thieves": "thief", "buses": "bus", "gases": "gas", "viruses": "virus", "bonuses": "bonus",
    "statuses": "status", "campuses": "campus", "menus": "menu", "gurus": "guru", "taxis": "taxi", "skis": "ski",
    "potatoes": "potato", "tomatoes": "tomato", "heroes": "hero", "echoes": "echo", "vetoes": "veto",
    "cargoes": "cargo", "volcanoes": "volcano", "quizzes": "quiz", "areas": "area", "ideas": "idea", "visas": "visa",
    "cameras": "camera", "formulas": "formula", "quotas": "quota", "agendas": "agenda", "schemas": "schema",
    "replicas": "replica", "extras": "extra", "eras": "era", "dramas": "drama", "pizzas": "pizza",
}  # fmt: skip
_NO_PLURAL = frozenset(
    """
    series species news means always perhaps does goes this its his hers ours yours theirs yes thus plus less unless
    versus across besides sometimes afterwards towards lens physics mathematics politics economics athletics diabetes
    headquarters whereas
    """.split()  # noqa: SIM905 - easier to read than a list
)
# Endings whose plural is told from the singular without a dictionary.
_PLURALS = (
    ("sses", "ss"), ("shes", "sh"), ("tches", "tch"), ("nches", "nch"), ("rches", "rch"), ("eaches", "each"),
    ("oaches", "oach"), ("wiches", "wich"), ("xes", "x"), ("ss", "ss"), ("us", "us"), ("is", "is"),
    ("as", "as"), ("movies", "movie"), ("cookies", "cookie"), ("calories", "calorie"), ("ies", "y"),
    ("s", ""),
)  # fmt: skip
_SHORTEST_PLURAL = 4
"""letters of a word that may be a plural: "gas", "bus" and "its" are none"""
_PLURALS_DE = (
    ("ungen", "ung"), ("heiten", "heit"), ("keiten", "keit"), ("schaften", "schaft"), ("ionen", "ion"),
    ("itaten", "itat"), ("innen", "in"), ("ien", "ie"),
)  # fmt: skip
_SHORTEST_PLURAL_DE = 7
"""letters: shorter words with these endings are mostly no plurals ("Ferien", "innen")"""


@lru_cache(_STEMS)
def stem(word: str) -> str:
    """Return a word without endings of plural, tense and doer, so that a question's words are known in other forms."""
    if len(word) < 5 or not word.isalpha() or not word.isascii():
        return word[:-1] if len(word) == 4 and word[-1] == "s" and word[-2] != "s" else word
    for ending in _STEM_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def stem_german_noun(word: str) -> str:
    """Return a folded noun without its ending: "mullers" and "muller" have one stem, "amtes" and "amt" too."""
    stem = _INFLECTION.sub("", word, count=1)
    return stem if len(stem) >= SHORTEST_NOUN else word


def singular(word: str) -> str:
    """Return a folded word in the singular where a safe rule gives it, else the word."""
    if len(word) < _SHORTEST_PLURAL or not (word.isascii() and word.isalpha()) or word in _NO_PLURAL:
        return _IRREGULAR.get(word, word)
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("n") and len(word) >= _SHORTEST_PLURAL_DE:
        return next((word.removesuffix(plural) + one for plural, one in _PLURALS_DE if word.endswith(plural)), word)
    if not word.endswith("s"):
        return word
    return next(word.removesuffix(plural) + one for plural, one in _PLURALS if word.endswith(plural))
