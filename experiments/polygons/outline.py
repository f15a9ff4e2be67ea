"""A real outline as a region: mainland France, with 48 corners, as shipped in the package `countryinfo` (MIT licence; extra `data`)."""

from fractions import Fraction
from typing import Any

from dpjax.concepts import polygons as concept
from experiments.refusals import Refused

Corner = tuple[int, int]


def france(bits: int) -> tuple[Any, list[Corner]]:
    """(the region, its corners) on the grid; a degree of longitude is as long as it is in the middle of the country.

    Raises:
        Refused: countryinfo is not installed.
    """
    try:
        from countryinfo import CountryInfo
    except ImportError:
        raise Refused("the outline of a country needs the package countryinfo: pip install '.[data]'") from None
    shapes = CountryInfo("France").geo_json()["features"][0]["geometry"]["coordinates"]
    longest = max((shape[0] for shape in shapes), key=len)
    corners = placed([(0.69 * east, north) for east, north in longest[:-1]], bits)  # cos(46.4 degrees)
    return concept.union(bits=bits, parts=triangles(corners)), corners


def placed(points: list[tuple[float, float]], bits: int) -> list[Corner]:
    """The points on the grid, with a margin of a tenth, neither rotated nor distorted."""
    lows = [min(point[axis] for point in points) for axis in (0, 1)]
    highs = [max(point[axis] for point in points) for axis in (0, 1)]
    scale = 0.8 * (2**bits - 1) / max(high - low for low, high in zip(lows, highs, strict=True))
    starts = [(2**bits - 1 - scale * (high - low)) / 2 for low, high in zip(lows, highs, strict=True)]
    found = [
        tuple(round(start + scale * (value - low)) for value, low, start in zip(point, lows, starts, strict=True))
        for point in points
    ]
    return [(x, y) for i, (x, y) in enumerate(found) if (x, y) != found[i - 1]]


def triangles(corners: list[Corner]) -> list[list[Corner]]:
    """A simple polygon cut into triangles, ear by ear; an ear is a corner whose triangle holds no other corner.

    >>> triangles([(0, 0), (4, 0), (1, 1), (0, 4)])
    [[(0, 0), (4, 0), (1, 1)], [(0, 0), (1, 1), (0, 4)]]
    """
    left, found = list(corners if _area(corners) > 0 else reversed(corners)), []
    while len(left) > 3:
        for i in range(len(left)):
            ear = [left[i - 1], left[i], left[(i + 1) % len(left)]]
            if _area(ear) > 0 and not any(_holds(ear, corner) for corner in left if corner not in ear):
                found.append(ear)
                del left[i]
                break
        else:
            raise ValueError("corners must be those of a simple polygon")
    return [ear for ear in [*found, left] if _area(ear)]


def _area(corners: list[Corner]) -> Fraction:
    """Twice the area, positive if corners turn left."""
    pairs = zip(corners, corners[1:] + corners[:1], strict=True)
    return Fraction(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in pairs))


def _holds(triangle: list[Corner], point: Corner) -> bool:
    """Whether a triangle that turns left holds a point, its edges included."""
    edges = zip(triangle, triangle[1:] + triangle[:1], strict=True)
    return all((x2 - x1) * (point[1] - y1) >= (y2 - y1) * (point[0] - x1) for (x1, y1), (x2, y2) in edges)
