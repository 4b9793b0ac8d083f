"""Tables, files and plots from a record."""

import contextlib
import re

TITLES = {
    "devtensor": "devtensor",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "torch, tuned": "PyTorch, cudnn.benchmark",
    "torch, two steps": "PyTorch, two steps",
    "cupy": "CuPy",
    "control": "control",
}
PEERS = [name for name in TITLES if name not in ("devtensor", "control")]


@contextlib.contextmanager
def progress(total):
    """A function to call after every turn; a bar where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda: None
        return
    with tqdm(total=total, unit="turn", smoothing=0.05, leave=False, disable=None) as bar:
        yield lambda: bar.update(1)


def duration(ns):
    for limit, scale, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if ns < limit:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"


def cells(row, peers):
    ours = duration(row["median_ns"]["devtensor"])
    if row["unit"]:
        ours += f" ({row['rate']['devtensor']:.3g} {row['unit']})"
    out = [row["name"], ours]
    for peer in [*peers, "control"]:
        if peer not in row["median_ns"]:
            out.append("")
            continue
        low, middle, high = row["ratio_quartiles"][peer]
        text = f"{middle:.2f} ({low:.2f} to {high:.2f})"
        out.append(text if peer == "control" else f"{duration(row['median_ns'][peer])}, **{text}**")
    return out


def peers_of(record):
    return [p for p in PEERS if any(p in row["median_ns"] for row in record["rows"])]


def table(record):
    """One Markdown table: times are medians, ratios peer time over our time with quartiles."""
    peers = peers_of(record)
    head = ["", "devtensor", *(f"{TITLES[p]}, ratio" for p in peers), "control"]
    lines = [head, ["---"] * len(head), *(cells(row, peers) for row in record["rows"])]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown(record):
    facts = "\n".join(f"- {key}: {value}" for key, value in record["machine"].items())
    legend = (
        "Times are medians of interleaved rounds. A ratio is the peer's time over devtensor's in the same round, as"
        " median (quartiles): above 1, devtensor is faster. The control is devtensor against itself; what differs from"
        " 1 there is noise."
    )
    title = f"Benchmarks ({record['machine']['simulated']})" if record["machine"].get("simulated") else "Benchmarks"
    return f"# {title}\n\n{facts}\n\n{legend}\n\n{table(record)}\n"


def file_stem(meta):
    model = re.sub(r"[^A-Za-z0-9]+", "-", meta["cpu"]).strip("-").lower()
    quick = "-quick" if meta["effort"] == "quick" else ""
    return f"{meta['date']}-{model}-{meta['instruction_set'].lower()}-{meta['threads']}t{quick}"


def plot(record, path):
    """A dot for each ratio, with its quartiles; nothing where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = record["rows"]
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.3 * len(rows)), layout="constrained")
    for peer in [*peers_of(record), "control"]:
        points = [(i, row["ratio_quartiles"][peer]) for i, row in enumerate(rows) if peer in row["ratio_quartiles"]]
        middle = [q[1] for _, q in points]
        spread = [[q[1] - q[0] for _, q in points], [q[2] - q[1] for _, q in points]]
        axes.errorbar(middle, [i for i, _ in points], xerr=spread, fmt="o", label=TITLES[peer], capsize=2)
    axes.axvline(1.0, color="grey", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("peer time / devtensor time")
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
