"""Tables, files and plots from a record."""

import contextlib
import csv
import math
import re

TITLES = {
    "devtensor": "devtensor",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "torch, tuned": "PyTorch, cudnn.benchmark",
    "torch, two steps": "PyTorch, two steps",
    "cupy": "CuPy",
    "simulated": "simulated GPU",
    "interpreter": "the interpreter's own",
    "control": "control",
}
VERDICTS = ("miss", "pass", "aim")
FLOOR = 1 / 1.5  # of the time of the interpreter's own types: a small call cannot aim higher
UNITS = {"GFLOP/s": ("float32 GFLOP/s", "float64 GFLOP/s"), "GB/s": ("GB/s", "GB/s")}
PEERS = [name for name in TITLES if name not in ("devtensor", "control")]
RIVALS = [name for name in PEERS if name != "interpreter"]


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


def of_ceiling(row, ceilings):
    """The rate as a fraction of the most that was measured on this machine; None where that is unknown."""
    if row.get("unit") not in UNITS:
        return None
    limit = ceilings.get(UNITS[row["unit"]]["float64" in row["name"]])
    return row["rate"]["devtensor"] / limit if limit else None


def reached(ratios, target):
    """{peer: 0 for a miss, 1 for a pass, 2 for an aim}. What passes beside NumPy and takes hardly longer than the
    interpreter's own types has reached its aim."""
    at_floor = ratios.get("interpreter", 0) >= FLOOR
    out = {}
    for peer, (good, best) in target.items():
        if peer in ratios:
            most = good if peer == "numpy" and at_floor else best
            out[peer] = 2 if ratios[peer] >= most else 1 if ratios[peer] >= good else 0
    return out


def verdict(ratios, target):
    """The worst over the peers of "aim", "pass" and "miss"; empty without a target."""
    found = reached(ratios, target).values()
    return VERDICTS[min(found)] if found else ""


def goals(record):
    """How many goals, each a row beside a peer or the mean of a group, are at the aim, passed and missed."""
    from .rows import GROUP_TARGETS

    found = [list(reached(medians(row), row.get("target", {})).values()) for row in record["rows"]]
    found += [list(reached(means, GROUP_TARGETS[group]).values()) for group, means in geometric_means(record).items()]
    counts = [sum(goal.count(level) for goal in found) for level in (2, 1, 0)]
    return "Of {} goals {} are at the aim, {} passed, {} missed.".format(sum(counts), *counts) if sum(counts) else ""


def overall(record):
    """The geometric mean of all ratios beside each peer."""
    texts = []
    for peer in peers_of(record["rows"]):
        logs = [math.log(medians(row)[peer]) for row in record["rows"] if peer in medians(row)]
        texts.append(f"{TITLES[peer]} {math.exp(sum(logs) / len(logs)):.2f} ({len(logs)} rows)")
    return f"Geometric means of the ratios: {', '.join(texts)}." if texts else ""


def medians(row):
    return {peer: quartiles[1] for peer, quartiles in row["ratio_quartiles"].items()}


def cells(row, peers, ceilings):
    ours = duration(row["median_ns"]["devtensor"])
    fraction = of_ceiling(row, ceilings)
    if row["unit"]:
        ours += f" ({row['rate']['devtensor']:.3g} {row['unit']})"
    out = [row["name"], ours, "" if fraction is None else f"{fraction:.0%}"]
    for peer in [*peers, "control"]:
        if peer not in row["median_ns"]:
            out.append("")
            continue
        low, middle, high = row["ratio_quartiles"][peer]
        text = f"{middle:.2f} ({low:.2f} to {high:.2f})"
        out.append(text if peer == "control" else f"{duration(row['median_ns'][peer])}, **{text}**")
    return [*out, verdict(medians(row), row.get("target", {}))]


def peers_of(rows):
    return [p for p in PEERS if any(p in row["median_ns"] for row in rows)]


def lines_of(*lines):
    head, *body = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *body))


def table(record):
    """One Markdown table: times are medians, ratios peer time over our time with quartiles."""
    rows = [row for row in record["rows"] if not row.get("ladder")]
    peers, ceilings = peers_of(rows), record["machine"].get("ceilings", {})
    if not rows:
        return ""
    head = ["", "devtensor", "of the ceiling", *(f"{TITLES[p]}, ratio" for p in peers), "control", "target"]
    return lines_of(head, *(cells(row, peers, ceilings) for row in rows))


BEHIND = 0.95  # of a peer's speed: below, a row is listed first
FAR = 3  # times the shortest round trip between processors that a run saw


