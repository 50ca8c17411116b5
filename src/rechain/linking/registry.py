"""Every linker, by its name. A new one is a module with its `LINKER` and a line here."""

from collections.abc import Mapping

from rechain.linking import anchors, identifiers, names, nouns, runs, spacy_names, titles
from rechain.linking.linkers import Kind, Linker
from rechain.schema import LinkKind

LINKERS: dict[str, Linker] = {
    linker.name: linker
    for linker in (
        anchors.LINKER,
        identifiers.LINKER,
        titles.LINKER,
        names.LINKER,
        nouns.LINKER,
        runs.LINKER,
        spacy_names.LINKER,
    )
}
DEFAULT_LINKERS = frozenset(name for name, linker in LINKERS.items() if linker.is_default)
KINDS: Mapping[LinkKind, Kind] = {kind.name: kind for linker in LINKERS.values() for kind in linker.kinds}
