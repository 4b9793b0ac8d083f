"""Conway's Game of Life: the neighbours are counted by conv2d, the rule is two masks, the world ends where it begins.

    python examples/game_of_life.py                      # on the GPU where there is one; writes life.gif
    python examples/game_of_life.py --device cpu --size 96 --steps 300 --out life.png

A name that ends in .gif becomes an animation, another one a sheet of nine moments. The whole game stays on the device:
the report of transfers at the end has the pictures and the number of the living, and nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

import devtensor as dt

GLIDER_GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


def pattern(text: str, size: int) -> dt.Tensor:
    """A world (size, size) of bools with the pattern in its upper left corner, on the host."""
    lines = text.split()
    world = dt.zeros(size, size, dtype=dt.bool)
    world[: len(lines), : len(lines[0])] = dt.tensor([[cell == "O" for cell in line] for line in lines])
    return world


def play(world: dt.Tensor, steps: int) -> dt.Tensor:
    """The world and what becomes of it: (steps + 1, H, W) bools on its device."""
    around = dt.ones(1, 1, 3, 3, device=world.device)
    around[0, 0, 1, 1] = 0
    alive = world[None, None]
    history = [alive]
    for _ in tqdm(range(steps), "generations", leave=False, disable=None):
        neighbours = dt.conv2d(dt.pad(alive.float(), (1, 1, 1, 1), "circular"), around)
        alive = (neighbours == 3) | (alive & (neighbours == 2))
        history.append(alive)
    return dt.cat(history).squeeze(1)


def draw(worlds: np.ndarray, file: str) -> None:
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.figure import Figure

    if not file.endswith(".gif"):
        figure = Figure(figsize=(6, 6), layout="constrained")
        moments = np.linspace(0, len(worlds) - 1, 9).astype(int)
        for panel, i in zip(figure.subplots(3, 3).flat, moments, strict=True):
            panel.imshow(worlds[i], cmap="binary")
            panel.set_title(f"generation {i}", fontsize=8)
            panel.set(xticks=[], yticks=[])
        figure.savefig(file)
        return
    figure = Figure(figsize=(4, 4))
    panel = figure.add_axes((0, 0, 1, 1), frameon=False, xticks=[], yticks=[])
    image = panel.imshow(worlds[0], cmap="binary", vmin=0, vmax=1)
    with tqdm(total=len(worlds), desc="drawing", leave=False, disable=None) as bar:
        animation = FuncAnimation(figure, lambda i: [image.set_data(worlds[i])], len(worlds))
        animation.save(file, PillowWriter(fps=20), progress_callback=lambda i, n: bar.update())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto: the GPU where there is one")
    parser.add_argument("--size", type=int, default=64, help="height and width of the world")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", default="life.gif")
    options = parser.parse_args(arguments)
    auto = "cuda" if dt.cuda.is_available() else "cpu"
    device = dt.device(auto if options.device == "auto" else options.device)

    world = pattern(GLIDER_GUN, options.size).to(device)
    with dt.record_transfers() as log:
        worlds = play(world, options.steps)
        population = worlds.sum((1, 2)).cpu()  # bools count as whole numbers
        frames = worlds.cpu().numpy()
    print(f"{options.steps} generations of {options.size} x {options.size} on {device}")
    print(f"alive: {population[0].item()} at first, {population.max().item()} at most, {population[-1].item()} at last")
    print(log)
    draw(frames, options.out)
    print(f"{options.out} written")


if __name__ == "__main__":
    main()
