#!/bin/busybox sh
# `sh` of the sidecar image. The shell of BusyBox prefers its own `tar` to the `tar` of the image, but it prefers a function to both programs.
tar() { /bin/tar "$@"; }
[ "${1:-}" = -c ] || exec /bin/busybox sh "$@"
script=$2
shift 2
eval "$script"
