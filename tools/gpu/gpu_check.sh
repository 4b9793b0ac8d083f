#!/usr/bin/env bash
# Everything that is worth knowing from a machine with a GPU: tools/gpu/gpu_check.sh --help. No network is needed.
exec "${PYTHON:-python3}" "$(dirname "$0")/gpu_check.py" "$@"
