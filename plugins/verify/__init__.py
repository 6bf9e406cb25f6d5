"""Ground truth by execution: an exact simulator of small designs, `sparsemap verify`.

from sparsemap_plugins.verify import verify

found = verify(problem, designs, trials=20, seed=0)
print(found.text())"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparsemap import hookimpl

if TYPE_CHECKING:
    from sparsemap.searching.best import Best
    from sparsemap.searching.executed import Execution

    from .comparison import executed_over_analytic as executed_over_analytic
    from .interleaved import ChainVerification as ChainVerification
    from .interleaved import verify_chain as verify_chain
    from .report import CountRow as CountRow
    from .report import Verification as Verification
    from .run import TooLarge as TooLarge
    from .run import verify as verify

_LATER = {
    "executed_over_analytic": "comparison", "ChainVerification": "interleaved", "verify_chain": "interleaved",
    "CountRow": "report", "Verification": "report", "TooLarge": "run", "verify": "run",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@hookimpl
def execute_design(best: Best, seed: int) -> Execution | str:
    from .shortened import execution

    return execution(best, seed)
