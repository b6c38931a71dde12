"""Datetime for tools in the sandbox: dates, times and spans of the proleptic Gregorian calendar, ISO
texts, UTC and fixed offsets. Days are counted as in Hinnant's "chrono-compatible low-level date
algorithms". now() is the time of the call."""

import time as _time

MINYEAR, MAXYEAR = 1, 9999
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")
_MONTHS += ("October", "November", "December")


def _ordinal(year, month, day):
    year -= month <= 2
    era = year // 400
    yoe = year - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 305


def _civil(ordinal):
    days = ordinal + 305
    era = days // 146097
    doe = days - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + (3 if mp < 10 else -9)
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


class timedelta:
    def __init__(
        self, days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0
    ):
        whole = (days + 7 * weeks) * 86400 + hours * 3600 + minutes * 60 + seconds
        micro = round(whole * 1000000) if isinstance(whole, float) else whole * 1000000
        self._us = int(micro + round(milliseconds * 1000 + microseconds))

    @property
    def days(self):
        return self._us // 86400000000

    @property
    def seconds(self):
        return self._us // 1000000 % 86400

    @property
    def microseconds(self):
        return self._us % 1000000

    def total_seconds(self):
        return self._us / 1000000

    def _made(self, us):
        return timedelta(microseconds=us)

    def __add__(self, other):
        if isinstance(other, timedelta):
            return self._made(self._us + other._us)
        return other.__add__(self)

    def __sub__(self, other):
        return self._made(self._us - other._us)

    def __mul__(self, times):
        return self._made(round(self._us * times))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return (
            self._us / other._us
            if isinstance(other, timedelta)
            else self._made(round(self._us / other))
        )

    def __floordiv__(self, other):
        return (
            self._us // other._us if isinstance(other, timedelta) else self._made(self._us // other)
        )

    def __neg__(self):
        return self._made(-self._us)

    def __abs__(self):
        return self._made(abs(self._us))

    def __bool__(self):
        return self._us != 0

    def __eq__(self, other):
        return isinstance(other, timedelta) and self._us == other._us

    def __lt__(self, other):
        return self._us < other._us

    def __le__(self, other):
        return self._us <= other._us

    def __gt__(self, other):
        return self._us > other._us

    def __ge__(self, other):
        return self._us >= other._us

    def __hash__(self):
        return hash(self._us)

    def __str__(self):
        days, left = self.days, self.seconds
        text = "%d:%02d:%02d" % (left // 3600, left // 60 % 60, left % 60)
        text += ".%06d" % self.microseconds if self.microseconds else ""
        return text if not days else "%d day%s, %s" % (days, "" if abs(days) == 1 else "s", text)


class timezone:
    def __init__(self, offset, name=None):
        self._offset, self._name = offset, name

    def utcoffset(self, moment):
        return self._offset

    def tzname(self, moment):
        if self._name is not None:
            return self._name
        return "UTC" + (_zone(self._offset) if self._offset else "")

    def __eq__(self, other):
        return isinstance(other, timezone) and self._offset == other._offset

    def __hash__(self):
        return hash(self._offset)


timezone.utc = UTC = timezone(timedelta())


def _zone(offset):
    minutes = offset._us // 60000000
    return "%s%02d:%02d" % ("-" if minutes < 0 else "+", abs(minutes) // 60, abs(minutes) % 60)


def _two(text, what):
    if len(text) != 2 or not text.isdigit():
        raise ValueError("no ISO %s: %s" % (what, text))
    return int(text)


class date:
    def __init__(self, year, month, day):
        if not (MINYEAR <= year <= MAXYEAR and 1 <= month <= 12 and day >= 1):
            raise ValueError("%d-%d-%d is no date" % (year, month, day))
        if _civil(_ordinal(year, month, day)) != (year, month, day):
            raise ValueError("day is out of range for month")
        self.year, self.month, self.day = year, month, day

    @classmethod
    def today(cls):
        return cls.fromordinal(719163 + int(_time.time()) // 86400)

    @classmethod
    def fromordinal(cls, ordinal):
        return cls(*_civil(ordinal))

    @classmethod
    def fromisoformat(cls, text):
        if len(text) != 10 or text[4] != "-" or text[7] != "-" or not text[:4].isdigit():
            raise ValueError("no ISO date: " + text)
        return cls(int(text[:4]), _two(text[5:7], "month"), _two(text[8:], "day"))

    def toordinal(self):
        return _ordinal(self.year, self.month, self.day)

    def weekday(self):
        return (self.toordinal() + 6) % 7

    def isoweekday(self):
        return self.weekday() + 1

    def isocalendar(self):
        thursday = self.toordinal() + 3 - self.weekday()
        year = _civil(thursday)[0]
        return year, (thursday - _ordinal(year, 1, 1)) // 7 + 1, self.weekday() + 1

    def replace(self, year=None, month=None, day=None):
        return date(year or self.year, month or self.month, day or self.day)

    def isoformat(self):
        return "%04d-%02d-%02d" % (self.year, self.month, self.day)

    def strftime(self, form):
        return _format(form, self)

    def _key(self):
        return (self.year, self.month, self.day)

    def __add__(self, span):
        return date.fromordinal(self.toordinal() + span.days)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return date.fromordinal(self.toordinal() - other.days)
        return timedelta(self.toordinal() - other.toordinal())

    def __eq__(self, other):
        return type(self) is type(other) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __le__(self, other):
        return self._key() <= other._key()

    def __gt__(self, other):
        return self._key() > other._key()

    def __ge__(self, other):
        return self._key() >= other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.isoformat()


class time:
    def __init__(self, hour=0, minute=0, second=0, microsecond=0, tzinfo=None):
        if not (
            0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and 0 <= microsecond < 1000000
        ):
            raise ValueError("%d:%d:%d is no time" % (hour, minute, second))
        self.hour, self.minute, self.second = hour, minute, second
        self.microsecond, self.tzinfo = microsecond, tzinfo

    @classmethod
    def fromisoformat(cls, text):
        return cls(*_clock(text))

    def isoformat(self):
        return _clock_text(self)

    def strftime(self, form):
        return _format(form, self)

    def _key(self):
        return (self.hour, self.minute, self.second, self.microsecond)

    def __eq__(self, other):
        return isinstance(other, time) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.isoformat()


class datetime(date):
    def __init__(self, year, month, day, hour=0, minute=0, second=0, microsecond=0, tzinfo=None):
        super().__init__(year, month, day)
        time(hour, minute, second, microsecond)
        self.hour, self.minute, self.second = hour, minute, second
        self.microsecond, self.tzinfo = microsecond, tzinfo

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_time.time(), tz)

    @classmethod
    def fromtimestamp(cls, seconds, tz=None):
        us = round(seconds * 1000000) + (tz.utcoffset(None)._us if tz else 0)
        return _moment(us, tz)

    @classmethod
    def combine(cls, day, clock):
        return cls(day.year, day.month, day.day, *clock._key(), tzinfo=clock.tzinfo)

    @classmethod
    def fromisoformat(cls, text):
        day = date.fromisoformat(text[:10])
        return cls(day.year, day.month, day.day, *(_clock(text[11:]) if len(text) > 10 else ()))

    @classmethod
    def fromordinal(cls, ordinal):
        return cls(*_civil(ordinal))

    def _us(self):
        whole = self.toordinal() * 86400 + self.hour * 3600 + self.minute * 60 + self.second
        return whole * 1000000 + self.microsecond

    def utcoffset(self):
        return self.tzinfo.utcoffset(self) if self.tzinfo else None

    def timestamp(self):
        offset = self.utcoffset()
        return (self._us() - 719163 * 86400000000 - (offset._us if offset else 0)) / 1000000

    def astimezone(self, tz):
        return datetime.fromtimestamp(0, tz) + (self - datetime(1970, 1, 1, tzinfo=UTC))

    def date(self):
        return date(self.year, self.month, self.day)

    def time(self):
        return time(self.hour, self.minute, self.second, self.microsecond)

    def replace(self, **changed):
        names = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
        return datetime(*(changed.get(name, getattr(self, name)) for name in names))

    def isoformat(self, sep="T", timespec="auto"):
        return date.isoformat(self) + sep + _clock_text(self, timespec)

    def _key(self):
        offset = self.utcoffset()
        return self._us() - (offset._us if offset else 0)

    def __add__(self, span):
        return _moment(self._us() + span._us - 719163 * 86400000000, self.tzinfo)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return self + -other
        return timedelta(microseconds=self._key() - other._key())

    def __eq__(self, other):
        return isinstance(other, datetime) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.isoformat(" ")


def _moment(us, tz):
    days, left = us // 86400000000, us % 86400000000
    seconds, micro = left // 1000000, left % 1000000
    clock = (seconds // 3600, seconds // 60 % 60, seconds % 60, micro)
    return datetime(*(_civil(days + 719163) + clock), tzinfo=tz)


def _clock(text):
    zone = None
    if text.endswith("Z"):
        text, zone = text[:-1], UTC
    for sign in "+-":
        if sign in text:
            text, offset = text.split(sign)
            minutes = _two(offset[:2], "zone") * 60 + (
                _two(offset[-2:], "zone") if len(offset) > 2 else 0
            )
            zone = (
                timezone(timedelta(minutes=minutes if sign == "+" else -minutes))
                if minutes
                else UTC
            )
    micro = 0
    if "." in text:
        text, part = text.split(".")
        micro = int((part + "000000")[:6])
    parts = [_two(part, "time") for part in text.split(":")]
    return (parts + [0, 0])[:3] + [micro, zone]


def _clock_text(moment, timespec="auto"):
    text = "%02d:%02d" % (moment.hour, moment.minute)
    if timespec != "minutes":
        text += ":%02d" % moment.second
    if timespec == "milliseconds":
        text += ".%03d" % (moment.microsecond // 1000)
    elif timespec == "microseconds" or (timespec == "auto" and moment.microsecond):
        text += ".%06d" % moment.microsecond
    return text + (_zone(moment.tzinfo.utcoffset(None)) if moment.tzinfo else "")


def _format(form, moment):
    made, at = "", 0
    while at < len(form):
        mark = form[at : at + 2]
        made += _one(mark[1:], moment) if mark[0] == "%" else mark[0]
        at += 2 if mark[0] == "%" else 1
    return made


def _one(letter, moment):
    hour = getattr(moment, "hour", 0)
    if letter in "aA":
        name = _NAMES[moment.weekday()]
        return name if letter == "A" else name[:3]
    if letter in "bB":
        name = _MONTHS[moment.month - 1]
        return name if letter == "B" else name[:3]
    if letter == "j":
        return "%03d" % (moment.toordinal() - _ordinal(moment.year, 1, 1) + 1)
    if letter == "p":
        return "AM" if hour < 12 else "PM"
    if letter == "z":
        zone = getattr(moment, "tzinfo", None)
        return _zone(zone.utcoffset(None)).replace(":", "") if zone else ""
    if letter == "Y":
        return "%04d" % moment.year
    if letter == "y":
        return "%02d" % (moment.year % 100)
    if letter == "f":
        return "%06d" % getattr(moment, "microsecond", 0)
    if letter == "I":
        return "%02d" % (hour % 12 or 12)
    names = {"m": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}
    if letter in names:
        return "%02d" % getattr(moment, names[letter], 0)
    if letter == "%":
        return "%"
    raise ValueError("strftime does not know %" + letter)
