#!/usr/bin/env bash
# The paper's tables on our data, as published in docs/measured/reproduction.md.
#
#   benchmarks/reproduce.sh prepare DATA OUT      on any machine: questions and vectors as arrays, and OUT/*.tar.xz to carry
#   benchmarks/reproduce.sh play OUT RESULTS      on a GPU machine; needs src/, OUT/*.tar.xz, torch, numpy and safetensors
#   benchmarks/reproduce.sh collect OUT RESULTS   on any machine: takes in what was played
#   benchmarks/reproduce.sh judge DATA OUT        on any machine: tables and plots
#
# `play` may be stopped and called again on the same machine: branches that are played already are not played again, and
# come out the same in any order. Where time is short, borrow a machine for one of the CONDITIONS at a time, or several
# times: `prepare` after `collect` leaves what was collected out of what is to be played. `judge` shows all of it. The
# environment:
#   TABLES="hotpotqa drughop"
#   CONDITIONS="paper features ours"   of HotpotQA
#   DRUGHOP_CONDITIONS="paper ours"    of DrugHop
#   SEEDS=3                            of HotpotQA
#   OPTIONS="--config tiny.toml --folds 2 --seeds 1 --no-ablations"   of `rechain reproduce`, for a trial
#   PROCESSES=12   plays that share the GPU
#   LIMIT=540      seconds after which `play` stops and packs what there is
# What it packs is in parts of 15 MB, as files that come back from a borrowed machine may have a largest size.
set -euo pipefail
what=$1
tables=${TABLES:-hotpotqa drughop}

options() { # of one table; DATA and OUT are set
    case $1 in
    hotpotqa) echo "hotpotqa $data/hotpotqa/open.json.gz --more $data/hotpotqa/train_914.jsonl.gz
        --vectors $data/vectors/glove.6B.100d.subset.npz --out $out/hotpotqa
        $(printf -- '--table %s ' ${CONDITIONS:-paper features ours}) --folds 5 --seeds ${SEEDS:-3}" ;;
    drughop) echo "drughop $data/drughop/open.jsonl.gz --passages $data/drughop/passages.jsonl.gz
        --gold $data/drughop/open.gold.jsonl.gz --vectors $data/vectors/bio.100d.npz --out $out/drughop
        $(printf -- '--table %s ' ${DRUGHOP_CONDITIONS:-paper ours}) --seeds 1" ;;
    esac
}

case $what in
prepare)
    data=$2 out=$3
    for table in $tables; do
        rechain reproduce $(options "$table") ${OPTIONS:-} --prepare-only
        tar -C "$out" --exclude="$table/plays" -cJf "$out/$table.tar.xz" "$table"
    done
    ;;
play)
    out=$2 results=$3
    export PYTHONPATH=src PYTHONUNBUFFERED=1
    mkdir -p "$results"
    nvidia-cuda-mps-control -d || true # lets the processes share the GPU
    for table in $tables; do
        python -m tarfile -e "$out/$table.tar.xz" "$out" # also where it was before: what is to be played may have changed
    done
    began=$SECONDS
    for table in $tables; do
        left=$((${LIMIT:-540} - SECONDS + began))
        [ $left -gt 5 ] || break
        timeout --kill-after=5 $left python -m rechain.paper.plays "$out/$table" --processes "${PROCESSES:-12}" || true
    done
    for table in $tables; do
        [ ! -d "$out/$table/plays" ] || tar -C "$out" -cz "$table/plays" | split -b 15M - "$results/$table.plays.tar.gz."
    done
    ls -l "$results"
    ;;
collect)
    out=$2 results=$3
    for table in $tables; do
        cat "$results/$table.plays.tar.gz."* | tar -C "$out" -xz
    done
    ;;
judge)
    data=$2 out=$3
    for table in $tables; do
        rechain reproduce $(options "$table") ${OPTIONS:-} --judge-only
    done
    ;;
*)
    echo "usage: $0 prepare|play|collect|judge …; see the head of this file" >&2
    exit 2
    ;;
esac
