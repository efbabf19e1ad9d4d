#!/usr/bin/env bash
# Runs examples/pipelines/edge_gpu_cloud.yaml on this machine as on three: each node is a process with a key, a list of
# known nodes and a network of its own. Needs no root, but iproute2, and a system on which users may have namespaces.
#
# usage: three_nodes.sh [MILLRACE [OPTION…]]     the options go to the coordinator: --ticks 100
#
#   namespace edge  10.77.0.1 ─┐
#   namespace gpu   10.77.0.2 ─┼─ bridge
#   namespace cloud 10.77.0.3 ─┘
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kNodes=(edge gpu cloud)

if [[ ${1:-} != --inside ]]; then
  millrace=$(realpath "${1:-$root/build/millrace}")
  exec unshare --user --map-root-user --net --mount "${BASH_SOURCE[0]}" --inside "$millrace" "${@:2}"
fi
millrace=$2
options=("${@:3}")
keys=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$keys"' EXIT
as() { # NODE COMMAND…: on that node
  local node=$1
  shift
  ip netns exec "$node" env XDG_CONFIG_HOME="$keys/$node" "$@"
}

mount -t tmpfs tmpfs /run # `ip netns` keeps its names there
ip link add hub type bridge
ip link set hub up
for i in "${!kNodes[@]}"; do
  node=${kNodes[i]}
  ip netns add "$node"
  ip link add "to-$node" type veth peer name eth0 netns "$node"
  ip link set "to-$node" master hub up
  ip -n "$node" address add "10.77.0.$((i + 1))/24" dev eth0
  ip -n "$node" link set eth0 up
  ip -n "$node" link set lo up
done

# Each node is told the ids of the others, as a person would do it by hand.
declare -A ids
for node in "${kNodes[@]}"; do ids[$node]=$(as "$node" "$millrace" identity | head -1); done
for node in "${kNodes[@]}"; do
  for other in "${kNodes[@]}"; do
    if [[ $node != "$other" ]]; then as "$node" "$millrace" nodes add "$other" "${ids[$other]}" >/dev/null; fi
  done
done

mkdir -p "$root/out"
cd "$root"
pipeline=examples/pipelines/edge_gpu_cloud.yaml
as gpu "$millrace" run "$pipeline" --node gpu --coordinator 10.77.0.1 &
gpu=$!
as cloud "$millrace" run "$pipeline" --node cloud --coordinator 10.77.0.1 &
cloud=$!
as edge "$millrace" run "$pipeline" --node edge "${options[@]}"
wait "$gpu"
wait "$cloud"
printf 'The film is in out/edge_gpu_cloud.mp4, its contact sheet in out/edge_gpu_cloud.png.\n'
