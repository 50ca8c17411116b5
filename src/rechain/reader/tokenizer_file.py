"""What a tokenizer.json may contain: components that make no text much longer, and texts that are short.

A model of the Hub is data of strangers. The library runs whatever a file describes: replacements that
double a text twenty times, patterns that take hours, an unknown word of 50 MB for each character.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

_KINDS = {
    "normalizer": "BertNormalizer NFC NFD NFKC NFKD Nmt Lowercase StripAccents Strip Replace Prepend Precompiled",
    "pre_tokenizer": "BertPreTokenizer Whitespace WhitespaceSplit ByteLevel Metaspace Punctuation Digits "
    "UnicodeScripts CharDelimiterSplit Split",
    "post_processor": "BertProcessing RobertaProcessing TemplateProcessing ByteLevel",
    "model": "WordPiece WordLevel BPE Unigram",
}
"""the components that may be used; a Sequence of them is one too"""
_PATTERNS = frozenset((" {2,}",))
"""regular expressions that may be used; any other may take exponential time"""
_MOST_STEPS = 16
"""of a normaliser, a pre-tokeniser or a post-processor, and pieces of a template"""
_LONGEST_TEXT, _LONGEST_WORD = 1_000, 1_000
"""characters of a token, and of a word that WordPiece cuts in quadratic time"""
_LONGEST_REPLACEMENT = 64
"""bytes for one character; Unicode's longest has 33"""


def check_tokenizer(content: Any) -> None:
    """Raise ValueError if a tokeniser could take memory or time out of proportion to a text."""
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise ValueError("it does not describe a tokeniser")
    for part, kinds in _KINDS.items():
        steps = list(_steps(content.get(part)))
        if len(steps) > _MOST_STEPS:
            raise ValueError(f"its {part} has more than {_MOST_STEPS} steps")
        for step in steps:
            if step.get("type", "BPE" if part == "model" else None) not in kinds.split():
                raise ValueError(f"its {part} has a component that is not supported: {step.get('type')!s:.40}")
            _check_step(step)
    if content["model"].get("max_input_chars_per_word", 0) > _LONGEST_WORD:
        raise ValueError(f"its words may have more than {_LONGEST_WORD} characters")
    if any(len(text) > _LONGEST_TEXT for text in _texts(content)):
        raise ValueError(f"it has a text of more than {_LONGEST_TEXT} characters")


def _steps(component: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps of a component, also those of sequences in it."""
    waiting = [component]
    while waiting:
        step = waiting.pop()
        if isinstance(step, dict) and step.get("type") == "Sequence":
            inner = (value for value in step.values() if isinstance(value, list))
            waiting += [one for steps in inner for one in steps]
        elif step is not None:
            if not isinstance(step, dict):
                raise ValueError("it does not describe a tokeniser")
            yield step


def _check_step(step: dict[str, Any]) -> None:
    pattern = step.get("pattern")
    if isinstance(pattern, dict):
        regex, text = pattern.get("Regex"), pattern.get("String")
        if regex not in _PATTERNS if text is None else not text:
            raise ValueError("it has a pattern that is not supported")
        if len(step.get("content") or "") > len(text or " "):
            raise ValueError("it has a replacement that is longer than what it replaces")
    if any(len(step.get(name) or "") > _MOST_STEPS for name in ("prepend", "single", "pair")):
        raise ValueError("it adds too much to each text")
    for special in (step.get("special_tokens") or {}).values():
        if len(special["ids"]) > _MOST_STEPS or len(special["tokens"]) > _MOST_STEPS:
            raise ValueError("it adds too much to each text")
    if charsmap := step.pop("precompiled_charsmap", None):  # SentencePiece's: a trie and the replacements
        table = b64decode(charsmap)
        replacements = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
        if max(map(len, replacements)) > _LONGEST_REPLACEMENT:
            raise ValueError("it has a replacement that is longer than what it replaces")


def _texts(content: Any) -> Iterator[str]:
    """Yield all texts of a JSON value."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
