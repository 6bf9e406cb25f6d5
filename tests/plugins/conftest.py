"""A network that trains in a second, for pruning and for pages about it."""

import attrs
import pytest
from sparsemap_plugins.pruning import digits


@pytest.fixture(scope="session")
def quick():
    """Digits with a small network that is trained for an epoch only."""
    pytest.importorskip("sklearn")
    recipe = digits.RECIPES["conv3-fc1"]
    recipe = attrs.evolve(recipe, epochs=1, shapes=[attrs.evolve(x, outputs=min(x.outputs, 16)) for x in recipe.shapes])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(digits.RECIPES, "quick", recipe)
        yield "quick"
