"""``aucsched simulate``: a thin command over the simulator."""

from typing import Any

import click

from ..cluster.errors import OptionError
from ..simulation.policy_names import split_policies, with_parameters
from ..simulation.simulate_options import EVOLVING, MALLEABLE_POLICIES, current_name
from .built_options import INPUT, SectionCommand, click_option, in_section, record_options
from .evolve import evolving_options, refuse_evolving, simulate_evolving_workload
from .malleable_options import (
    check_malleable,
    malleable_options,
    refuse_malleable,
    simulate_malleable_log,
)
from .outputs import RunFiles, format_option, output_option, processors_option, workload_argument
from .policy_options import ORDER_OPTIONS, check_policy_options, note_old_flags, policy_options
from .simulate_runs import (
    ForecastOptions,
    asked_at,
    check_log_options,
    is_native,
    machine_processors,
    node_options,
    simulate_on_log,
    simulate_on_nodes,
    simulate_several,
)

_EXAMPLES = """\b
Examples:
  aucsched simulate examples/days.swf --policy easy,slack:factor=0.5
  aucsched simulate examples/overtaken.json --policy aucsched3 --gantt run.svg
  aucsched simulate dynamic-esp --policy evolving --requests refuse
"""


@click.command(cls=SectionCommand, epilog=_EXAMPLES)
@workload_argument
@policy_options
@in_section(
    "Logs: a machine of equal processors",
    processors_option,
    click.option(
        "--cluster",
        type=INPUT,
        help="A snapshot whose cores are the machine's processors.",
    ),
    click.option(
        "--check", is_flag=True, help="Check every start against every rule; results do not change."
    ),
    *(click_option(one) for one in ORDER_OPTIONS),
)
@in_section("Nodes: a machine of nodes, and auctions on it", node_options)
@in_section("Malleable: applications of a log that grow and shrink", malleable_options)
@in_section("Evolving: running jobs of dynamic-esp or quadflow that ask for more", evolving_options)
@in_section("Output", format_option, output_option, record_options(RunFiles, ForecastOptions))
def simulate(workload: str, **options: Any) -> None:
    """Simulate a log (SWF) or a workload of nodes under a policy, and print the metrics.

    A log is read plain or gzip; a workload of nodes is what aucsched workload makes; - reads standard
    input. Under --policy evolving it is dynamic-esp or quadflow, in an order that --seed draws.
    """
    policies = split_policies(options["policy"])
    if len(policies) > 1:
        refuse_evolving(workload, options)
        simulate_several(workload, policies, options)
    else:
        _simulate_one(workload, policies[0], with_parameters(options, policies[0]))
    note_old_flags(options)


def _simulate_one(workload: str, policy: str, options: dict[str, Any]) -> None:
    """Run one policy over the machine that the input and the policy ask for."""
    if options["policy"] == EVOLVING:
        simulate_evolving_workload(workload, options)
        return
    refuse_evolving(workload, options)
    is_malleable = options["policy"] in MALLEABLE_POLICIES
    if is_native(workload):
        if is_malleable:
            raise OptionError(f"--policy {options['policy']} needs a log, not a workload of nodes")
        refuse_malleable(options)
        simulate_on_nodes(workload, options)
        return
    options["policy"] = current_name(options["policy"])
    check_log_options(options)
    check_policy_options(options)
    asked_at(options)
    if is_malleable:
        check_malleable(options)
        simulate_malleable_log(workload, options, machine_processors(options))
        return
    refuse_malleable(options)
    simulate_on_log(workload, policy, options)
