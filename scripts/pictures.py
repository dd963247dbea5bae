#!/usr/bin/env python3
"""Draws the measurements of performance.py as SVG: heat maps by rows and columns, times by size.

A cell is a dictionary with `rows` and `cols`, `bytes` of the tensors, times in milliseconds (`ours_ms`,
`theirs_ms`, `copy_ms`), `ratio` and `share`; None where something was not measured. Needs matplotlib.
A module of performance.py, which has the options.
"""

import math

if __name__ == "__main__":
    # --help needs nothing but this file.
    import argparse

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    parser.error("this is a module; run scripts/performance.py")

import matplotlib  # noqa: E402

matplotlib.use("svg")
# The same data gives the same file: no date and no random ids. Text stays text.
matplotlib.rcParams.update({"svg.hashsalt": "libnorm", "svg.fonttype": "none", "font.size": 9})

from matplotlib import pyplot  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator  # noqa: E402

RATIO_COLOURS = LinearSegmentedColormap.from_list("ratio", ["#ff5046", "#ffffff", "#508cff"])
SHARE_COLOURS = LinearSegmentedColormap.from_list("share", ["#ffffff", "#46c85a"])
# The value, its title, colours, and scale: a ratio is white at 1 and full at a factor of 3.
MAPS = [
    ("ratio", "times faster than the other library", RATIO_COLOURS, LogNorm(1 / 3, 3, clip=True)),
    ("share", "share of a plain copy's speed", SHARE_COLOURS, Normalize(0, 1, clip=True)),
]
SERIES = [
    ("ours_ms", "this library", "#1f4e9c"),
    ("theirs_ms", "the other library", "#c0392b"),
    ("copy_ms", "a plain copy", "#777777"),
]


def is_grid(cells):
    """Whether the cells are all combinations of several rows and several columns."""
    rows, cols = {cell["rows"] for cell in cells}, {cell["cols"] for cell in cells}
    return len(rows) > 1 and len(cols) > 1 and len(rows) * len(cols) == len(cells)


def save(figure, path):
    """Writes the picture."""
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)


def heat_map(axes, cells, value, title, colours, scale):
    """Draws one value by rows (down) and columns (across)."""
    across, down = (sorted({cell[name] for cell in cells}) for name in ("cols", "rows"))
    grid = [[math.nan] * len(across) for _ in down]
    for cell in cells:
        if cell[value] is not None:
            i, j = down.index(cell["rows"]), across.index(cell["cols"])
            grid[i][j] = cell[value]
            axes.text(j, i, f"{cell[value]:.2f}", ha="center", va="center")
    axes.imshow(grid, cmap=colours, norm=scale, aspect="auto")
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.set_title(title, fontsize=9)


def maps(path, title, cells):
    """Draws ratio and share side by side; nothing if neither was measured."""
    known = [shown for shown in MAPS if any(cell[shown[0]] is not None for cell in cells)]
    if not known:
        return
    across = len({cell["cols"] for cell in cells})
    down = len({cell["rows"] for cell in cells})
    size = ((0.65 * across + 0.7) * len(known), 0.32 * down + 0.8)
    figure, all_axes = pyplot.subplots(1, len(known), figsize=size, squeeze=False)
    for axes, shown in zip(all_axes[0], known):
        heat_map(axes, cells, *shown)
    figure.suptitle(title, fontweight="bold", y=1.08)
    save(figure, path)


def of_bytes(count, _=None):
    """1024 is 1 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}"
        count /= 1024
    raise AssertionError


def of_milliseconds(milliseconds, _=None):
    """0.001 is 1 us."""
    for factor, unit in ((1e6, "ns"), (1e3, "us"), (1, "ms")):
        if milliseconds * factor < 999.5 or unit == "ms":
            return f"{milliseconds * factor:.0f} {unit}"
    raise AssertionError


def times(path, title, cells):
    """Time against bytes read and written: a dot per problem, a line through the geometric means of problems
    of one size; nothing if no time was kept."""
    known = [series for series in SERIES if any(cell[series[0]] for cell in cells)]
    if not known:
        return
    figure, axes = pyplot.subplots(figsize=(6.4, 3.9))
    for name, label, colour in known:
        by_size = {}
        for cell in cells:
            if cell[name]:
                by_size.setdefault(cell["bytes"], []).append(cell[name])
        dots = [(size, time) for size, of_size in by_size.items() for time in of_size]
        axes.scatter(*zip(*dots), s=8, color=colour, alpha=0.6)
        means = [(s, math.exp(sum(map(math.log, t)) / len(t))) for s, t in sorted(by_size.items())]
        axes.plot(*zip(*means), color=colour, linewidth=1.5, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=4))
    axes.xaxis.set_major_formatter(FuncFormatter(of_bytes))
    axes.yaxis.set_major_formatter(FuncFormatter(of_milliseconds))
    axes.set_xlabel("bytes of the tensors")
    axes.set_title(title, fontweight="bold")
    axes.grid(True, color="#dddddd")
    axes.legend(frameon=False)
    save(figure, path)
