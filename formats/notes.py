"""Notes on what an import could not represent: all for the file, a summary for the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..cluster.text import one_line

#: How many notes of one kind are printed; the rest are counted, and all stand in the file's notes.
SHOWN = 3


@dataclass(slots=True)
class Notes:
    """Notes in the order they came up, each with the kind it is counted under.

    Attributes:
        entries: kind and text of each.
        policies: the texts that name a rule of the site which nothing here looks at.
    """

    entries: dict[tuple[str, str], None] = field(default_factory=dict)
    policies: dict[str, None] = field(default_factory=dict)
    unfit: int = 0  # jobs of a history that its machine cannot hold

    def add(self, kind: str, text: str) -> None:
        """Note ``text`` as one line; one said before is not repeated."""
        self.entries[kind, one_line(text)] = None

    def unread(self, kind: str, text: str) -> None:
        """Note a rule of the site that is not looked at: what starts may break it."""
        self.add(kind, text)
        self.policies[one_line(text)] = None

    def join(self, others: "Notes") -> None:
        """Take over what others note, behind what stands here."""
        self.entries.update(others.entries)
        self.policies.update(others.policies)

    def texts(self) -> tuple[str, ...]:
        """Return every note, for the snapshot file."""
        return tuple(text for _, text in self.entries)

    def summary(self) -> Iterator[str]:
        """Yield the first SHOWN notes of each kind and how many more there are."""
        seen: dict[str, list[str]] = {}
        for kind, text in self.entries:
            seen.setdefault(kind, []).append(text)
        for kind, texts in seen.items():
            yield from texts[:SHOWN]
            if len(texts) > SHOWN:
                yield f"{kind}: {len(texts) - SHOWN} more, all in the file's notes"
