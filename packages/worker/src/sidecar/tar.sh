#!/bin/busybox sh
# `tar` of the sidecar image. In kubernetes mode oz-agent-worker copies the image with options of GNU tar that BusyBox lacks:
# --exclude=./NAME, --no-same-owner and --no-same-permissions.
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
# Lists only the top level: everything that can be excluded is a mount of the container there.
for path in /* /.[!.]*; do
  name=${path#/}
  case $excluded in *" $name "*) continue ;; esac
  [ -e "$path" ] || [ -L "$path" ] || continue
  set -- "$@" "./$name"
done
exec /bin/busybox tar "$@"
