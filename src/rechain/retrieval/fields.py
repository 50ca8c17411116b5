"""What of a passage is searched: the fields that the search engine (tantivy) keeps of it."""

import tantivy

from rechain.schema import Passage
from rechain.system.digests import short_hash
from rechain.text.lines import find_lines
from rechain.text.passages import PassageView

_LONGEST_WORD = 200
"""characters: longer ones are data, which nobody asks for, and would fill the dictionary of words"""


def schema() -> tantivy.Schema:
    """Return the fields of an index."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    # Our own folded words, parted by blanks, with positions: what is a word is decided in one place, `text/words`.
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="position")
    builder.add_text_field("name", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("entity", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("line", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("order", fast=True)
    builder.add_bytes_field("record", stored=True)
    return builder.build()


def document(passage: Passage, record: bytes) -> tantivy.Document:
    """Return a passage as the engine takes it; `record` is what it gives back."""
    view = PassageView(passage)
    fields = tantivy.Document()
    fields.add_text("id", passage.id)
    fields.add_text("words", _searchable(view))
    for name in view.names:
        fields.add_text("name", name.strip())
    for entity in view.entities:
        fields.add_text("entity", entity)
    for line in set(find_lines(passage.text)):
        fields.add_text("line", line)
    fields.add_unsigned("order", order_of(passage.id))
    fields.add_bytes("record", record)
    return fields


def order_of(name: str) -> int:
    """Return by what passages of equal score are ordered: nothing that depends on how the index was built."""
    return short_hash(name)


def _searchable(view: PassageView) -> str:
    """Return the folded words of title and text; of scripts without blanks, also the pairs by which they compare."""
    words = f"{view.title.joined}|{view.text.joined}"  # no phrase reaches from one to the other
    if not view.passage.text.isascii():
        pairs = set(view.terms) - view.vocabulary
        words = f"{words} {' '.join(sorted(pairs))}" if pairs else words
    if len(words) > _LONGEST_WORD and max(map(len, words.split())) > _LONGEST_WORD:
        words = " ".join(word for word in words.split() if len(word) <= _LONGEST_WORD)
    return words
