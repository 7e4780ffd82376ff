# SPDX-License-Identifier: BSD-2-Clause
"""Line plots as SVG, with axes that grow by factors of ten (or two, or evenly); no library needed."""
import html
import math

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 50
# To be told apart without colours as well: each line has marks of its own.
COLOURS = ("#0b62a4", "#c44900", "#3a7d2c", "#7b3294", "#666666")
MARKS = (
    '<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>',
    '<rect x="{x0:.1f}" y="{y0:.1f}" width="7" height="7"/>',
    '<path d="M{x:.1f} {y0:.1f}l4 7h-8z"/>',
    '<path d="M{x:.1f} {y0:.1f}l4 4-4 4-4-4z"/>',
    '<path d="M{x0:.1f} {y0:.1f}l7 7m0-7l-7 7" stroke="{colour}"/>',
)


class Axis:
    """Numbers -> places between `begin` and `end`. Logarithmic, from a power of `base` to another; or even,
    from 0, when base is None."""

    def __init__(self, values, begin, end, base=10):
        self.begin, self.end, self.base = begin, end, base
        if base:
            self.low = math.floor(math.log(min(values), base) + 1e-9)
            self.high = max(math.ceil(math.log(max(values), base) - 1e-9), self.low + 1)
        else:
            self.low = 0
            self.step = nice_step(max(values))
            self.high = math.ceil(max(values) / self.step) * self.step or 1

    def place(self, value):
        at = math.log(value, self.base) if self.base else value
        return self.begin + (at - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        if self.base:
            return [self.base ** power for power in range(self.low, self.high + 1)]
        return [self.step * i for i in range(round(self.high / self.step) + 1)]


def nice_step(most):
    """1, 2 or 5 times a power of ten, of which `most` has four to ten."""
    if most <= 0:
        return 1
    power = 10 ** math.floor(math.log10(most))
    for factor in (0.1, 0.2, 0.5, 1):
        if most / (power * factor) <= 10:
            return power * factor
    return power


def short(value):
    """1000 -> 1 k, 2500000 -> 2.5 M, 1024 -> 1,024"""
    if value >= 1000 and value % 100:
        return f"{value:,.0f}"
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def mark(number, x, y):
    colour = COLOURS[number % len(COLOURS)]
    shape = MARKS[number % len(MARKS)].format(x=x, y=y, x0=x - 3.5, y0=y - 3.5, colour=colour)
    return f'<g fill="{colour}">{shape}</g>'


def grid(x_axis, y_axis):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in y_axis.ticks():
        y = y_axis.place(value)
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
    for value in x_axis.ticks():
        x = x_axis.place(value)
        yield f'<path d="M{x:.1f} {bottom}v5" stroke="#444"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{short(value)}</text>'
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#444"/>'


def spread(places, least):
    """Places for names: in their order, at least so far apart."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = list(places)
    for before, this in zip(order, order[1:]):
        found[this] = max(found[this], found[before] + least)
    return found


def lines(series, x_axis, y_axis):
    ends = []
    for number, points in enumerate(series.values()):
        at = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        colour = COLOURS[number % len(COLOURS)]
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        yield from (mark(number, x, y) for x, y in at)
        ends.append(at[-1][1])
    for number, (name, y) in enumerate(zip(series, spread(ends, 15))):
        yield (f'<text x="{WIDTH - RIGHT + 10}" y="{y + 4:.1f}" '
               f'fill="{COLOURS[number % len(COLOURS)]}">{html.escape(name)}</text>')


def draw(title, x_name, y_name, series, x_base=10, y_base=10):
    """series: {name: [(x, y), ...]}, each with a point at least. On a logarithmic axis what is not above 0
    has no place, and is left out."""
    kept = {}
    for name, points in series.items():
        points = [(x, y) for x, y in points if (not x_base or x > 0) and (not y_base or y > 0)]
        if points:
            kept[name] = sorted(points)
    xs = [x for points in kept.values() for x, _ in points]
    ys = [y for points in kept.values() for _, y in points]
    x_axis = Axis(xs, LEFT, WIDTH - RIGHT, x_base)
    y_axis = Axis(ys, HEIGHT - BOTTOM, TOP, y_base)
    middle = (LEFT + WIDTH - RIGHT) / 2
    return "\n".join([
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!-- SPDX-License-Identifier: BSD-2-Clause -->',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">',
        f'<title>{html.escape(title)}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{middle}" y="22" text-anchor="middle" font-size="14">{html.escape(title)}</text>',
        *grid(x_axis, y_axis),
        f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{html.escape(x_name)}</text>',
        f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{html.escape(y_name)}</text>',
        *lines(kept, x_axis, y_axis),
        "</svg>", ""])
