"""Imported where Chinese text is served, before processes are forked: all of them then share one dictionary."""

from rechain.text.segments import read_segmenter

read_segmenter()
