#!/bin/busybox sh
# The `sh` of the sidecar image. BusyBox's shell would use its built-in `tar` and not the `tar` of the image. A function has priority
# over the built-in `tar`, so this function calls the `tar` of the image.
tar() { /bin/tar "$@"; }
[ "${1:-}" = -c ] || exec /bin/busybox sh "$@"
script=$2
shift 2
eval "$script"
