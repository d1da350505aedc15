"""Records of QOS and associations: ``scontrol show assoc_mgr``, ``sacctmgr -P show qos|assoc``."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...cluster.errors import InputError
from ...cluster.text import listed
from .answer_text import pairs_in


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRecord:
    """A QOS or an association: its limits as Slurm writes them; ``parent`` None: not told."""

    path: str
    cluster: str = ""
    qos: str = ""
    account: str = ""
    user: str = ""
    partition: str = ""
    parent: str | None = ""
    fields: Mapping[str, str]

    @property
    def name(self) -> str:
        """What a limit of it is called."""
        if self.qos:
            return f"qos {self.qos}"
        parts = (("account", self.account), ("user", self.user), ("partition", self.partition))
        return " ".join(f"{what} {name}" for what, name in parts if name)


def read_records(text: str, cluster: str) -> list[LimitRecord]:
    """Return the QOS and the associations of a cluster; an empty name stands for the only one.

    Raises:
        InputError: the text is neither command's, or it is of other clusters.
    """
    records = list(_of_table(text) if "|" in text.partition("\n")[0] else _of_manager(text))
    named = sorted({record.cluster for record in records if record.cluster})
    if named and (cluster not in named if cluster else len(named) > 1):
        this = (
            f"this cluster is {cluster}"
            if cluster
            else "the name of this cluster is not known (--conf tells)"
        )
        raise InputError(f"the associations are of {listed(named)}; {this}", path="Cluster")
    return [record for record in records if record.cluster in ("", cluster or "".join(named))]


def _of_table(text: str) -> Iterator[LimitRecord]:
    """Yield the records of one or more tables of sacctmgr, each with its heading."""
    heading: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split("|")
        if cells[0] in ("Name", "Cluster", "Account"):
            heading = cells
        elif line.strip():
            if len(cells) != len(heading):
                message = f"{len(cells)} fields, the heading has {len(heading)}"
                raise InputError(message, path=f"line {number}")
            yield _of_row(dict(zip(heading, cells, strict=True)), f"line {number}")


def _of_row(row: Mapping[str, str], path: str) -> LimitRecord:
    if "Name" in row:
        return LimitRecord(path=path, qos=row["Name"], fields=row)
    parent = row.get("ParentName", row.get("Par Name"))
    names = ("Cluster", "Account", "User", "Partition")
    members = {member.lower(): row.get(member, "") for member in names}
    return LimitRecord(path=path, parent=parent, fields=row, **members)


def _of_manager(text: str) -> Iterator[LimitRecord]:
    """Yield the records of scontrol: each begins with a line that is not indented."""
    if "Association Manager" not in text:
        raise InputError("neither what scontrol show assoc_mgr nor what sacctmgr -P prints", path="line 1")
    for record in re.split(r"^(?=ClusterName=|QOS=)", text, flags=re.MULTILINE)[1:]:
        # What follows the association and QOS records is of users and types.
        body = re.split(r"^(?=\S+ Records)", record, flags=re.MULTILINE)[0]
        fields: dict[str, str] = {}
        for key, value in pairs_in(body):
            # Limits of each user stand with each of them again, below a line with the user.
            fields[key] = fields.get(key) or value.partition("\n")[0]
        head = record.partition("\n")[0].strip()[:60]
        if record.startswith("QOS="):
            yield LimitRecord(path=head, qos=_plain(fields["QOS"]), fields=fields)
        else:
            yield LimitRecord(
                path=head,
                account=fields.get("Account", ""),
                user=_plain(fields.get("UserName", "")),
                partition=fields.get("Partition", ""),
                parent=_plain(fields.get("ParentAccount", "")),
                fields=fields,
            )


def _plain(name: str) -> str:
    """Return a name without its number: ``ann(1001)``."""
    return re.sub(r"\(\d+\)$", "", name)
