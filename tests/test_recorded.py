"""Answers are the recorded ones: an intended change records them anew, and its commit names the cases."""

from __future__ import annotations

from support.recorded import cases, differences


def test_answers_are_as_recorded() -> None:
    assert differences() == []


def test_there_are_three_hundred_cases_and_each_has_a_name_of_its_own() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names) >= 300
