#!/usr/bin/env bash
# Everything that only a machine with a GPU can tell: tests, examples, benchmarks; a summary at the end.
# Runs from the tree with the python3 that is there; usage: bash tools/gpu_check.sh [FOLDER FOR LOGS]
set -uo pipefail
cd "$(dirname "$0")/.."

logs=${1:-$(mktemp -d)}
mkdir -p "$logs"
export PYTHONPATH=.${PYTHONPATH:+:$PYTHONPATH} CUDADRV_DRIVER=auto
summary=()
failed=0

# run NAME LINES COMMAND...: keep the output, and for the summary its last LINES lines.
run() {
    local name=$1 lines=$2 start=$SECONDS verdict=ok
    shift 2
    echo "== $name: $*"
    if ! "$@" >"$logs/$name.txt" 2>&1; then
        verdict=FAILED
        failed=1
        tail -n 60 "$logs/$name.txt"
    fi
    summary+=("$verdict $name ($((SECONDS - start))s)" "$(tail -n "$lines" "$logs/$name.txt")")
}

run info 40 python3 -m cudadrv info
run tests-gpu 12 env CUDADRV_TEST_CALLS="$logs/calls" \
    python3 -m pytest -q -ra -n auto -p no:cacheprovider tests/device tests/gpu
# What measures the memory of the device must have it alone.
run tests-alone 6 python3 -m pytest -q -ra -p no:cacheprovider \
    tests/device/test_driver_{leaks,objects,process,array_lifetimes}.py tests/gpu
if command -v compute-sanitizer >/dev/null; then
    run sanitizer 3 compute-sanitizer --tool memcheck --leak-check full --report-api-errors no --error-exitcode 9 \
        python3 -m pytest -q -p no:cacheprovider tests/device/test_driver_{kernels,launch,memory_boxes,symbols}.py
fi
run tests-emulator 3 env CUDADRV_DRIVER=emulator python3 -m pytest -q -n auto -p no:cacheprovider tests/device
run examples 60 python3 -m examples
run benchmarks 0 python3 tools/bench.py
summary+=("$(python3 tools/bench.py --show "$logs/benchmarks.txt")")

printf '\n==== summary; full logs in %s\n' "$logs"
printf '%s\n' "${summary[@]}"
exit "$failed"