def far_from(record):
    """The round trip above which the processors of a row were far from each other."""
    return FAR * min((row["round_trip_ns"] for row in record["rows"] if row.get("round_trip_ns")), default=math.inf)


def far_line(record):
    """What a reader of ratios of several threads should know."""
    trips = [row["round_trip_ns"] for row in record["rows"] if row.get("round_trip_ns")]
    if not trips:
        return ""
    far = sum(trip > far_from(record) for trip in trips)
    return (
        f"Around each row a number took {min(trips):.0f} to {max(trips):.0f} ns from one processor to another and"
        f" back (`benchmarks/apart.c`), for {far} of {len(trips)} rows over {FAR} times the least."
    )


def behind_table(record):
    """The rows where a peer is ahead by 5 % or more, the furthest first."""
    found, far = [], far_from(record)
    for row in record["rows"]:
        ratios = {p: ratio for p, ratio in medians(row).items() if p in RIVALS}
        if ratios and min(ratios.values()) < BEHIND:
            peer = min(ratios, key=ratios.__getitem__)
            times = [duration(row["median_ns"][name]) for name in ("devtensor", peer)]
            trip = row.get("round_trip_ns") or 0
            apart = f"{trip:.0f} ns apart" if trip > far else ""
            found.append((ratios[peer], row["name"], times[0], f"{TITLES[peer]}, {times[1]}", apart))
    lines = [[name, ours, peer, f"{ratio:.2f}", apart] for ratio, name, ours, peer, apart in sorted(found)]
    head = ["a peer is ahead by 5 % or more", "devtensor", "peer", "ratio", "processors"]
    if not any(line[-1] for line in lines):
        head, lines = head[:-1], [line[:-1] for line in lines]
    return lines_of(head, *lines) if lines else ""


def geometric_means(record):
    """{group: {peer: geometric mean of the ratios}} of the groups with a target."""
    from .rows import GROUP_TARGETS

    out = {}
    for group in GROUP_TARGETS:
        rows = [row for row in record["rows"] if row["group"] == group]
        for peer in peers_of(rows):
            logs = [math.log(row["ratio_quartiles"][peer][1]) for row in rows]
            out.setdefault(group, {})[peer] = math.exp(sum(logs) / len(logs))
    return out


def group_table(record):
    from .rows import GROUP_TARGETS

    lines = [["group", "layers", "peer", "ratio, geometric mean", "target"]]
    for group, means in geometric_means(record).items():
        count = sum(row["group"] == group for row in record["rows"])
        for peer, mean in means.items():
            lines.append([group, str(count), TITLES[peer], f"{mean:.2f}", verdict(means, GROUP_TARGETS[group])])
    return lines_of(*lines) if len(lines) > 1 else ""


def memory_table(record):
    cases = record.get("memory") or []
    peers = ["devtensor", *(p for p in PEERS if any(p in case["extra"] for case in cases))]
    lines = [["beyond operands and result, MiB", "result", *(TITLES[p] for p in peers)]]
    for case in cases:
        extra = [f"{case['extra'][p] / 2**20:.1f}" if p in case["extra"] else "" for p in peers]
        lines.append([case["name"], f"{case['result_bytes'] / 2**20:.0f}", *extra])
    return lines_of(*lines) if cases else ""


def ladder_table(record):
    rows = [row for row in record["rows"] if row.get("ladder")]
    peers = peers_of(rows)
    lines = [["ladder", "at", "devtensor", *(f"{TITLES[p]}, ratio" for p in peers)]]
    for row in rows:
        ratios = [f"{row['ratio_quartiles'][p][1]:.2f}" if p in row["median_ns"] else "" for p in peers]
        lines.append([row["ladder"], str(row["at"]), duration(row["median_ns"]["devtensor"]), *ratios])
    return lines_of(*lines) if rows else ""


def tables(record):
    made = [
        make(record)
        for make in (goals, overall, far_line, behind_table, table, group_table, memory_table, ladder_table)
    ]
    return "\n\n".join(text for text in made if text)


def markdown(record):
    facts = "\n".join(f"- {key}: {value}" for key, value in record["machine"].items())
    legend = (
        "Times are medians of interleaved rounds. A ratio is the peer's time over devtensor's in the same round, as"
        " median (quartiles): above 1, devtensor is faster. The control is devtensor against itself; what differs from"
        " 1 there is noise. The ceiling is what `benchmarks/peak.c` reached just before: multiply-adds from registers,"
        " or a copy of memory. A target is met (pass), met well (aim) or missed, by the worst of its peers. Beside the"
        " smallest calls stand those of the interpreter's own types: `x + y` of `array.array` with one number, and"
        " `memoryview.cast`; what passes beside NumPy and takes at most 1.5 times as long has reached its aim there."
    )
    title = f"Benchmarks ({record['machine']['simulated']})" if record["machine"].get("simulated") else "Benchmarks"
    return f"# {title}\n\n{facts}\n\n{legend}\n\n{tables(record)}\n"


