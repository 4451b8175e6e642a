#!/usr/bin/env bash
# Four processes on this machine, each with a quarter of the text, train one small language model; then it writes.
#
#   bash examples/gallery/text/text.sh [PICTURE.svg]      # from the root of a checkout
#
# TEXT names a folder of texts (default: this project's design notes), STEPS how long each of them trains.
set -euo pipefail
picture=${1:-text.svg}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gossipnode=${GOSSIPNODE:-$work/gossipnode} # the program, if it is built already
[ -n "${GOSSIPNODE:-}" ] || go build -o "$gossipnode" ./examples/gossipnode

"$gossipnode" local --peers 4 --dataset text --data "${TEXT:-docs/design}" --model gpt --layers 2 --width 64 --heads 4 --context 64 \
	--batch 8 --steps "${STEPS:-600}" --optimizer adamw --lr 0.003 --codec lattice6+4 --final merge \
	--checkpoint "$work/checkpoints" --history "$work/history.jsonl"

"$gossipnode" plot "$work/history.jsonl" --out "$picture"
"$gossipnode" export "$work/checkpoints/peer-0" --out "$work/model.safetensors"
"$gossipnode" sample --weights "$work/model.safetensors" --prompt 'A peer that ' --tokens 200 --seed 1
