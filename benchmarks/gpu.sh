#!/usr/bin/env bash
# All figures of a GPU in one go of ten minutes, from the root of the repository:
#
#   benchmarks/gpu.sh FOLDER [SPEECH]
#
# FOLDER gets a log and a JSON file for each part; each part ends in time, so that the next ones have theirs. SPEECH is
# a corpus to take the 100 sounds from. The campaign runs with and without NVIDIA's MPS, which lets processes use a GPU
# at the same time; without it they take turns.
set -u
out=$1 speech=${2:+--speech $2} cores=$(nproc)
mkdir -p "$out"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1

part() { # name, seconds, arguments of benchmarks.scale
  local name=$1 seconds=$2
  shift 2
  echo "== $name"
  timeout --foreground "$seconds" python -m benchmarks.scale --device cuda -o "$out/$name.json" "$@" 2>&1 | tee "$out/$name.log"
}

nvidia-smi | tee "$out/nvidia-smi.log"
# shellcheck disable=SC2086
part campaign 110 $speech --sections campaign --workers $((cores - 1)) --batches 64 --runs 4096
if command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d; then
  # shellcheck disable=SC2086
  part campaign-mps 150 $speech --sections campaign --workers $((cores - 1)),$((2 * cores)) --batches 64 --runs 4096
  echo quit | nvidia-cuda-mps-control
else
  # shellcheck disable=SC2086
  part campaign-more-workers 100 $speech --sections campaign --workers $((2 * cores)) --batches 64 --runs 4096
fi
unset OMP_NUM_THREADS OPENBLAS_NUM_THREADS
part shaped 170 --sections parts,shaped --sequences 2048,8192,32768
part paper 120 --sections paper --limit 110
