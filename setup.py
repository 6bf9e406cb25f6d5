"""Maps the folders `plugins/` and `specs/` to the packages `sparsemap_plugins` and `sparsemap_specs`.

The list of sub-packages is read from the tree, so that adding a built-in plugin edits no list. A build writes the schemas
of the specs, for which it needs what SparseMap needs when it runs. Everything else is in `pyproject.toml`.
"""

import atexit
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tomllib
from pathlib import Path

from setuptools import Extension, find_namespace_packages, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py


class BuildElsewhere(build):
    """Builds in a folder for temporary files, so that an installation leaves no `build/` in the clone."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="sparsemap-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class BuildWithSchemas(build_py):
    """Writes `sparsemap_specs/schemas/KIND.json` from the classes that were built; an editable installation has none."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        path = os.pathsep.join(filter(None, [os.path.abspath(self.build_lib), os.environ.get("PYTHONPATH")]))
        others = {key: value for key, value in os.environ.items() if not key.startswith("SPARSEMAP_")}
        out = os.path.join(os.path.abspath(self.build_lib), "sparsemap_specs", "schemas")
        words = [sys.executable, "-m", "sparsemap", "extra", "schema", "--all", "--out", out]
        subprocess.run(
            words, check=True, stdout=subprocess.DEVNULL, env={**others, "PYTHONPATH": path}, cwd=self.build_lib
        )


class BuildUnits(build_ext):
    """Merges the modules of each folder `inner` into one text, and compiles it (`sparsemap/inner`), on all processors: one
    unit is translated at a time while the C compiler works on others."""

    translating = threading.Lock()

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        with self.translating:
            self.translate(ext)
        super().build_extension(ext)

    def translate(self, ext: Extension) -> None:
        sys.path.insert(0, str(HERE))
        from Cython.Compiler.Main import compile as translate  # what a build asks for (`pyproject.toml`)

        from sparsemap.inner.merging import merged

        text = Path(self.build_temp, ext.name + ".pyx")
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text(merged(HERE / Path(ext.sources[0]).parent), "utf-8")
        ext.sources = [str(text.with_suffix(".c"))]
        if translate(str(text), full_module_name=ext.name, output_file=ext.sources[0]).num_errors:
            raise RuntimeError(f"{ext.name}: Cython does not compile {text}")
        written = Path(ext.sources[0]).read_text("utf-8")
        loops = r"(?m)^static void (?=__pyx_f_\w+\((?!.*__pyx_obj))"  # those without records: see `primitives.py`
        wide = re.sub(loops, "static WIDE void ", written)
        Path(ext.sources[0]).write_text(wide, "utf-8")

    def copy_extensions_to_source(self) -> None:
        """Also removes units of earlier builds with another suffix: Python would load these first."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            package, _, name = ext.name.rpartition(".")
            folder = Path(self.get_finalized_command("build_py").get_package_dir(package))
            built = folder / Path(self.get_ext_filename(ext.name)).name
            for file in folder.glob(f"{name}.*") if built.exists() else ():
                if file != built and file.suffix in (".so", ".pyd"):
                    file.unlink()


def unit(package: str) -> Extension:
    """The compiled unit of a folder `inner`; without a compiler CPython runs its modules, with the same numbers."""
    folder = Path(package.replace("sparsemap_plugins", "plugins").replace(".", "/"))
    flags = [] if os.name == "nt" else ["-O2", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
    if flags and platform.machine() == "x86_64":
        flags.append("-msse4.1")
    sources = sorted(map(str, folder.glob("*.py")))
    return Extension(f"{package}.unit", sources, optional=True, extra_compile_args=flags, **STABLE)


LIMITED = platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
STABLE = {"py_limited_api": True, "define_macros": [("Py_LIMITED_API", "0x030B0000")]} if LIMITED else {}
"""Units for the stable ABI of CPython 3.11: one wheel per system serves later versions too."""
HERE = Path(__file__).parent.resolve()
PAGES = "sparsemap_plugins.kit.pages"
"""The pages of plugins, whose blocks `sparsemap new-plugin` cuts out."""
project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text("utf-8"))["project"]
folders = find_namespace_packages("plugins", exclude=["*__pycache__*"])  # also those that hold specs only
plugins = ["sparsemap_plugins", *(f"sparsemap_plugins.{name}" for name in folders)]
core = ["sparsemap", *(f"sparsemap.{name}" for name in find_packages("sparsemap"))]
data = find_namespace_packages("specs", exclude=["*__pycache__*", "schemas"])
specs = ["sparsemap_specs", *(f"sparsemap_specs.{name}" for name in data)]

setup(
    packages=[*core, *plugins, PAGES, *specs],
    package_dir={
        "sparsemap": "sparsemap",
        "sparsemap_plugins": "plugins",
        "sparsemap_specs": "specs",
        PAGES: "docs/plugins",
    },
    package_data={
        "sparsemap": ["py.typed", "*.pyi", "*.mplstyle"],
        PAGES: ["*.md"],
        **{name: ["*.toml", "*.csv", "*.json", "*.jinja", "*.md"] for name in [*plugins, *specs]},
    },
    ext_modules=sorted(
        (unit(name) for name in ("sparsemap.inner", *plugins) if name.endswith(".inner")),
        key=lambda ext: -sum(os.path.getsize(file) for file in ext.sources),  # the longest starts first
    ),
    cmdclass={"build": BuildElsewhere, "build_py": BuildWithSchemas, "build_ext": BuildUnits},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {},
    setup_requires=project["dependencies"],
)
