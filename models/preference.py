"""How much a bid is liked: F of AUCSCHED1 and 2, K of AUCSCHED3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..bidgen.table import BidTable
from ..cluster.jobs import JobType

FloatArray = npt.NDArray[np.float64]

#: k1, k2, k3, k4 for classes A, B, C (rows) by job type 1, and by types 2 and 3.
Constants = Mapping[bool, tuple[tuple[float, float, float, float], ...]]

#: Table 5.2 as printed: for types 2 and 3 it ranks C above B, for type 1 its C overlaps B.
PRINTED: Constants = {
    True: ((0, 0.25, 0, 0.1), (0.25, 0.25, 0, 0.1), (0.4, 0.25, 0.25, 0.1)),
    False: ((0, 0, 0, 0.1), (0.5, 0, 0, 0.1), (0.4, 0, 0.1, 0.1)),
}
#: The same with the two slips mended: F_A > F_B > F_C, as (4.11) asks.
CORRECTED: Constants = {
    True: ((0, 0.25, 0, 0.1), (0.25, 0.25, 0, 0.1), (0.5, 0.25, 0.25, 0.1)),
    False: ((0, 0, 0, 0.1), (0.4, 0, 0, 0.1), (0.5, 0, 0.1, 0.1)),
}

#: Table 4.4 of AUCSCHED1, which has no term for gres.
TABLE_4_4: Constants = {
    True: ((0, 0.25, 0, 0), (0.25, 0.25, 0, 0), (0.5, 0.25, 0.25, 0)),
    False: ((0, 0, 0, 0), (0.5, 0, 0, 0), (0.5, 0, 0.5, 0)),
}

#: The tables a caller may choose from for AUCSCHED2.
PREFERENCE_TABLES: Mapping[str, Constants] = {"corrected": CORRECTED, "printed": PRINTED}


def preference_f(table: BidTable, nodes: int, constants: Constants) -> FloatArray:
    """Return F of every bid (Soner, equation 5.7); higher is better, above 1 by at most k4.

    F = 1 − k1 − k2·|N_c|/(|N|+1) − k3·|S_c|/(|S|+1) + k4·(R_i+1)/(R_max+1), the last term a mean
    over the job's gres.
    """
    of_cores = np.array([demand.type is JobType.CORES for demand in table.demands], np.bool_)[table.job]
    k = np.where(
        of_cores[:, None],
        np.array(constants[True])[table.bid_class],
        np.array(constants[False])[table.bid_class],
    )
    result: FloatArray = (
        1.0
        - k[:, 0]
        - k[:, 1] * table.lengths / (nodes + 1)
        - k[:, 2] * table.nodesets / (table.general_nodesets + 1)
        + k[:, 3] * table.gres_ratio
    )
    return result


def cost_k(table: BidTable, nodes: int, max_level: int) -> FloatArray:
    """Return K of every bid (Soner, equation 6.5); lower is better, in (0, 3].

    K = 1 + N_i/|N| + L_i/L_max − R_i/G_max; a term whose divisor is 0 is 0. L_i counts as 0 of a
    job whose segments may be anywhere.
    """
    counts = np.array([not demand.is_anywhere for demand in table.demands], np.bool_)[table.job]
    levels = counts * table.level / max_level if max_level else np.zeros(len(table))
    result: FloatArray = 1.0 + table.lengths / nodes + levels - table.gres_share
    return result
