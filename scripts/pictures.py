"""Pictures of what performance.py measured, as SVG: heat maps by rows and columns, times by size.

Nothing is needed but Python. A cell is a dictionary: `rows` and `cols`; `ours`, `theirs` and `limit` in
milliseconds; `ratio` and `share`; a value that was not measured is None.
"""

import math

SERIES = [
    ("ours", "this library", "#1f4e9c"),
    ("theirs", "the other library", "#c0392b"),
    ("limit", "a plain copy", "#777777"),
]
CELL, LINE, MARGIN = 58, 26, 64


def svg(width, height, parts):
    """A document with a white ground."""
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'>",
            f"<rect width='{width}' height='{height}' fill='white'/>",
            *parts,
            "</svg>",
            "",
        ]
    )


def label(x, y, text, anchor="middle", size=12, weight="normal"):
    """A text."""
    font = f"font-family='sans-serif' font-size='{size}' font-weight='{weight}'"
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {font}>{text}</text>"


def blend(full, share):
    """White at a share of 0, the full colour at 1."""
    share = max(0.0, min(1.0, share))
    return f"rgb({','.join(str(round(255 + (part - 255) * share)) for part in full)})"


def ratio_colour(ratio):
    """Red below 1, white at 1, blue above; full at a factor of 3."""
    share = math.log(ratio) / math.log(3)
    return blend((255, 80, 70), -share) if share < 0 else blend((80, 140, 255), share)


def share_colour(share):
    """White at nothing, green at the whole speed of a copy."""
    return blend((70, 200, 90), share)


def is_grid(cells):
    """Whether every number of rows meets every number of columns, and there are several of each."""
    rows, cols = {cell["rows"] for cell in cells}, {cell["cols"] for cell in cells}
    return len(rows) > 1 and len(cols) > 1 and len(rows) * len(cols) == len(cells)


def heat_map(cells, value, colour, title, left):
    """One map, `left` pixels from the left; how wide it is, and its parts."""
    across, down = (sorted({cell[name] for cell in cells}) for name in ("cols", "rows"))
    width = CELL * len(across) + MARGIN
    parts = [label(left + MARGIN + CELL * len(across) / 2, 38, title)]
    for i, cols in enumerate(across):
        parts.append(label(left + MARGIN + CELL * (i + 0.5), 58, cols))
    for j, rows in enumerate(down):
        parts.append(label(left + MARGIN - 8, 80 + LINE * j, rows, "end"))
    for cell in cells:
        number = cell[value]
        x = left + MARGIN + CELL * across.index(cell["cols"])
        y = 64 + LINE * down.index(cell["rows"])
        fill = "white" if number is None else colour(number)
        box = f"x='{x}' y='{y}' width='{CELL}' height='{LINE}'"
        parts.append(f"<rect {box} fill='{fill}' stroke='#bbbbbb'/>")
        parts.append(label(x + CELL / 2, y + 17, "-" if number is None else f"{number:.2f}"))
    return width, parts


def maps(title, cells):
    """The ratio and the share of the limit by rows (down) and columns (across), side by side."""
    known = [
        (value, colour, name)
        for value, colour, name in (
            ("ratio", ratio_colour, "times faster than the other library"),
            ("share", share_colour, "share of a plain copy's speed"),
        )
        if any(cell[value] is not None for cell in cells)
    ]
    left, parts = 0, []
    for value, colour, name in known:
        width, more = heat_map(cells, value, colour, name, left)
        left, parts = left + width, parts + more
    height = 76 + LINE * len({cell["rows"] for cell in cells})
    heading = label((left + 12) / 2, 17, title, weight="bold")
    return svg(left + 12, height, [heading, *parts])


def of_bytes(count):
    """1024 is 1 KiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}"
        count /= 1024
    raise AssertionError


def of_milliseconds(milliseconds):
    """0.001 is 1 us."""
    for factor, unit in ((1e6, "ns"), (1e3, "us"), (1, "ms")):
        if milliseconds * factor < 1000 or unit == "ms":
            return f"{milliseconds * factor:.0f} {unit}"
    raise AssertionError


def axis(low, high, base):
    """The powers of a base around some numbers, and where a number lies between their ends: 0 to 1."""
    first = math.floor(math.log(low, base) + 1e-9)
    last = max(math.ceil(math.log(high, base) - 1e-9), first + 1)
    ticks = [base**power for power in range(first, last + 1)]
    return ticks, lambda number: (math.log(number, base) - first) / (last - first)


def times(title, cells):
    """Time against bytes read and written, both logarithmic: a dot a problem, and a line through the
    geometric means of problems of one size."""
    width, height, left, top = 620, 380, 70, 34
    wide, high = width - left - 20, height - top - 46
    known = [series for series in SERIES if any(cell[series[0]] for cell in cells)]
    all_times = [cell[name] for cell in cells for name, _, _ in known if cell[name]]
    sizes = [cell["bytes"] for cell in cells]
    ticks_x, at_x = axis(min(sizes), max(sizes), 4)
    ticks_y, at_y = axis(min(all_times), max(all_times), 10)

    def place(size, time):
        return left + wide * at_x(size), top + high * (1 - at_y(time))

    parts = [label(width / 2, 18, title, weight="bold")]
    for tick in ticks_x:
        x, bottom = left + wide * at_x(tick), top + high
        parts.append(f"<path d='M{x:.1f} {top}V{bottom}' stroke='#dddddd'/>")
        parts.append(label(x, bottom + 17, of_bytes(tick), size=10))
    for tick in ticks_y:
        y = top + high * (1 - at_y(tick))
        parts.append(f"<path d='M{left} {y:.1f}H{left + wide}' stroke='#dddddd'/>")
        parts.append(label(left - 6, y + 4, of_milliseconds(tick), "end"))
    parts.append(label(left + wide / 2, height - 8, "bytes of the tensors"))
    for number, (name, said, colour) in enumerate(known):
        by_size = {}
        for cell in cells:
            if cell[name]:
                by_size.setdefault(cell["bytes"], []).append(cell[name])
                x, y = place(cell["bytes"], cell[name])
                dot = f"cx='{x:.1f}' cy='{y:.1f}' r='2.5'"
                parts.append(f"<circle {dot} fill='{colour}' fill-opacity='0.6'/>")
        points = []
        for size, values in sorted(by_size.items()):
            middle = math.exp(sum(map(math.log, values)) / len(values))
            points.append("{:.1f},{:.1f}".format(*place(size, middle)))
        line = f"fill='none' stroke='{colour}' stroke-width='1.5'"
        parts.append(f"<polyline points='{' '.join(points)}' {line}/>")
        y = top + 18 + 18 * number
        parts.append(f"<path d='M{left + 12} {y - 4}h22' stroke='{colour}' stroke-width='3'/>")
        parts.append(label(left + 40, y, said, "start"))
    return svg(width, height, parts)
