"""What little linking knows of languages: headings, function words, German, and words of scripts without blanks.

Linking needs words of scripts without blanks; matching sees their single characters. Chinese words are those of jieba
if the extra `segment` is installed. Without it, and for other scripts, every character is a unit, and only longer rows
of units are taken for words.
"""

import re
from collections.abc import Sequence, Set
from functools import cache
from math import log
from typing import Any, NamedTuple

from rechain.text.rarity import MAX_PHRASE_IDF, idf

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


def has_chinese(text: str) -> bool:
    """Return whether a text holds Han characters, whose words the segmenter knows."""
    return _IS_HAN.search(text) is not None


def find_words(text: str) -> set[Word]:
    """Return what may link in the runs of a text that are written without blanks."""
    words: set[Word] = set()
    for match in _RUN.finditer(text):
        script, run = str(match.lastgroup), match.group()
        if script == "kana":
            if len(run) >= _SHORTEST[script]:
                words.add(Word(run, idf("")))
        elif script == "han" and read_segmenter() is not None:
            words.update(_rows_of_words(read_segmenter().lcut(run, HMM=False)))
        else:
            words.update(_rows_of_characters(run, _SHORTEST[script]))
    return words


def _rows_of_words(run: list[str]) -> set[Word]:
    """Return rows of up to 3 words; the rarest counts in full and the others by half, as in a name."""
    rows: set[Word] = set()
    for start in range(len(run)):
        for end in range(start + 1, min(start + 3, len(run)) + 1):
            row = run[start:end]
            if _FUNCTION_CHARACTERS.isdisjoint((row[0], row[-1])) and len("".join(row)) > 1:
                rarities = [_rarity(word) for word in row]
                rows.add(Word("".join(row), min(MAX_PHRASE_IDF, (max(rarities) + sum(rarities)) / 2)))
    return rows


def _rows_of_characters(run: str, shortest: int) -> set[Word]:
    rows: set[Word] = set()
    for start in range(len(run)):
        for end in range(start + shortest, min(start + _LONGEST, len(run)) + 1):
            row = run[start:end]
            if _FUNCTION_CHARACTERS.isdisjoint((row[0], row[-1])) and row not in _COMMON:
                rows.add(Word(row, _BY_LENGTH.get(len(row), idf(""))))
    return rows


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
