"""Maps the folders `plugins/` and `specs/` to the packages `sparsemap_plugins` and `sparsemap_specs`.

The list of sub-packages is read from the tree, so that adding a built-in plugin edits no list. Everything else is in
`pyproject.toml`.
"""

from setuptools import find_namespace_packages, find_packages, setup

folders = find_namespace_packages("plugins", exclude=["*__pycache__*"])  # also those that hold specs only
plugins = ["sparsemap_plugins", *(f"sparsemap_plugins.{name}" for name in folders)]
core = ["sparsemap", *(f"sparsemap.{name}" for name in find_packages("sparsemap"))]
specs = ["sparsemap_specs", *(f"sparsemap_specs.{name}" for name in find_namespace_packages("specs"))]

setup(
    packages=[*core, *plugins, *specs],
    package_dir={"sparsemap": "sparsemap", "sparsemap_plugins": "plugins", "sparsemap_specs": "specs"},
    package_data={
        "sparsemap": ["py.typed"],
        **{name: ["*.toml", "*.csv", "*.json", "*.jinja", "*.md"] for name in [*plugins, *specs]},
    },
)
