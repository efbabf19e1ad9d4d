#!/usr/bin/env bash
# Makes a bare Debian 12 in a folder, clones this tree into it, and runs ./dev there as a newcomer would.
#
# usage: bare_machine.sh FOLDER [COMMAND…]      (as root, with debootstrap; COMMAND… instead of the default steps)
#
# The packages come from where the host's own apt takes Debian's, and the folder is kept, so that a second run starts
# from the machine as the first one left it. Remove it with `rm -rf FOLDER`.
set -euo pipefail
(($# >= 1)) || {
  sed -n '2,4p' "$0"
  exit 2
}
[[ $(id -u) == 0 ]] || {
  echo "bare_machine.sh: must be root, for debootstrap and chroot" >&2
  exit 1
}
mkdir -p "$1"
machine=$(realpath "$1")
shift
source_tree=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
suite=bookworm

# The archive that the host's apt has for the suite: its address and its settings for reaching it.
archive=$(apt-get indextargets --format '$(CREATED_BY) $(SUITE) $(CODENAME) $(REPO_URI)' 2>/dev/null |
  awk -v suite=$suite '$1 == "Packages" && ($2 == suite || $3 == suite) { print $NF; exit }')
[[ -n $archive ]] || {
  echo "bare_machine.sh: this host's apt knows no archive of $suite (apt-get indextargets)" >&2
  exit 1
}

if [[ ! -e $machine/etc/debian_version ]]; then
  debootstrap --variant=minbase "$suite" "$machine" "$archive"
fi
# How the host reaches its archives (proxies, keys), but not what it does after an installation.
apt-config dump | grep -E '^Acquire::(http|https)::' >"$machine/etc/apt/apt.conf.d/50host" || true
cp /etc/resolv.conf "$machine/etc/resolv.conf"

# The devices are those that debootstrap makes: the host's are not put at risk by removing the folder.
trap 'umount "$machine/proc" "$machine/dev/pts" 2>/dev/null || true' EXIT
mount -t proc proc "$machine/proc"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$machine/dev/pts" # a test looks at a terminal

in_machine() {
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb CI=true \
    chroot "$machine" /bin/bash -c "$1" </dev/null
}

# The tree as committed; git itself is what a newcomer has already.
rm -rf "$machine/root/millrace"
git clone -q --no-hardlinks "$source_tree" "$machine/root/millrace"

if (($#)); then
  in_machine "cd ~/millrace && $*"
else
  in_machine "cd ~/millrace && ./dev demo"
  in_machine "cd ~/millrace && ls -l out/demo.mp4 out/demo.png"
  in_machine "cd ~/millrace && ./dev test --fast"
fi
