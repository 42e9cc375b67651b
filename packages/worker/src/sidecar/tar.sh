#!/bin/busybox sh
# The `tar` of the sidecar image. In kubernetes mode, oz-agent-worker copies the image with options of GNU tar that the `tar` of
# BusyBox does not have: --exclude=./NAME, --no-same-owner and --no-same-permissions.
excluded=' '
whole=
for argument; do
  shift
  case $argument in
    --exclude=./*) excluded="$excluded${argument#--exclude=./} " ;;
    --no-same-owner) set -- "$@" -o ;;
    .) whole=1 ;;
    *) set -- "$@" "$argument" ;;
  esac
done
[ "$whole" ] || exec /bin/busybox tar "$@"
# Replaces `.` by the entries of the top folder that are not excluded. Deeper paths need no check, because oz-agent-worker excludes
# only mounts of the container, and all these mounts are entries of the top folder.
for path in /* /.[!.]*; do
  name=${path#/}
  case $excluded in *" $name "*) continue ;; esac
  [ -e "$path" ] || [ -L "$path" ] || continue
  set -- "$@" "./$name"
done
exec /bin/busybox tar "$@"
