"""How files hold the classes of ``cluster``: as objects whose members are made from those of the class."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache
from itertools import groupby
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from ...cluster.errors import InputError, errors_below
from ...cluster.jobs import Job, Request, RunningJob
from ...cluster.limits import Limit
from ...cluster.nodes import Resources, Switch
from ...cluster.value_types import Embedded, Entries, EntryMap, HostMap, value_type_of
from ...cluster.workload import ArrivingJob
from ..hostlist import charge, expand, fold
from .forms import FORMS, Form, Hosts, saying

T = TypeVar("T")


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


def _entries(kind: Entries) -> Form:
    form = file_form(kind.of)
    return Form(
        GenericAlias(list, form.struct),
        read=lambda entries, path: each(entries, path, form.build),
        write=lambda values: [form.document(value) for value in values],
    )


def _entry_map(kind: EntryMap) -> Form:
    form = file_form(kind.of)

    def read(entries: Mapping[str, Any], path: str) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for name, entry in entries.items():
            with errors_below(f"{path}.{name}"):
                built[name] = form.build(entry)
        return built

    return Form(
        GenericAlias(dict, (str, form.struct)),
        read=read,
        write=lambda values: {name: form.document(value) for name, value in values.items()},
    )


def _embedded(kind: Embedded) -> Form:
    form = file_form(kind.of)

    def read(entry: Any, path: str) -> Any:
        with errors_below(path):
            return form.build(entry)

    return Form(form.struct, read=read, write=form.document, is_optional=True)


def _host_map(kind: HostMap) -> Form:
    form = file_form(kind.of)

    def read(entries: Mapping[str, Any], path: str) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for hosts, entry in entries.items():
            place = f"{path}.{hosts}"
            with errors_below(place):
                value = form.build(entry)
            names = expand(hosts, path)
            charge(len(names) * len(value.gres), place)
            for name in names:
                if name in built:
                    raise InputError(f"node {name!r} stands twice", path=place)
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


FORMS |= {Entries: _entries, EntryMap: _entry_map, HostMap: _host_map, Embedded: _embedded}

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
        """Return the value that a decoded object describes; ``given`` are members that it need not hold."""
        values = self._file_values(entry)
        for (name, file, default, read), value in zip(self._read, values, strict=True):
            if value is not default and value != default and name not in given:
                given[name] = value if read is None else read(value, file)
        for name, form in self._inner.items():
            given[name] = form.build(entry)
        return self._cls(**given)

    def part(self, entry: Any, name: str) -> dict[str, Any]:
        """Return one member of a decoded object by its name, nothing where it is its default."""
        for one, file, default, read in self._read:
            if one == name and read is not None and (value := getattr(entry, file)) != default:
                return {name: read(value, file)}
        return {}

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
