"""Other words for words: a small fixed table, and other inflections."""

from random import Random

_GROUPS = """
film movie picture|directed made helmed|starring featuring|stars features|released issued|album record|song track
band group|singer vocalist|actor performer|actress performer|writer author|author writer|novel book|wrote penned
written authored|founded established started|established founded|located situated found|city town|town municipality
village settlement|county district|company firm business|university college|school academy|team club side|club team
player athlete|football soccer|league division|won received|received won|award prize|awards prizes honours
series show programme|television tv|known famous|famous known|best most|served worked|played appeared|born birth
died death|married wed|wife spouse|husband spouse|son child|daughter child|father parent|mother parent
brother sibling|sister sibling|population inhabitants|people persons|area region|region area|northern north
southern south|eastern east|western west|north northern|south southern|east eastern|west western|largest biggest
large big|small little|first earliest|second 2nd|third 3rd|owned held|based headquartered|including among
american usa|british uk|english england|french france|german germany|italian italy|canadian canada|indian india
australian australia|irish ireland|scottish scotland|japanese japan|russian russia|spanish spain|chinese china
politician statesman|member part|war conflict|army forces|battle fight|king monarch|queen monarch|president head
professional pro|career life|produced created|created made|developed designed|designed developed|published printed
magazine periodical|newspaper paper|station channel|road street|street road|river stream|lake water|mountain peak
island isle|church chapel|building structure|house home|museum gallery|game match|games matches|season year
championship title|tournament competition|competition contest|driver racer|coach manager|manager coach
comedian comic|musician artist|artist musician|composer musician|producer maker|director maker|character role
role part|based drawn|story tale|show programme|episode part|children kids|formerly once|originally initially
began started|started began|ended finished|became turned|named called|called named|used employed|several many
located lies|opened began|built constructed|constructed built|near close|approximately about|former previous
current present|early young|late older|major main|main chief|popular loved|one 1|two 2|three 3|four 4|five 5
six 6|seven 7|eight 8|nine 9|ten 10|1 one|2 two|3 three|4 four|5 five|6 six|7 seven|8 eight|9 nine|10 ten
"""
_OTHERS: dict[str, list[str]] = {}
for _group in _GROUPS.replace("\n", "|").strip("|").split("|"):
    _word, *_others = _group.split()
    _OTHERS.setdefault(_word, []).extend(_others)
_ENDINGS = (("ied", "ying"), ("ies", "y"), ("ing", "ed"), ("ed", "ing"), ("ly", ""), ("s", ""))
_LEAST_STEM = 4


def paraphrase(word: str, raw: str, random: Random) -> str:
    """Return another word for a folded word, by the table or by its ending; where none is known, the word as it stood.

    Names are left as they are, but for those in the table.
    """
    if word in _OTHERS:
        return random.choice(_OTHERS[word])
    return raw if raw[0].isupper() else _inflected(raw)


def _inflected(word: str) -> str:
    for ending, other in _ENDINGS:
        if word.endswith(ending) and len(word) >= _LEAST_STEM + len(ending) and not word.endswith("ss"):
            return word.removesuffix(ending) + other
    return word
