#!/usr/bin/env bash
# Everything that is worth knowing from a machine with a GPU, in one command and under nine minutes; no network needed.
#
#   tools/gpu_check.sh [--dry-run] [--out DIR] [SECTION ...]
#
# Sections: build suite conformance sanitizer bench report; those named, or all. Each has a time limit and leaves its
# log and its status in DIR (benchmarks/results/gpu-<date>-<name>), so that one can be run again by its name.
# --dry-run takes simulated devices, a part of the suite and ten times the time: it shows that this script works.
set -uo pipefail
cd "$(dirname "$0")/.."

SECTIONS=(build suite conformance sanitizer bench report)
declare -A LIMIT=([build]=110 [suite]=190 [conformance]=60 [sanitizer]=60 [bench]=100 [report]=15)
PYTHON=${PYTHON:-$(command -v python3)}
DRY= OUT=
wanted=()
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) DRY=1 ;;
    --out) OUT=${2:?--out takes a folder} && shift ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *)
        [[ " ${SECTIONS[*]} " = *" $1 "* ]] || { echo "no section '$1'; there are: ${SECTIONS[*]}" >&2; exit 2; }
        wanted+=("$1")
        ;;
    esac
    shift
done
[ ${#wanted[@]} -gt 0 ] && SECTIONS=("${wanted[@]}")

unset DEVTENSOR_CUDA DEVTENSOR_TEST_DEVICES
if [ -n "$DRY" ]; then
    NAME=dry-run
    for section in "${SECTIONS[@]}"; do LIMIT[$section]=$((10 * LIMIT[$section])); done # any machine, however busy
    export DEVTENSOR_CUDA=sim:1
else
    NAME=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1 | tr -cs 'A-Za-z0-9\n' - | tr A-Z a-z)
    [ -n "$NAME" ] || { echo "nvidia-smi names no GPU here; --dry-run works without one" >&2; exit 2; }
    export DEVTENSOR_TEST_DEVICES=real
fi
OUT=$(realpath -m "${OUT:-benchmarks/results/gpu-$(date +%F)-$NAME}")
mkdir -p "$OUT"
BUILD=${BUILD:-${TMPDIR:-/tmp}/devtensor-gpu-check-$(id -u)}
export PYTHONPATH=$BUILD/lib PYTHONDONTWRITEBYTECODE=1

section_build() {
    mkdir -p "$BUILD"
    if [ -z "$DRY" ] && [ -z "${DEVTENSOR_CUDA_ARCH:-}" ]; then # machine code for this GPU is enough here
        export DEVTENSOR_CUDA_ARCH
        DEVTENSOR_CUDA_ARCH=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
    fi
    "$PYTHON" setup.py -q build_ext --build-temp "$BUILD/temp" --build-lib "$BUILD/lib" &&
        cp -r python/. "$BUILD/lib/" && "$PYTHON" -m devtensor | tee "$OUT/devtensor.txt"
    "$PYTHON" tools/gpu_report.py facts "$OUT"
}

# Test files in as many processes as there are cores, up to eight, each with its junit file.
section_suite() {
    local files shards=8 i pids=() bad=0
    rm -f "$OUT"/junit-*.xml
    if [ -n "$DRY" ]; then
        files=(tests/test_to.py tests/test_random.py) shards=1
    else
        mapfile -t files < <(ls -S tests/test_*.py)
        [ "$(nproc)" -ge 8 ] || shards=$(nproc)
    fi
    for ((i = 0; i < shards; i++)); do
        local mine=() j
        for ((j = i; j < ${#files[@]}; j += shards)); do mine+=("${files[j]}"); done
        [ ${#mine[@]} -eq 0 ] && continue
        "$PYTHON" -m pytest -q -p no:cacheprovider --junitxml="$OUT/junit-$i.xml" "${mine[@]}" >"$OUT/suite-$i.log" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || bad=1; done
    tail -qn 1 "$OUT"/suite-*.log
    grep -hE '^(FAILED|ERROR)' "$OUT"/suite-*.log
    return $bad
}

section_conformance() {
    "$PYTHON" tools/conformance.py ${DRY:+--simulated} >"$OUT/conformance.tsv"
    local rc=$?
    grep -v ^ok "$OUT/conformance.tsv"
    return $rc
}

section_sanitizer() {
    local tool bad=0
    if [ -n "$DRY" ]; then
        "$PYTHON" tools/gpu_report.py ops
        return
    fi
    command -v compute-sanitizer >/dev/null || { echo "SKIPPED: compute-sanitizer is not installed"; return 0; }
    for tool in memcheck racecheck synccheck; do
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$PYTHON" tools/gpu_report.py ops --brief \
            >"$OUT/sanitizer-$tool.log" 2>&1 || bad=1
        echo "$tool: $(grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY\|not supported' "$OUT/sanitizer-$tool.log" | tail -1)"
    done
    return $bad
}

section_bench() {
    "$PYTHON" -m benchmarks --device cuda --quick --limit $((LIMIT[bench] - 15)) --out "$OUT"
}

section_report() {
    "$PYTHON" tools/gpu_report.py report "$OUT"
}

# A section's processes end with it.
run() {
    local section=$1 start=$SECONDS status
    printf '\n======== %s (limit %s s)\n' "$section" "${LIMIT[$section]}"
    set -m
    ("section_$section") > >(tee "$OUT/$section.log") 2>&1 &
    local pid=$!
    set +m
    (sleep "${LIMIT[$section]}" && kill -TERM -- "-$pid" 2>/dev/null && sleep 5 && kill -KILL -- "-$pid" 2>/dev/null) &
    local watch=$!
    wait "$pid"
    status=$?
    kill "$watch" 2>/dev/null
    wait "$watch" 2>/dev/null
    echo "$status $((SECONDS - start))" >"$OUT/$section.status"
    echo "-------- $section: status $status, $((SECONDS - start)) s"
    return $status
}

failed=()
for section in "${SECTIONS[@]}"; do
    run "$section" || failed+=("$section")
    [ "$section" = build ] && [ ${#failed[@]} -gt 0 ] && break
done
echo
echo "$SECONDS s, results in $OUT"
[ ${#failed[@]} = 0 ] || { echo "FAILED: ${failed[*]}"; exit 1; }
