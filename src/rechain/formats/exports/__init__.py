"""Chains in formats that other programs read: predictions, training data for retrievers, tables.

A new export is a module that ends with its `EXPORT`, a line in EXPORTS, and one in the help of `rechain export --to`.
"""

from rechain.formats.exports.arrow import PARQUET
from rechain.formats.exports.joining import FileExport, LineExport
from rechain.formats.exports.predictions import HOTPOTQA
from rechain.formats.exports.retriever_training import MDR, PATHS, TRIPLETS

EXPORTS: dict[str, LineExport | FileExport] = {
    "hotpotqa": HOTPOTQA,
    "triplets": TRIPLETS,
    "paths": PATHS,
    "mdr": MDR,
    "parquet": PARQUET,
}
