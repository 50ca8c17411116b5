#!/usr/bin/env bash
# The paper's tables on our data, as published in docs/measured/reproduction.md.
#
#   benchmarks/reproduce.sh prepare DATA OUT    on any machine: questions, pseudo questions and vectors as arrays
#   benchmarks/reproduce.sh play DATA OUT       on a GPU machine; needs src/, OUT, torch, numpy and safetensors alone
#   benchmarks/reproduce.sh judge DATA OUT      on any machine: tables, plots, and what the Reasoner names
set -euo pipefail
what=$1 data=$2 out=$3
hotpotqa=(hotpotqa "$data/hotpotqa/open.json.gz" --vectors "$data/vectors/glove.6B.100d.subset.npz" --out "$out/hotpotqa")
drughop=(drughop "$data/drughop/open.jsonl.gz" --passages "$data/drughop/passages.jsonl.gz" --gold "$data/drughop/open.gold.jsonl.gz"
         --vectors "$data/vectors/bio.100d.npz" --out "$out/drughop" --seeds 1 --pseudo 0 --no-ablations)
case $what in
prepare)
    rechain reproduce "${hotpotqa[@]}" --prepare-only
    rechain reproduce "${drughop[@]}" --prepare-only
    ;;
play)
    export PYTHONPATH=src
    nvidia-cuda-mps-control -d || true # lets the processes share the GPU
    python benchmarks/game_speed.py "$out/hotpotqa"
    python -m rechain.game.plays "$out/drughop" --device cuda --processes 3 &
    python -m rechain.game.plays "$out/hotpotqa" --device cuda --processes 9
    wait
    ;;
judge)
    rechain reproduce "${hotpotqa[@]}" --judge-only
    rechain reproduce "${drughop[@]}" --judge-only
    python benchmarks/reasoner.py "$data" "$out/hotpotqa" "$out/drughop"
    ;;
esac
