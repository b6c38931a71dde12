"""Print the table of the report: `python -m exo.tools.benches.gate`."""

from exo.tools.benches.gate import families

print("\n".join(families()))
