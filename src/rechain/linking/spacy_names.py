"""Names that spaCy's entity recogniser finds: an extra, slower than `names` by far, and it needs a model."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from rechain.errors import MissingExtraError, RechainError
from rechain.linking import names
from rechain.linking.linkers import Context, Entity, Holders, Linker
from rechain.text.words import phrase

DEFAULT_SPACY_MODEL = "en_core_web_sm"


def phrases(context: Context) -> list[str]:
    """Return the text of every named entity."""
    texts = (context.views[end].passage.text for end in context.ends)
    entities = (entity.text for document in _load(context.spacy_model).pipe(texts) for entity in document.ents)
    return list(dict.fromkeys(filter(None, map(phrase, entities))))


def find(context: Context, holders: Holders) -> Iterator[Entity]:
    """Yield every name that two passages hold, capitalised."""
    return (entity for entity in names.find(context, holders) if entity.kind == names.NAME.name)


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


LINKER = Linker("spacy", (names.NAME,), find, phrases, is_default=False)
