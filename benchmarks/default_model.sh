#!/usr/bin/env bash
# The default model, once through, as published in docs/measured/default_model.md.
#
#   benchmarks/default_model.sh prepare DATA ENCODER STAGE LOGS   on any machine: arrays, and STAGE.tar.xz to carry
#   benchmarks/default_model.sh train STAGE RESULTS          on a GPU machine; needs src/, benchmarks/, STAGE.tar.xz, torch,
#                                                            transformers, numpy and safetensors
#   benchmarks/default_model.sh collect STAGE RESULTS        on any machine: takes in what was trained
#   benchmarks/default_model.sh judge STAGE DATA             on any machine: figures of the five folds
#   benchmarks/default_model.sh bundle STAGE DATA FOLDER     on any machine: the model, as src/rechain/data/default
#
# `train` trains six readers side by side, one without each fold and one on everything. What it packs is in parts of
# 15 MB, as files that come back from a borrowed machine may have a largest size.
#
# The environment:
#   LIMIT=560                        seconds after which training stops and packs what there is
set -euo pipefail
what=$1
script=$(dirname "$0")/default_model.py

train() { # STAGE NAME [OPTION…]: beside what runs already
    timeout --kill-after=5 "${LIMIT:-560}" python "$script" train "$1" --name "${@:2}" \
        --set ranker_weight=0.4 --set reasoner_weight=0.2 &
}

case $what in
prepare)
    data=$2 encoder=$3 stage=$4 logs=$5 folder=$(dirname "$4") name=$(basename "$4")
    python "$script" prepare "$data" "$stage" --encoder "$encoder" --logs "$logs"
    tar -C "$folder" --exclude=plays --exclude=right.json -cJf "$stage.tar.xz" "$name"
    ;;
train)
    stage=$2 results=$3
    export PYTHONPATH=src PYTHONUNBUFFERED=1
    python -m tarfile -e "$stage.tar.xz" "$(dirname "$stage")"
    mkdir -p "$results"
    train "$stage" all
    for fold in 0 1 2 3 4; do train "$stage" "fold$fold" --fold "$fold"; done
    failed=0
    for run in $(jobs -p); do wait "$run" || failed=$((failed + 1)); done
    [ "$failed" = 0 ] || echo "$failed of the runs failed or were stopped; what is packed is without them" >&2
    tar -C "$stage" -cz plays | split -b 15M - "$results/plays.tar.gz."
    ls -l "$results"
    ;;
collect)
    stage=$2 results=$3
    cat "$results/plays.tar.gz."* | tar -C "$stage" -xz
    ;;
judge | bundle)
    python "$script" "$@"
    ;;
*)
    echo "usage: $0 prepare|train|collect|judge|bundle …; see the head of this file" >&2
    exit 2
    ;;
esac
