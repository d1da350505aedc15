"""How files hold each value type and class of ``cluster``: JSON type, schema, reading, writing.

Nothing here names a member. Only types are checked as JSON is decoded: limits stand in the schema,
and constructors check them, so that Python's users and files hear the same of a wrong value.
Classes with members are objects, whose members are made from those of the class.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, partial
from itertools import groupby
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from ...cluster.checks import LARGEST_COUNT
from ...cluster.errors import InputError, errors_below
from ...cluster.jobs import Job, Range, Request, RunningJob, Span
from ...cluster.limits import AMOUNTS, FilledNames, Limit, LimitMap
from ...cluster.nodes import Resources, Switch
from ...cluster.text import utc
from ...cluster.value_types import (
    PRIORITY_DIGITS,
    YEAR_10000,
    Anything,
    Boolean,
    Choice,
    CountMap,
    Embedded,
    Entries,
    EntryMap,
    HostList,
    HostMap,
    HostSet,
    Integer,
    IntegerList,
    JobPriority,
    Name,
    NameList,
    NameSet,
    Number,
    SecondsByCount,
    Text,
    Timestamp,
    ValueType,
    shortest,
    value_type_of,
)
from ...cluster.workload import ArrivingJob
from ..hostlist import charge, expand, fold, join

T = TypeVar("T")

#: A hostlist, as far as a short pattern tells: no groups, wildcards or set operators.
_HOSTLIST = {"minLength": 1, "pattern": r"^([A-Za-z0-9_.,-]|\[[0-9,-]+\])+$"}
#: JSON types with what their schemas say of them; decoding looks at the type only.
Hosts = Annotated[str, msgspec.Meta(extra_json_schema=_HOSTLIST)]
FromZero = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 0, "maximum": LARGEST_COUNT})]
FromOne = Annotated[int, msgspec.Meta(extra_json_schema={"minimum": 1, "maximum": LARGEST_COUNT})]
GresCounts = dict[Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1})], FromZero]


def saying(kind: Any, **keywords: Any) -> Any:
    """Return a JSON type with keywords of its schema, which decoding does not look at."""
    return Annotated[kind, msgspec.Meta(extra_json_schema=keywords)]


def integers(least: int) -> Any:
    """Return the JSON type of integers from ``least`` on."""
    return saying(int, minimum=least, maximum=LARGEST_COUNT)


@dataclass(frozen=True, slots=True)
class Form:
    """How files hold a value.

    Attributes:
        json: its type as msgspec decodes it, with what its schema says.
        read: makes what a constructor takes of the decoded value and its path; None: no change.
        write: makes what is encoded; None: no change.
        is_optional: an empty value is left out or null.
        about: what its schema says of it.
    """

    json: Any
    read: Callable[[Any, str], Any] | None = None
    write: Callable[[Any], Any] | None = None
    is_optional: bool = False
    about: str | None = None


def _range(least: int) -> Any:
    """Return the JSON type of counts and ranges: ``4`` is exact, ``[2, 8]`` a range."""
    return integers(1) | GenericAlias(tuple, (integers(least), integers(1)))


def _written_span(span: Span) -> Any:
    return span.minimum if span.is_exact else (span.minimum, span.maximum)


def read_time(value: str | float, path: str) -> float:
    """Return a time in seconds since the epoch."""
    if isinstance(value, float):
        return shortest(Timestamp().coerced(value, path))
    try:
        moment = datetime.fromisoformat(value)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{value[:60]!r} is not an ISO 8601 time", path=path) from None
    if not 0 <= since < YEAR_10000:
        raise InputError(f"{value[:60]!r} is not a time from 1970 to 9999", path=path)
    return since


def _written_time(seconds: float) -> str | float:
    """Return a time as ISO 8601 in UTC, as a number before 1970 or with a fraction of a second."""
    if seconds != int(seconds) or seconds < 0:
        return seconds
    return utc(seconds)


def _read_priority(value: Any, path: str) -> Any:
    """Return a number as JSON has it: formats.jsontext decodes fractions as Decimal, exactly."""
    if value is None:
        raise InputError("null is not a number", path=path)
    return Fraction(value) if isinstance(value, str) and re.fullmatch(_QUOTIENT, value) else value


def _written_priority(value: int | Fraction) -> int | Decimal | str:
    if isinstance(value, int):
        return value
    with localcontext(prec=100):
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return decimal if -int(decimal.as_tuple().exponent) <= PRIORITY_DIGITS else str(value)


def _number(kind: Number) -> Form:
    bounds = {"minimum": kind.least, "exclusiveMinimum": kind.above, "maximum": kind.most}
    stated = {name: bound for name, bound in bounds.items() if abs(bound) != float("inf")}
    return Form(saying(float, **stated), write=shortest if kind.is_short else None)


def _choice(kind: Choice) -> Form:
    if not kind.any_case:
        return Form(saying(str, enum=[str(word) for word in kind.words]))
    words = "|".join("".join(f"[{letter.upper()}{letter}]" for letter in word) for word in kind.words)
    return Form(saying(str, pattern=f"^({words})$"))


def _counts(kind: CountMap) -> Form:
    of = FORMS[type(kind.of)](kind.of)
    write = of.write or int
    return Form(
        GenericAlias(dict, (saying(str, minLength=1), of.json)),
        write=lambda counts: {name: write(count) for name, count in counts.items()},
    )


def _limits(kind: LimitMap) -> Form:
    names = saying(str, pattern=f"^({'|'.join(AMOUNTS)}|gres/[^/\\s]+)$")
    return Form(
        saying(GenericAlias(dict, (names, FORMS[type(kind.of)](kind.of).json)), minProperties=1), write=dict
    )


class FileObject(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What every object of a file has in common: an unknown member is an error."""