COLUMNS = (
    "group",
    "name",
    "ladder",
    "at",
    "library",
    "median_ns",
    "ratio_q1",
    "ratio",
    "ratio_q3",
    "rate",
    "unit",
    "round_trip_ns",
)


def csv_lines(record):
    """Each row of the record and library: what every table and plot here is made of."""
    yield COLUMNS
    for row in record["rows"]:
        place = [row["group"], row["name"], row.get("ladder", ""), row.get("at", "")]
        for library in dict.fromkeys([*row["median_ns"], *row["ratio_quartiles"]]):
            numbers = [row["median_ns"].get(library), *row["ratio_quartiles"].get(library, [None] * 3)]
            numbers.append(row["rate"].get(library))
            trip = row.get("round_trip_ns") or ""
            yield [*place, library, *("" if n is None else f"{n:.4g}" for n in numbers), row["unit"], trip]


def behind(path):
    """The group and name of each row of a record (csv_lines) in which another library is faster."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["group"], row["name"])
        for row in rows
        if row["library"] in RIVALS and row["ratio"] and float(row["ratio"]) < 1
    }


def file_stem(meta):
    """The name of a record; the short one is that of a whole record alone."""
    model = re.sub(r"[^A-Za-z0-9]+", "-", meta["cpu"]).strip("-").lower()
    parts = [meta["date"], model, meta["instruction_set"].lower(), f"{meta['threads']}t"]
    if meta["chosen"] != "all":
        parts.append(meta["chosen"])
    if meta["effort"] == "quick":
        parts.append("quick")
    if "stopped" in meta:
        parts.append("stopped")
    return "-".join(parts)


def plot(record, stem):
    """Writes <stem>.png (ratios), -ladders.png and -roofline.png; returns what it wrote: nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = []
    for suffix, draw in (("", draw_ratios), ("-ladders", draw_ladders), ("-roofline", draw_roofline)):
        figure = draw(plt, record)
        if figure is not None:
            path = stem.with_name(f"{stem.name}{suffix}.png")
            figure.savefig(path, dpi=120)
            plt.close(figure)
            written.append(path)
    return written


def draw_ratios(plt, record):
    """A dot for each ratio, with its quartiles."""
    rows = [row for row in record["rows"] if not row.get("ladder")]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.3 * len(rows)), layout="constrained")
    for peer in [*peers_of(rows), "control"]:
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
    return figure


def draw_ladders(plt, record):
    """Time against size, a panel for each ladder."""
    rows = [row for row in record["rows"] if row.get("ladder")]
    names = list(dict.fromkeys(row["ladder"] for row in rows))
    if not names:
        return None
    figure, panels = plt.subplots(1, len(names), figsize=(5 * len(names), 4), layout="constrained", squeeze=False)
    for axes, name in zip(panels[0], names, strict=True):
        points = [row for row in rows if row["ladder"] == name]
        for library in ["devtensor", *peers_of(points)]:
            own = [row for row in points if library in row["median_ns"]]
            times = [row["median_ns"][library] for row in own]
            axes.plot([row["at"] for row in own], times, "o-", markersize=3, label=TITLES[library])
        axes.set(xscale="log", yscale="log", title=name, xlabel="n", ylabel="ns a call")
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def draw_roofline(plt, record):
    """The rates in GFLOP/s, as fractions of what the machine can do."""
    ceilings = record["machine"].get("ceilings", {})
    rows = [row for row in record["rows"] if of_ceiling(row, ceilings) is not None]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.25 * len(rows)), layout="constrained")
    for i, library in enumerate(["devtensor", *peers_of(rows)]):
        points = []
        for j, row in enumerate(rows):
            if library in row["rate"]:
                ours = row["rate"]["devtensor"]
                points.append((j, of_ceiling(row, ceilings) * row["rate"][library] / ours))
        axes.plot([p[1] for p in points], [p[0] for p in points], "o" if i == 0 else "|", label=TITLES[library])
    axes.axvline(1.0, color="grey", linewidth=1)
    axes.set_xlabel("fraction of the measured ceiling (multiply-adds, or a copy of memory)")
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.legend()
    return figure
