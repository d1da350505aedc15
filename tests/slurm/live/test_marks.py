"""A mark comes back as it was written, whatever a site's comment holds, and scontrol reads it as one word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucsched.slurm.live.actions import line
from aucsched.slurm.live.live_queue import Carrier, Mark, read_mark, read_queue, write_mark
from aucsched.slurm.place import CannotPlaceError

COUNTS = st.integers(0, 10**6)
MARKS = st.builds(
    Mark,
    since=st.integers(0, 10**11),
    tries=COUNTS,
    cores=st.lists(st.integers(0, 300), max_size=30).map(tuple),
    gres=st.dictionaries(st.text(min_size=1, max_size=8), st.integers(1, 9), max_size=2),
    nodes=st.text(max_size=30),
    span=st.tuples(COUNTS, COUNTS),
    cpus=COUNTS,
    min_cpus=st.integers(1, 99),
    partition=st.text(max_size=30),
    comment=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)


@given(MARKS)
def test_a_mark_comes_back(mark: Mark) -> None:
    text = write_mark(mark)
    assert read_mark(text) == mark
    assert line(("update", f"AdminComment={text}"))


@given(st.text(max_size=80))
def test_a_comment_of_somebody_elses_is_no_mark(text: str) -> None:
    assert read_mark(text) is None or text.startswith("aucsched?")
    assert read_mark(f"aucsched?v=1&since={text}x") is None
    read_mark(f"aucsched?{text}")


def test_long_rows_of_equal_cores_stay_short() -> None:
    assert len(write_mark(Mark(since=1, cores=(12,) * 1400))) < 60


@pytest.mark.parametrize("word", ["two words", "a\nb", "it's", 'a"b', "ä", "back\\slash", ""])
def test_what_scontrol_would_read_otherwise_is_no_word(word: str) -> None:
    with pytest.raises(CannotPlaceError, match="is not a word"):
        line(("update", word))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_a_comment_of_any_encoding_keeps_its_letters_in_a_mark(encoding: str) -> None:
    record = '{"job_id": 7, "job_state": "PENDING", "tres_req_str": "", "comment": "größer"}'
    content = f'{{"jobs": [{record}]}}'.encode(encoding)
    (job,) = read_queue(content, "squeue", carrier=Carrier.COMMENT).values()
    mark = read_mark(write_mark(Mark(comment=job.comment)))
    assert mark is not None
    assert mark.comment == "größer"