def each(entries: Iterable[Any], member: str, build: Callable[[Any], T]) -> tuple[T, ...]:
    """Build every entry of a list; an error's path names the entry."""
    built: list[T] = []
    try:
        built.extend(build(entry) for entry in entries)
    except InputError as error:
        raise error.under(f"{member}[{len(built)}]") from error
    return tuple(built)


def _built(form: "FileForm[T]", entry: Any, path: str) -> T:
    with errors_below(path):
        return form.build(entry)


def _entries(kind: Entries) -> Form:
    form = file_form(kind.of)
    return Form(
        GenericAlias(list, form.struct),
        read=lambda entries, path: each(entries, path, form.build),
        write=lambda values: [form.document(value) for value in values],
    )


def _entry_map(kind: EntryMap) -> Form:
    form = file_form(kind.of)
    return Form(
        GenericAlias(dict, (str, form.struct)),
        read=lambda entries, path: {
            name: _built(form, entry, f"{path}.{name}") for name, entry in entries.items()
        },
        write=lambda values: {name: form.document(value) for name, value in values.items()},
    )


def _embedded(kind: Embedded) -> Form:
    form = file_form(kind.of)
    return Form(form.struct, read=partial(_built, form), write=form.document, is_optional=True)


def _host_map(kind: HostMap) -> Form:
    form = file_form(kind.of)

    def read(entries: Mapping[str, Any], path: str) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for hosts, entry in entries.items():
            place = f"{path}.{hosts}"
            value = _built(form, entry, place)
            names = expand(hosts, path)
            charge(len(names) * len(value.gres), place)
            for name in names:
                if name in built:
                    raise InputError(f"node {name!r} is listed twice", path=place)
                built[name] = value
        return built

    def write(values: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _, group in groupby(values, key=lambda name: msgspec.json.encode(form.document(values[name]))):
            names = list(group)
            found |= dict.fromkeys(fold(names), form.document(values[names[0]]))
        return found

    uses = GenericAlias(dict, (Hosts, form.struct))
    return Form(saying(uses, minProperties=1), read=read, write=write)


_NAME = saying(str, minLength=1)
_MOMENTS = {"exclusiveMinimum": -YEAR_10000, "exclusiveMaximum": YEAR_10000}
_TIMES = saying(str, minLength=1) | saying(float, **_MOMENTS)
_ABOUT_TIMES = "ISO 8601, UTC where it names no zone; or seconds since 1970."
_ABOUT_PRIORITY = 'Compared exactly as written; 0 is held. "1/3" is a quotient.'
_SECONDS = GenericAlias(dict, (int, saying(float, minimum=0)))
#: A priority that has no decimal of PRIORITY_DIGITS.
_QUOTIENT = r"^[0-9]{1,82}/[1-9][0-9]{0,40}$"
_PRIORITY = saying(Any, type=["number", "string"], minimum=0, pattern=_QUOTIENT)
#: How files hold each value type.
FORMS: dict[type[ValueType], Callable[[Any], Form]] = {
    Anything: lambda _: Form(Any),
    Boolean: lambda _: Form(bool),
    Integer: lambda kind: Form(integers(kind.least)),
    IntegerList: lambda kind: Form(GenericAlias(list, (integers(kind.least),)), write=list),
    CountMap: _counts,
    LimitMap: _limits,
    Range: lambda kind: Form(_range(kind.least), write=_written_span),
    SecondsByCount: lambda _: Form(saying(_SECONDS, propertyNames={"pattern": "^[1-9][0-9]{0,12}$"})),
    Number: _number,
    Text: lambda _: Form(str),
    Name: lambda _: Form(_NAME),
    NameList: lambda _: Form(list[str], write=list),
    NameSet: lambda _: Form(list[str], write=sorted),
    FilledNames: lambda _: Form(
        _NAME | GenericAlias(list, _NAME), write=lambda names: names[0] if len(names) == 1 else list(names)
    ),
    HostList: lambda _: Form(Hosts, read=expand, write=join, is_optional=True),
    HostSet: lambda _: Form(Hosts, read=expand, write=lambda names: join(sorted(names)), is_optional=True),
    Choice: _choice,
    Timestamp: lambda _: Form(_TIMES, read=read_time, write=_written_time, about=_ABOUT_TIMES),
    JobPriority: lambda _: Form(_PRIORITY, _read_priority, _written_priority, about=_ABOUT_PRIORITY),
    Entries: _entries,
    EntryMap: _entry_map,
    HostMap: _host_map,
    Embedded: _embedded,
}

#: What a struct has in the place of the default of a member that must stand.
_NEEDED = object()


class FileForm(Generic[T]):
    """How files hold a class with members: as an object.

    Attributes:
        struct: the object as msgspec decodes it.
        order: the names of its members as files write them.
    """

    struct: Any
    order: tuple[str, ...]

    def __init__(
        self,
        cls: type[T],
        *,
        name: str = "",
        about: str = "",
        first: Sequence[str] = (),
        without: Sequence[str] = (),
        always: Sequence[str] = (),
        own: Mapping[str, tuple[Any, ...]] | None = None,
    ) -> None:
        """Make the form.

        Args:
            cls: the class.
            name: of the object in schemas, by default the class'.
            about: what it is, by default the class' first sentences.
            first: members that stand first, in this order; the others follow as the class has them.
            without: members of the class that files do not have, or that ``own`` stands for.
            always: members that files write even where they are the default.
            own: the files' own members: their types and defaults.
        """
        self._cls = cls
        stated = [one for one in fields(cast(Any, cls)) if one.metadata and one.name not in without]
        kinds = {one.name: value_type_of(one) for one in stated}
        self._inner: dict[str, FileForm[Any]] = {
            one: file_form(kind.of) for one, kind in kinds.items() if isinstance(kind, Embedded) and kind.flat
        }
        plain = [
            _Member.of(one, is_always=one.name in always) for one in stated if one.name not in self._inner
        ]
        self._read = [(one.path, one.file, one.file_default, one.form.read) for one in plain]
        self._file_values = attrgetter(*(one.file for one in plain))
        inner = [
            replace(one, path=f"{name}.{one.path}")
            for name, form in self._inner.items()
            for one in form._members  # noqa: SLF001 - of this class
        ]
        self._members: list[_Member] = [*inner, *plain]
        declared = {one.file: one.declared for one in self._members} | dict(own or {})
        self.order = tuple(dict.fromkeys((*first, *declared)))
        self._members.sort(key=lambda one: self.order.index(one.file))
        self._values = attrgetter(*(one.path for one in self._members))
        self.struct = msgspec.defstruct(
            name or cls.__name__,
            [(file, *declared[file]) for file in self.order],
            bases=(FileObject,),
            kw_only=True,
            namespace={"__doc__": about or " ".join((cls.__doc__ or "").partition("\n\n")[0].split())},
        )

    def build(self, entry: Any, **given: Any) -> T:
        """Return the value that a decoded object describes; ``given``: members that it may lack."""
        values = self._file_values(entry)
        for (name, file, default, read), value in zip(self._read, values, strict=True):
            if value is not default and value != default and name not in given:
                given[name] = value if read is None else read(value, file)
        for name, form in self._inner.items():
            given[name] = form.build(entry)
        try:
            return self._cls(**given)
        except InputError as error:
            for one in self._members:
                error.path = re.sub(rf"^{re.escape(one.path)}(?!\w)", one.file, error.path)
            raise

    def document(self, value: T) -> dict[str, Any]:
        """Return a value's object: the members that are not their default."""
        return {
            one.file: item if one.form.write is None else one.form.write(item)
            for one, item in zip(self._members, self._values(value), strict=True)
            if item is not one.default and item != one.default
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A member as a class and its file have it.

    Attributes:
        path: where a value of the class has it, with dots.
        file_default: the file's, ``_NEEDED`` where it must stand.
    """

    path: str
    file: str
    form: Form
    default: Any
    file_default: Any

    @classmethod
    def of(cls, stated: Field[Any], *, is_always: bool) -> "_Member":
        """Return a field's."""
        kind = value_type_of(stated)
        form = FORMS[type(kind)](kind)
        made = stated.default_factory
        default = stated.default if made is MISSING else made()
        file_default = default
        if default is MISSING:
            default = file_default = _NEEDED
        elif form.is_optional:
            file_default = None
        elif isinstance(default, (tuple, frozenset)):
            file_default = []
        return cls(
            path=stated.name,
            file=stated.metadata["file"] or stated.name,
            form=form,
            default=_NEEDED if is_always else default,
            file_default=file_default,
        )

    @property
    def declared(self) -> tuple[Any, ...]:
        """The type and the default that msgspec is given."""
        default, kind = self.file_default, self.form.json
        if default is None and kind is not Any:
            kind = kind | None
        if self.form.about:
            kind = Annotated[kind, msgspec.Meta(description=self.form.about)]
        if default is _NEEDED:
            return (kind,)
        if isinstance(default, (list, dict)):
            return (kind, msgspec.field(default_factory=type(default)))
        return (kind, default)


@cache
def file_form(cls: type[T]) -> FileForm[T]:
    """Return the form of a class that has one in all files."""
    return FileForm(cls, **_OF_CLASS.get(cls, {}))


#: What files do not take from a class as it stands.
_OF_CLASS: Mapping[type, Mapping[str, Any]] = {
    Job: {
        "first": (
            *("id", "priority", *(one.name for one in fields(Request)), "partition", "time_limit_s"),
            *("submit_time", "expected_start_time", "promised_start"),
        ),
    },
    Resources: {
        "name": "Use",
        "about": "What a running job holds on a node.",
        "first": ("cores", "gres"),
    },
    ArrivingJob: {
        "name": "Job",
        "about": "A job that arrives: seconds from the workload's beginning, and its run time that no "
        "scheduler sees.",
        "always": ("credits_per_core_h",),
    },
    Limit: {"first": ("name", "max")},
    Switch: {"about": "A leaf switch has nodes, another has switches: hostlists."},
    RunningJob: {
        "name": "Running",
        "about": "A running job; the keys of ``nodes`` are names or hostlists of nodes used alike.",
        "first": ("id", "nodes", "end_time"),
    },
}
