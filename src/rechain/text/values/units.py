"""Units of measure and currencies, by the names that English, German and Chinese have for them.

The table is our own, since names in three languages are what a text holds and what no library of units knows; its
factors are those of pint, which a test compares (pint itself takes half a second to load).
"""

from decimal import Decimal
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit: how many of which base unit it is."""

    name: str
    base: str
    factor: Decimal
    offset: Decimal = Decimal(0)
    """what is taken away before `factor`: a degree Fahrenheit is (n - 32) / 1.8 degrees Celsius"""


# name, base unit, factor, other names. Months and years are no number of days. A name of one or two letters is read
# with its case ("M" is no metre); a blank in a name is written "_".
_MEASURES = """
second   s 1         seconds sec secs s Sekunde Sekunden Sek. 秒 秒钟 秒鐘
ms       s 0.001     millisecond milliseconds msec Millisekunde Millisekunden 毫秒
minute   s 60        minutes min mins min. Min. Minute Minuten 分钟 分鐘
hour     s 3600      hours h hr hrs hr. Std Std. Stunde Stunden 小时 钟头 小時
day      s 86400     days d Tag Tage Tagen 天
week     s 604800    weeks wk wks Woche Wochen 周 週 星期 礼拜
fortnight s 1209600  fortnights
month    month 1     months Monat Monate Monaten 月
year     month 12    years yr yrs Jahr Jahre Jahren 年
decade   month 120   decades Jahrzehnt Jahrzehnte Jahrzehnten
century  month 1200  centuries Jahrhundert Jahrhunderte Jahrhunderten 世纪
age      age 1       岁 周岁 歲
m        m 1         metre metres meter meters Metern 米 公尺
km       m 1000      kilometre kilometres kilometer kilometers Kilometern 公里 千米
cm       m 0.01      centimetre centimetres centimeter centimeters Zentimeter Zentimetern 厘米
mm       m 0.001     millimetre millimetres millimeter millimeters Millimetern 毫米
µm       m 0.000001  μm micrometre micrometres micrometer micrometers Mikrometer 微米
nm       m 0.000000001 nanometre nanometres nanometer nanometers Nanometern 纳米
mile     m 1609.344  miles mi Meile Meilen 英里
foot     m 0.3048    feet ft Fuß
inch     m 0.0254    inches Zoll 英寸
yard     m 0.9144    yards yd
kg       kg 1        kilogram kilograms kilo kilos Kilogramm 公斤 千克
g        kg 0.001    gram grams gramme grammes Gramm 克
mg       kg 0.000001 milligram milligrams Milligramm 毫克
µg       kg 0.000000001 μg mcg microgram micrograms Mikrogramm 微克
tonne    kg 1000     tonnes t Tonne Tonnen 吨
lb       kg 0.45359237 lbs pound pounds Pfund 磅
ounce    kg 0.028349523125 ounces oz
litre    l 1         l L litres liter liters Litern 升 公升
ml       l 0.001     mL millilitre millilitres milliliter milliliters Millilitern 毫升
cl       l 0.01      centilitre centilitres Zentiliter
m²       m2 1        m2 sqm square_metre square_metres square_meter square_meters Quadratmeter Quadratmetern qm 平方米
km²      m2 1000000  km2 square_kilometre square_kilometres square_kilometer square_kilometers Quadratkilometer 平方公里
hectare  m2 10000    hectares ha Hektar 公顷
m³       l 1000      m3 cubic_metre cubic_metres cubic_meter cubic_meters Kubikmeter 立方米
km/h     km/h 1      kmh kph
mph      km/h 1.609344
m/s      km/h 3.6
percent  % 1         % ％ per_cent pct Prozent vH
pp       pp 1        percentage_point percentage_points Prozentpunkt Prozentpunkte Prozentpunkten 百分点
permille permille 1  ‰ Promille
degree   degree 1    degrees ° Grad 度
°C       °C 1        ℃ °_C degrees ° Grad 度 degree_Celsius degrees_Celsius degrees_C Grad_Celsius Celsius 摄氏度
kelvin   kelvin 1    Kelvin
byte     byte 1      bytes 字节
kB       byte 1000   KB kilobyte kilobytes Kilobyte
MB       byte 1000000 megabyte megabytes Megabyte
GB       byte 1000000000 gigabyte gigabytes Gigabyte
TB       byte 1000000000000 terabyte terabytes Terabyte
PB       byte 1000000000000000 petabyte petabytes Petabyte
KiB      byte 1024   kibibyte kibibytes
MiB      byte 1048576 mebibyte mebibytes
GiB      byte 1073741824 gibibyte gibibytes
TiB      byte 1099511627776 tebibyte tebibytes
bit      bit 1       bits
Mbit/s   bit/s 1000000 Mbps Mbit megabits_per_second
Gbit/s   bit/s 1000000000 Gbps Gbit gigabits_per_second
watt     W 1         W watts Watt 瓦
kW       W 1000      kilowatt kilowatts Kilowatt 千瓦
MW       W 1000000   megawatt megawatts Megawatt
GW       W 1000000000 gigawatt gigawatts Gigawatt
mW       W 0.001     milliwatt milliwatts
Wh       Wh 1        watt_hours
kWh      Wh 1000     kilowatt_hour kilowatt_hours Kilowattstunde Kilowattstunden 千瓦时 度电
MWh      Wh 1000000  megawatt_hour megawatt_hours Megawattstunde Megawattstunden
volt     V 1         V volts Volt 伏
kV       V 1000      kilovolt kilovolts
mV       V 0.001     millivolt millivolts
ampere   A 1         A amp amps amperes Ampere 安培
mA       A 0.001     milliamp milliamps
hertz    Hz 1        Hz Hertz 赫兹
kHz      Hz 1000     kilohertz
MHz      Hz 1000000  megahertz
GHz      Hz 1000000000 gigahertz
rpm      rpm 1       U/min
bar      bar 1       Bar
mbar     bar 0.001   millibar
kPa      bar 0.01    kilopascal
psi      psi 1
mmHg     mmHg 1
joule    J 1         joules Joule
kJ       J 1000      kilojoule kilojoules Kilojoule
kcal     J 4184      kilocalorie kilocalories Kilokalorie Kilokalorien 千卡 大卡
newton   N 1         newtons Newton
Nm       Nm 1        newton_metre newton_metres newton_meters Newtonmeter
decibel  dB 1        dB decibels Dezibel 分贝
mmol     mol 0.001   millimole millimoles 毫摩尔
IU       IU 1        IE I.E. international_units 国际单位
pixel    pixel 1     px pixels 像素
"""
_CURRENCIES = """
EUR € euro euros Euro 欧元 歐元
USD $ US$ dollar dollars US_dollar US_dollars U.S._dollars Dollar US-Dollar 美元 美金
GBP £ pound pounds pound_sterling pounds_sterling Pfund 英镑
CHF Fr. Swiss_franc Swiss_francs Franken Schweizer_Franken 瑞士法郎
CNY ¥ ￥ RMB yuan Yuan renminbi 元 人民币 块 块钱
JPY ¥ ￥ yen Yen 日元
CAD C$ CA$ Canadian_dollars 加元
AUD A$ AU$ Australian_dollars 澳元
HKD HK$ 港元 港币
INR ₹ Rs. rupee rupees Rupien 卢比
SEK kronor
DKK
NOK
PLN zł zloty
CZK Kč
KRW ₩ won 韩元
BTC bitcoin bitcoins
"""
_SHORT = 2
"""letters: so short a name is a symbol, read with its case"""
_FAHRENHEIT = "°F ℉ degree_Fahrenheit degrees_Fahrenheit Fahrenheit Grad_Fahrenheit 华氏度 degrees °"
_CENTS = ("cent", "cents", "ct", "ct.", "欧分", "美分")


def _read_tables() -> dict[str, tuple[Unit, ...]]:
    names: dict[str, tuple[Unit, ...]] = {}

    def add(name: str, unit: Unit) -> None:
        name = name.replace("_", " ")
        name = name if len(name) <= _SHORT else name.casefold()
        names[name] = tuple(dict.fromkeys((*names.get(name, ()), unit)))

    for line in _MEASURES.strip().splitlines():
        name, base, factor, *others = line.split()
        for other in (name, *others):
            add(other, Unit(name, base, Decimal(factor)))
    for name in _FAHRENHEIT.split():
        add(name, Unit("°F", "°C", 1 / Decimal("1.8"), Decimal(32)))
    for line in _CURRENCIES.strip().splitlines():
        code, *others = line.split()
        for other in (code, *others):
            add(other, Unit(code, code, Decimal(1)))
    for name in _CENTS:
        for currency in ("EUR", "USD"):
            add(name, Unit("cent", currency, Decimal("0.01")))
    return names


UNITS = _read_tables()
"""by name; a name may stand for two ("pound")"""
SYMBOLS = frozenset(name for name in UNITS if not any(map(str.isalnum, name)))
"""names that belong to no word, as € and %"""
CURRENCIES = frozenset(line.split()[0] for line in _CURRENCIES.strip().splitlines())


def find_unit(name: str) -> tuple[Unit, ...]:
    """Return the units that a name stands for; none if it names none."""
    return UNITS.get(name) or UNITS.get(name.casefold() if len(name) > _SHORT else name, ())


def counted_unit(word: str) -> str:
    """Return the unit in which a folded word counts, which may be the end of a German compound ("Urlaubstage")."""
    for ending, unit in _COMPOUND_ENDINGS:
        if word.endswith(ending):
            return unit
    units = find_unit(word) if len(word) > _SHORT else ()
    return units[0].name if units else ""


_COMPOUNDS = """day tag tage tagen; week woche wochen; month monat monate monaten; year jahr jahre jahren;
hour stunde stunden; minute minute minuten"""
_COMPOUND_ENDINGS = [(ending, unit) for unit, *endings in map(str.split, _COMPOUNDS.split(";")) for ending in endings]
