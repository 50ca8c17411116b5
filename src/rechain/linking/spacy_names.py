"""Names that spaCy's entity recogniser finds: an extra, slower than `names` by far, and it needs a model."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from rechain.errors import MissingExtraError, RechainError
from rechain.text.passages import PassageView
from rechain.text.words import phrase

DEFAULT_MODEL = "en_core_web_sm"


def names_of(views: Iterable[PassageView], model: str) -> list[str]:
    """Return the phrases to look for: the text of every named entity."""
    texts = (view.passage.text for view in views)
    found = (phrase(entity.text) for document in _load(model).pipe(texts) for entity in document.ents)
    return list(dict.fromkeys(filter(None, found)))


@cache
def _load(model: str) -> Any:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("The linker spacy", "spacy") from error
    try:
        return spacy.load(model, exclude=["parser", "tagger", "lemmatizer", "attribute_ruler"])
    except (OSError, ValueError) as error:
        raise RechainError(
            f"spaCy's model '{model}' cannot be loaded: python -m spacy download {model}, or name another."
        ) from error
