#!/usr/bin/env bash
# Makes the pictures of docs/examples.md again, from the examples themselves.
#
# usage: docs/pictures/make.sh [MILLRACE]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
millrace=${1:-build/millrace}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# shrink NAME FILTER: a picture for a page, small enough for a repository.
shrink() {
  ffmpeg -loglevel error -y -i "$made/$1.png" -vf "$2" -q:v 8 "docs/pictures/$1.jpg" </dev/null
}

# sheet NAME HANDLER TICKS FILTER SETTING…: the contact sheet of an example, in which only tiles and ticks differ.
sheet() {
  local name=$1 handler=$2 ticks=$3 filter=$4 settings=(--set "$2.path=$made/$1.png")
  shift 4
  for setting in "$@"; do settings+=(--set "$handler.$setting"); done
  "$millrace" run "examples/pipelines/$name.yaml" --quiet --ticks "$ticks" "${settings[@]}"
  shrink "$name" "$filter"
}

whole='scale=720:-1'
second='crop=iw:ih/2:0:ih/2,scale=720:-1'
sheet street sheet 301 "$whole" columns=2 tile_width=400 step=100
sheet overlay sheet 301 "$whole" columns=2 tile_width=400 step=100
sheet faces sheet 241 'crop=iw:ih*2/3:0:ih/3,scale=720:-1' columns=2 tile_width=400 step=48 # a film begins in the dark
sheet motion sheet 302 "$whole" columns=2 tile_width=400 step=100
sheet picture_in_picture sheet 301 "$whole" columns=2 tile_width=400 step=100
sheet wall sheet 151 "$second" columns=1 tile_width=800 step=150
"$millrace" run examples/pipelines/camera_films.yaml --quiet
sheet cameras sheet 1000 "$second" columns=1 tile_width=800 step=80
sheet scopes save 1 "$whole" tile_width=800
"$(dirname "$millrace")/make_network" examples/model/disc.txt out/disc.pt
sheet disc sheet 70 'crop=iw:ih/2:0:ih/2,scale=720:-1'
sheet records_from_json sheet 28 "$whole" columns=2 tile_width=400

# five_handlers drops its pictures: here its last handler keeps two of them.
sed "s|type: null.sink|type: image.writer, path: $made/five_handlers.png, columns: 1, tile_width: 800, step: 60|" \
  examples/pipelines/five_handlers.yaml >"$made/five_handlers.yaml"
"$millrace" run "$made/five_handlers.yaml" --quiet --ticks 61
shrink five_handlers "$second"

# The page of a viewer, as its tests in a browser see it.
python3 tests/viewer/browser/viewer_browser.py "$millrace" examples/pipelines --screenshots "$made" Browser.test_the_ring_of_the_example_follows_the_pointer
shrink view_from_afar 'scale=880:-1'
python3 tests/viewer/browser/viewer_browser.py "$millrace" examples/pipelines --screenshots "$made" Browser.test_a_drag_and_the_wheel_move_the_volume_of_the_example
few_colours='scale=960:-1,split[all][some];[some]palettegen=max_colors=128[few];[all][few]paletteuse=dither=none'
ffmpeg -loglevel error -y -i "$made/turn_volume.png" -vf "$few_colours" docs/pictures/turn_volume.png </dev/null
