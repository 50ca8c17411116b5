"""Chains in formats that other programs read: predictions, training data for retrievers, tables.

A new export is a module with the function that makes its rows, a line in EXPORTS, and one in the help of
`rechain export --to`.
"""

from rechain.formats.exports import arrow, predictions, retriever_training
from rechain.formats.exports.joining import FileExport, LineExport

EXPORTS: dict[str, LineExport | FileExport] = {
    "hotpotqa": LineExport(predictions.row, needs_sentences=True, gather=predictions.prediction),
    "triplets": LineExport(retriever_training.triplets, options=("negatives", "weights")),
    "paths": LineExport(retriever_training.path),
    "mdr": LineExport(retriever_training.mdr),
    "parquet": FileExport("Parquet", arrow.write),
}
