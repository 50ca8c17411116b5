"""Texts as rows of words and values."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rechain.text.languages import singular
from rechain.text.values import Item, same
from rechain.text.values.normal import find_values, read_items
from rechain.text.words import Text


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("days", "day"), ("policies", "policy"), ("boxes", "box"), ("classes", "class"), ("matches", "match"),
        ("caches", "cache"), ("wishes", "wish"), ("houses", "house"), ("children", "child"), ("movies", "movie"),
        ("bus", "bus"), ("gas", "gas"), ("glass", "glass"), ("status", "status"), ("analysis", "analysis"),
        ("news", "news"), ("is", "is"), ("was", "was"), ("this", "this"), ("1990s", "1990s"),
        ("branches", "branch"), ("coaches", "coach"), ("richtungen", "richtung"), ("richtlinien", "richtlinie"),
        ("spanien", "spanie"), ("haus", "haus"), ("tagen", "tagen"), ("", ""),
    ],
)  # fmt: skip
def test_words_become_singular_where_a_rule_is_safe(plural: str, one: str) -> None:
    assert singular(plural) == one


def test_a_text_is_a_row_of_words_and_values() -> None:
    text = "Employees get twenty-seven vacation days, i.e. € 1,500 in 2023."
    items = read_items(text)
    keys = ["employee", "get", "=27", "vacation", "day", "i", "e", "=1500 EUR", "in", "=2023"]
    assert [item.key for item in items] == keys
    assert [text[item.start : item.end] for item in items][2:5] == ["twenty-seven", "vacation", "days"]


@pytest.mark.parametrize(
    ("passage", "answer", "found"),
    [
        ("Staff get 27 days of leave.", "twenty-seven days", ["27 days"]),
        ("Refunds: 14 May 2023.", "May 14, 2023", ["14 May 2023"]),
        ("Es sind fünf Tage und 5 Tage.", "5 days", ["fünf Tage", "5 Tage"]),
        ("All policies cover a policy", "policy", ["policies", "policy"]),
        ("nothing", "27 days", []),
        ("", "27 days", []),
        ("A month, 27 days or 27 %", "27", ["27 days", "27 %"]),
        ("27 vacation days, 27 employees, 27", "27 days", ["27", "27"]),
        ("27个工作日", "27天", ["27"]),
        ("27 Urlaubstage", "27 days", ["27"]),
        ("27 employees", "27 days", []),
        ("on 14.05.2023", "2023", ["14.05.2023"]),
        ("in 2023", "May 2023", []),
        ("days and a day", "days", ["days", "day"]),
    ],
)
def test_items_of_a_passage_say_what_one_of_an_answer_says(passage: str, answer: str, found: list[str]) -> None:
    (wanted, *_) = read_items(answer)
    assert [passage[item.start : item.end] for item in read_items(passage) if same(wanted, item)] == found


TEXTS = st.text(alphabet=st.sampled_from("ab1 27,.-€%天一 days May to é😀"), max_size=60)


@settings(max_examples=150)
@given(TEXTS)
def test_every_word_stands_in_one_item(text: str) -> None:
    items = read_items(text)
    assert [item.start for item in items] == sorted(item.start for item in items)
    for start, end in Text(text).places:
        assert any(item.start < end and start < item.end for item in items)


@settings(max_examples=60)
@given(TEXTS)
def test_every_item_says_what_it_says_itself(text: str) -> None:
    items = read_items(text)
    assert all(map(same, items, read_items(text)))


EQUAL = """
27 days = twenty-seven days = siebenundzwanzig Tage = 27 Tagen = 27天 = 二十七天 = 27-day = 648 hours
three hundred and sixty-five days = 365 days = dreihundertfünfundsechzig Tage = 三百六十五天
one hour = 60 minutes = 3,600 s = 1 h = eine Stunde = 60 Min. = 1小时 = 一个小时 = 60分钟
half an hour = 30 minutes = eine halbe Stunde = 半小时 = half-hour = 0.5 h = ½ hour = 1/2 hour
one and a half hours = 1.5 hours = 90 min = anderthalb Stunden = eineinhalb Stunden = 1,5 Std. = 1½ hours = 一个半小时
1 hour 30 minutes = 1 h 30 min = one hour and thirty minutes = 90 minutes = 1小时30分
quarter of an hour = eine Viertelstunde = 15 minutes = 一刻钟
one week = 7 days = eine Woche = 一周 = a week
18 months = 1.5 years = anderthalb Jahre = 18个月 = 一年半 = eighteen months
a fortnight = two weeks = 14 Tage
within 30日内 = 30 days
May 14, 2023 = 14 May 2023 = 2023-05-14 = 14.05.2023 = 14. Mai 2023 = 2023年5月14日 = 14.5.2023 = 14th of May 2023
May 14th, 2023 = 2023/05/14 = 05/14/2023 = 14/05/2023 = 二〇二三年五月十四日 = 14-May-2023 = fourteenth of May 2023
Sept. 1, 2020 = 1 September 2020 = 1. September 2020 = 2020-09-01 = first of September 2020 = 2020年9月1日
29.02.2024 = Feb 29, 2024 = 29. Februar 2024
nineteen ninety-eight = 1998 = nineteen hundred and ninety-eight
twenty twenty-three = 2023
nineteen oh five = 1905
2019–23 = 2019-2023 = 2019 to 2023
May 2023 = Mai 2023 = 2023年5月 = 05/2023
May 14 = 14 May = 14. Mai = 5月14日 = 五月十四号
May 14-16, 2023 = 14.-16. Mai 2023 = 14 to 16 May 2023
€120 = EUR 120 = 120 euros = 120,00 € = 120 Euro = 120欧元 = 120.00 EUR = one hundred and twenty euros
$1.5 million = USD 1,500,000 = 1.5 million dollars = US$1.5m = 150万美元 = 1,5 Millionen Dollar = 1,5 Mio. US-Dollar
€2.5bn = 2,5 Mrd. Euro = 2.5 billion euros = 25亿欧元 = 2,5 Milliarden Euro
CHF 5'000 = 5’000 CHF = 5,000 Swiss francs = 5000 Franken = 5 000 CHF
£5 = 5 pounds = GBP 5
5 lb = 5 pounds
¥100 = 100元 = RMB 100 = 100 yuan = 一百元
2 kg = 2000 g = 2 kilograms = zwei Kilogramm = 2,000 g = 2公斤 = two kilos
200mg = 0.2 g = 200 Milligramm = 200毫克 = two hundred milligrams
1.5 km = 1500 m = 1,5 Kilometer = 1.5公里
500 ml = 0.5 l = 0,5 Liter = half a litre
20 °C = 20°C = 68 °F = 20 Grad Celsius = 20摄氏度 = 20 degrees
-5 °C = −5 °C
50 % = 50 percent = fifty percent = 50 Prozent = fünfzig Prozent = 百分之五十 = 50% = 50 per cent
99.9 % = 99,9 % = 99.9 percent = 百分之九十九点九
5-7 days = five to seven days = 5 bis 7 Tage = 5–7 days = 5至7天 = 5 to 7 days = 5 days to 7 days
1-2 million euros = €1–2 million = 1 bis 2 Millionen Euro
€5-€7 = €5–7 = 5 to 7 euros
9 am = 09:00 = 9 Uhr = 9:00 a.m. = 上午9点 = 9.00 Uhr = nine o'clock = 9:00 h
5 pm = 17:00 = 17 Uhr = 5:00 PM = 下午五点
3:30 pm = 15:30 = 15 Uhr 30 = 下午3点半
noon = 12:00 = 12 pm = 12 Uhr
midnight = 12 am = 00:00 = Mitternacht
2:40 h = two hours and forty minutes = 160 minutes
59 ct = 59 cents = 0,59 € = $0.59
between 7:30 and 18:00 = 7:30 to 18:00 = 7.30 bis 18 Uhr = zwischen 7:30 und 18 Uhr
8 to 18 = 8 bis 18 Uhr = 8:00-18:00 = zwischen 8 und 18 Uhr
七点四十分 = 7:40 = 七点四十分
三到五天 = 3-5 days = drei bis fünf Tage
9 am to 5 pm = 09:00-17:00 = 9–17 Uhr = 9 a.m. - 5 p.m. = 9-5 pm = 上午9点至下午5点 = von 9 Uhr bis 17 Uhr
first = 1st = erste = 第一 = ersten
twenty-first = 21st
second = 2nd = zweiter = 第二
5-year-old = five years old = 5 Jahre alt = 5岁 = 5-jährige = 5 years of age
100 people = a hundred people = hundert people
12 = twelve = a dozen = zwölf = 十二
1,234,567 = 1.234.567 = 1'234'567
120k = 120,000 = 120.000 = hundred and twenty thousand
16 GB = 16 gigabytes = 16,000 MB
"""
UNEQUAL = """
27 days | 27 hours | 72 days | 27 months | 27 %
1.5 | 15 | 1.50 | 1.05
3.1 | 3.10 | 3.11 | 3.1.0 | 3.11.2
27 employees | 27 days
27 | 72 | 2.7 | 270
2 kg | 2 g | 2 lb
€120 | $120 | £120 | 120 % | €1,200 | CHF 120
€1.5 million | €1.5 billion | €1.5
May 14, 2023 | May 15, 2023 | May 14, 2022 | June 14, 2023
05/14/2023 | 14 June 2023
31.02.2023 | 03.03.2023 | 28.02.2023
14 May | 14 minutes
5-7 days | 5 days | 7 days | 57 days | 5-7 hours | 5-8 days
9 am | 9 pm | 9 hours | 9:30 | 9 minutes
9 am to 5 pm | 9 am to 6 pm
first | 1 | second
second | 2 s | 1 second
5-year-old | 5 years | 6-year-old
555-1234 | 5551234 | 555
1-800-555-0199 | 800 | 1
1990s | 1990 | 1990 s
1 month | 30 days | 4 weeks
5 percent | 5 percentage points
-5 °C | 5 °C
20 °C | 20 °F
16 GB | 16 GiB | 16 MB
十天 | 十年 | 二十天
3月1日 | 3个月
elf Tage | elf hours
eine Woche | ein Jahr
half a day | half an hour
one hour | one day
18,4 °dH | 18.4 °C
7TB09 | 7 TB
2019-2023 | 2019 | 2023 - 2019
24/7 | 24 | 7 days
"""
PLAIN = """
You may leave.; May I come in?; They march on.; Wait here; no one knows; one of them; each one; the one; an elf
COVID-19; B-52; F16; 3D; 5G; H2O; x86; the 90s; in the 1990s; 40 a week
星期一; 周一; 一个; 一些; 十分好; 有一点; und; ein Mitarbeiter
"""
"""texts whose words are words; digits in them are at most digits"""


def values(text: str) -> list[Item]:
    return find_values(Text(text))


def rows(table: str, separator: str) -> list[list[str]]:
    return [[text.strip() for text in line.split(separator)] for line in table.strip().splitlines()]


@pytest.mark.parametrize("texts", rows(EQUAL, " = "), ids=lambda texts: texts[0])
def test_a_value_is_the_same_whatever_its_wording(texts: list[str]) -> None:
    found = {text: values(text) for text in texts}
    assert {text: len(items) for text, items in found.items()} == dict.fromkeys(texts, 1)
    first = found[texts[0]][0]
    assert [text for text in texts if not (same(first, found[text][0]) and same(found[text][0], first))] == []


@pytest.mark.parametrize("texts", rows(UNEQUAL, " | "), ids=lambda texts: texts[0])
def test_values_that_look_alike_are_not_the_same(texts: list[str]) -> None:
    items = [read_items(text)[0] for text in texts]
    others = list(zip(texts, items, strict=True))[1:]
    assert [text for text, item in others if same(items[0], item) or same(item, items[0])] == []


@pytest.mark.parametrize("text", [text.strip() for line in rows(PLAIN, "; ") for text in line])
def test_words_and_names_are_no_quantities(text: str) -> None:
    assert [item.key for item in values(text) if item.units or item.numbers not in ((), ("40",))] == []


@pytest.mark.parametrize(
    ("coarse", "fine"),
    [
        ("2023", "May 14, 2023"), ("May 2023", "14.05.2023"), ("May 14", "2023-05-14"), ("9 am", "9–17 Uhr"),
        ("17:00", "9 am to 5 pm"), ("14 May 2023", "May 14-16, 2023"), ("2023", "2023年5月"),
    ],
)  # fmt: skip
def test_a_finer_value_says_the_coarser_and_not_the_other_way_round(coarse: str, fine: str) -> None:
    [one], [two] = values(coarse), values(fine)
    assert same(one, two)
    assert not same(two, one)


@pytest.mark.parametrize("quantity", ["27 days", "27天", "€27", "27 %", "27 kg", "siebenundzwanzig Tage"])
def test_a_bare_number_is_the_same_as_a_quantity_of_it(quantity: str) -> None:
    [bare], [one] = values("27"), values(quantity)
    assert same(bare, one)
    assert same(one, bare)
    assert not same(values("28")[0], one)


def test_the_number_as_written_counts_not_the_converted_one() -> None:
    assert same(values("60")[0], values("60 minutes")[0])
    assert not same(values("60")[0], values("1 hour")[0])
    assert not same(values("3600")[0], values("1 hour")[0])


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Das kostet 1.500 Euro und nicht 1,5 Euro.", ["=1500 EUR", "=1.5 EUR"]),
        ("The fee is 1,500 and the dose 1.500 mg.", ["=1500", "=0.0000015 kg"]),
        ("1.234,56 €", ["=1234.56 EUR"]),
        ("$1,234.56", ["=1234.56 USD"]),
        ("0.125 l", ["=0.125 l"]),
        ("10 000 Euro", ["=10000 EUR"]),
        ("1, 2, 3", ["=1", "=2", "=3"]),
    ],
)
def test_separators_are_read_in_the_language_of_the_text(text: str, keys: list[str]) -> None:
    assert [item.key for item in values(text)] == keys


def test_what_the_text_leaves_open_has_both_readings() -> None:
    [item] = values("1.500 kg")
    assert (item.key, item.others) == ("=1500 kg", ("=1.5 kg",))
    [item] = values("03/04/2023")
    assert {item.key, *item.others} == {"=2023-04-03", "=2023-03-04"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It takes twenty-seven days, at least.", ["twenty-seven days"]),
        ("Pay € 120 (or US$ 5) by 14. Mai 2023!", ["€ 120", "US$ 5", "14. Mai 2023"]),
        ("每年15天带薪年假，满五年后增加到20天", ["15天", "五年", "20天"]),
        ("Offen von 9:00 bis 17:00 Uhr, 5–7 Tage, -5 °C", ["9:00 bis 17:00 Uhr", "5–7 Tage", "-5 °C"]),
        ("40 hours a week, three times a day, within a week", ["40 hours", "three", "a week"]),
        ("March 5 miles, then rest on March 5", ["5 miles", "March 5"]),
        ("the second item takes 2 seconds", ["second", "2 seconds"]),
        ("Zürich 😀 27 Tage", ["27 Tage"]),
        ("重量15kg以上", ["15kg"]),
    ],
)
def test_values_stand_where_they_say(text: str, wanted: list[str]) -> None:
    assert [text[item.start : item.end] for item in values(text)] == wanted


PIECES = st.sampled_from(
    """
    1 27 3.11 1,500 31.02.2023 2023-05-14 9 am pm to bis - – days Tage 天 € $ EUR % one twenty and a half an hour May
    Mai second first 第 半 个 十 万 点 上午 百分之 Uhr zwei und hundert million Mio. / : . , ( ) 😀 שלום ١٢ ½ ²
    nan inf 1e9 old
    """.split()  # noqa: SIM905 - easier to read than a list
)


@settings(max_examples=150)
@given(st.lists(st.tuples(PIECES, st.sampled_from(["", " ", "-", "\u00a0"])), max_size=25))
@example([("9" * 5000, "")])
@example([("一" * 500, "")])
def test_values_lie_in_the_text_one_after_another(pieces: list[tuple[str, str]]) -> None:
    text = "".join(piece + gap for piece, gap in pieces)
    end = 0
    for item in values(text):
        assert end <= item.start < item.end <= len(text)
        assert item.key.startswith("=")
        assert same(item, item)
        end = item.end


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_text_is_refused(text: str) -> None:
    assert all(0 <= item.start < item.end <= len(text) for item in values(text))


@settings(max_examples=60)
@given(st.integers(0, 10**12))
def test_separators_do_not_change_a_number(number: int) -> None:
    forms = [f"{number} kg", f"{number:,} kg", f"{number:,} kg".replace(",", "'"), f"{number:,} kg".replace(",", ".")]
    keys = [{item.key, *item.others} for form in forms for item in values(form)]
    assert len(keys) == len(forms)
    assert all(f"={number} kg" in readings for readings in keys)
