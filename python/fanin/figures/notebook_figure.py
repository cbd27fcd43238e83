"""A Matplotlib figure that a notebook shows by itself, though no backend of a window or a notebook made it."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A `matplotlib.figure.Figure` with a picture of itself for notebooks."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=150)
        return file.getvalue()
