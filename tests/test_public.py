"""The public names: each has a docstring with an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import os
from pathlib import Path

import pytest

import aucsched

NAMES = [name for name in aucsched.__all__ if name != "__version__"]


def _examples(name: str) -> list[doctest.DocTest]:
    value = getattr(aucsched, name)
    found = doctest.DocTestFinder(exclude_empty=True).find(value, name, module=inspect.getmodule(value))
    return [one for one in found if one.examples]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is_by_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = getattr(aucsched, name)
    assert inspect.getdoc(value), name
    tests = _examples(name)
    assert tests, f"{name} has no example"
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        test.globs |= {one: getattr(aucsched, one) for one in NAMES}
        test.globs["aucsched"] = aucsched
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    assert os.listdir(tmp_path) == [] or name.startswith(("save", "load"))  # noqa: PTH208


def test_dir_shows_the_public_names_only() -> None:
    assert dir(aucsched) == sorted(aucsched.__all__)


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(getattr(aucsched, name))])
def test_a_function_says_what_it_takes_and_raises(name: str) -> None:
    text = inspect.getdoc(getattr(aucsched, name)) or ""
    assert "Raises:" in text, name


@pytest.mark.parametrize("name", ["schedule", "explain", "compare", "simulate", "sweep"])
def test_help_lists_options_before_the_examples_as_python_spells_them(name: str) -> None:
    text = inspect.getdoc(getattr(aucsched, name)) or ""
    before, options = text.split("\nOptions:\n")
    told, _, examples = options.partition("\nExamples:\n")
    assert "Args:" in before
    assert "work_limit:" in told
    assert "--" not in told
    assert ">>> " in examples
