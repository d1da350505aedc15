"""What a slurmrestd can say, by its own schema: whole updates or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_slurmrestd import MEMBERS, openapi

from aucsched.cluster.errors import InputError
from aucsched.live.rest.api import Api, Shape, read_api

_SAMPLE = Path(__file__).parents[3].parent / "shared/data/slurm/emulated-1408/rest_openapi.json"
OLD, NEW = (read_api(openapi(version)) for version in MEMBERS)
UPDATE = ("update", "JobId=17")


def body(api: Api, *words: str) -> Any:
    post = api.post((*UPDATE, *words))
    return None if post is None else post.body


def test_the_newest_version_served_counts() -> None:
    both = read_api(openapi("0.0.38", "0.0.40"))
    assert (both.version, both.lacking) == ("0.0.40", ())
    assert (OLD.version, OLD.lacking) == ("0.0.38", ("NumNodes", "NumCPUs", "AdminComment"))
    post = both.post((*UPDATE, "Licenses="))
    assert post is not None
    assert (post.job, post.path) == ("17", "/slurm/v0.0.40/job/17")


def test_22_05_says_pins_of_whole_nodes_marked_in_the_comment() -> None:
    pin = ("Licenses=", "ReqNodeList=n[1-2]", "Comment=aucsched?v=1&cores=4*2")
    said = {"licenses": "", "nodelist": "n[1-2]", "comment": "aucsched?v=1&cores=4*2"}
    assert body(OLD, *pin) == said
    assert body(OLD, "Licenses=matlab:2,auction:1", "ReqNodeList=", "Comment=") == {
        "licenses": "matlab:2,auction:1",
        "nodelist": "",
        "comment": "",
    }
    for more in (
        "AdminComment=x",
        "MinCPUsNode=4",
        "NumCPUs=8",
        "NumNodes=2-2",
        "ReservationName=aucsched-17",
    ):
        if more != "MinCPUsNode=4":
            assert body(OLD, *pin, more) is None, more
    # A pin fixes both; MinCPUsNode alone would change the job's CPUs.
    assert body(OLD, *pin, "MinCPUsNode=4", "NumCPUs=8") is None


def test_later_versions_say_all_of_a_pin() -> None:
    pin = (
        "Licenses=",
        "ReqNodeList=n[1-2],n7",
        "NumNodes=3-3",
        "MinCPUsNode=4",
        "NumCPUs=12",
        "AdminComment=x",
    )
    assert body(NEW, *pin) == {
        "licenses": "",
        "required_nodes": ["n1", "n2", "n7"],
        "minimum_nodes": 3,
        "maximum_nodes": 3,
        "minimum_cpus_per_node": {"set": True, "infinite": False, "number": 4},
        "minimum_cpus": 12,
        "admin_comment": "x",
    }
    # An empty list may say nothing at all.
    assert body(NEW, "Licenses=auction:1", "ReqNodeList=") is None
    assert body(NEW, *pin, "ReservationName=aucsched-17") is None


@pytest.mark.parametrize(
    "words",
    [
        ("update", "JobId=17_3", "Licenses="),
        ("update", "JobId=17_[1-3]", "Licenses="),
        ("update", "JobId=../17", "Licenses="),
        ("update", "ReservationName=auction_one", "EndTime=now+60"),
        ("delete", "ReservationName=aucsched-17"),
        ("update",),
        (),
    ],
)
def test_what_is_no_update_of_one_job_is_not_said(words: tuple[str, ...]) -> None:
    assert OLD.post(words) is None
    assert NEW.post(words) is None


_NAMES = (
    "Licenses",
    "ReqNodeList",
    "NumNodes",
    "MinCPUsNode",
    "NumCPUs",
    "AdminComment",
    "Comment",
    "Priority",
)


@given(
    st.sampled_from((OLD, NEW)),
    st.dictionaries(st.sampled_from(_NAMES), st.sampled_from(("", "3", "2-5", "n[1-3]", "a=b"))),
)
def test_an_update_is_said_whole_or_not_at_all(api: Api, values: dict[str, str]) -> None:
    words = tuple(f"{name}={value}" for name, value in values.items())
    each = [body(api, word) for word in words]
    assert body(api, *words) == (
        None if None in each else {name: value for said in each for name, value in said.items()}
    )


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (None, "no OpenAPI document"),
        ({"paths": []}, "no OpenAPI document"),
        ({"paths": {}}, "not served"),
        ({"paths": {"/slurm/v0.0.37/job/{job_id}": {"post": {}}}}, "only before"),
        ({"paths": {"/slurm/v0.0.41/job/{job_id}": {"post": {}}}}, "not described"),
        (
            {"paths": {"/slurm/v0.0.41/job/{job_id}": {"post": {"requestBody": {"$ref": "#/a/b"}}}}},
            "not described",
        ),
    ],
)
def test_a_document_without_updates_of_jobs_is_refused(document: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_api(document)


@pytest.mark.skipif(not _SAMPLE.exists(), reason="the sample of 22.05.8 is not beside the repository")
def test_a_real_document_of_22_05() -> None:
    api = read_api(json.loads(_SAMPLE.read_bytes()))
    assert api == OLD
    assert api.members["nodelist"] is Shape.TEXT
