"""Names and titles that are everywhere in a collection do not link, and a title that many passages have links less.

In the documents of an organisation its own name stands everywhere, and parts of one document share its title. A
question's own passages may be too few, or from too many documents, to show that.

How rare other words and names are stays the fixed table's: learnt weights rest on it, and with words, or names, counted
in the collection fewer chains are found on MuSiQue and on our own logs (docs/measured/default_model.md).
"""

from collections.abc import Iterable
from math import log

from rechain.linking.content import is_common_in_parts, is_nearly_all
from rechain.linking.linkers import Entity
from rechain.text.collection import BatchStatistics, Statistics


def count_ahead(entities: Iterable[Entity], collection: Statistics) -> None:
    """Have a collection count all that is asked of entities at once, if that is quicker than one by one."""
    if isinstance(collection, BatchStatistics):
        unknown = [entity for entity in entities if not entity.is_given]
        titles = [entity.name for entity in unknown if entity.kind == "title"]
        words = [word for entity in unknown if entity.kind != "title" for word in entity.name.split()]
        collection.count_ahead(words, titles)


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
