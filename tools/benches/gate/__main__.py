"""Print the table of the report: `python -m exo.tools.benches.gate`."""

from exo.tools.benches.gate import families

if __name__ == "__main__":
    print("\n".join(families()))
