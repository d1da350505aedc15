"""What stands on no node: a pool of somebody's own has to say all that the accounts ask of it."""

from __future__ import annotations

import pytest

from aucsched.cluster.resources.pools import ResourcePool


def test_a_pool_that_leaves_something_unsaid_is_refused() -> None:
    class Quiet(ResourcePool):
        family = "quiet"

    unsaid = r"alike\W+capacity\W+holds_queue\W+lacking\W+reason\W+(and )?takes"
    with pytest.raises(TypeError, match=unsaid):
        Quiet()  # type: ignore[abstract]
