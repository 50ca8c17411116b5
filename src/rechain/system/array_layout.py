"""What `rechain.paper` writes and `rechain.paper` and `rechain.paper` read: the two must agree on these."""

NGRAM_BUCKETS = 4096
"""buckets of hashed n-grams; 0 is none"""

ASKED, ANSWER, BESIDE = 0, 1, 2
"""what is marked of a word: it mentions an entity of the question, of the answer; BESIDE is added to either where the
word stands in a sentence with one"""
MARKS = 4
"""the number of kinds of marks"""

STEP_FEATURES = 5
"""numbers about the two entities of a step: three about how close they are, two about how rare"""
CLOSENESS = 3
"""how many of them are about closeness; these come first"""

TO_NEXT, FROM_BEFORE, FIRST_END, LAST_END = range(1, 5)
"""what a token of a chain is marked as: the link to the next passage, the link from the one before, or an end of the
chain that the data names"""
TEXT_MARKS = 5
"""the kinds of marks in chains, with 0 for none"""
