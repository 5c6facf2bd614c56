"""A game as a GIF: its boards, one after the other."""

from collections.abc import Iterable
from io import BytesIO

from ..pictures.colors import variables
from ..pictures.png import package, png
from .replay import Replay, frame_svg

SECONDS = 1.1  # that each board is shown


def gif(replay: Replay, theme: str = "light", width: int = 640, last: int | None = None) -> bytes:
    """Return the boards of a game up to frame `last`, each `width` pixels wide, as a GIF."""
    image, frames = package("PIL.Image", "pillow"), []
    for number in range(len(replay.frames) if last is None else last + 1):
        picture = png(frame_svg(replay, number, theme), replay.map, theme, width)
        frames.append(image.open(BytesIO(picture)).convert("RGB"))
    palette = _palette(frames, variables(replay.map, theme == "dark").values())
    first, *rest = [frame.quantize(palette=palette, dither=image.Dither.NONE) for frame in frames]
    file, time = BytesIO(), round(1000 * SECONDS)
    first.save(file, "GIF", save_all=True, append_images=rest, duration=time, loop=0, optimize=True)
    return file.getvalue()


def _palette(frames: list, colors: Iterable[str]):
    """Return one palette for all frames, else the ground flickers. Each color gets an area as well:
    large grounds would outvote small marks."""
    image = package("PIL.Image", "pillow")
    width, height = frames[0].size
    sample = image.new("RGB", (width, 3 * height))
    for number, frame in enumerate((frames[len(frames) // 2], frames[-1])):
        sample.paste(frame, (0, number * height))
    side = width // 10
    for number, color in enumerate(sorted(set(colors))):
        x, y = number % 10 * side, 2 * height + number // 10 * side
        sample.paste(color, (x, y, x + side, y + side))
    return sample.quantize(128, image.Quantize.MEDIANCUT)
