#!/agent/bin/busybox sh
# Starts the agent in a container of oz-agent-worker, which mounts the content of the sidecar image at /agent and starts this script with
# the agent's arguments. The script uses no file of the container's own image. docs/other-workers.md describes it.
set -eu

# The environment with which a process was started stays readable in /proc/PID/environ. So the script moves the run token from the
# environment into a descriptor, and starts itself again without the variable. WARP_API_KEY is the run token too.
if [ -n "${RUNYARD_RUN_TOKEN:-}" ]; then
  exec 4<<END
$RUNYARD_RUN_TOKEN
END
  unset RUNYARD_RUN_TOKEN WARP_API_KEY
  export RUNYARD_RUN_TOKEN_FD=4
  exec /agent/entrypoint.sh "$@"
fi

# Removes variables of the image that would change how the agent's program runs.
unset LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GLIBC_TUNABLES NODE_OPTIONS NODE_COMPILE_CACHE NODE_PATH NODE_V8_COVERAGE

if [ "${1:-}" = harness-support ]; then
  exec /agent/node --disable-sigusr1 --openssl-config=/dev/null /agent/program/main.cjs "$@" </dev/null
fi

# Makes the folder for temporary files, because images that are built from an empty image do not have one.
temporary=${TMPDIR:-/tmp}
[ -d "$temporary" ] || /agent/bin/busybox mkdir -p -m 1777 "$temporary"

# The agent stores the working folder and the home folder for a continuation of the run only if both belong to this run alone. If the
# image or a setup command has put files into the working folder, the agent makes a separate home folder, and no folder is stored.
make_folder() { /agent/bin/busybox mktemp -d "$temporary/run.XXXXXX"; }
if ! [ -w . ]; then
  folder=$(make_folder)
  /agent/bin/busybox mkdir "$folder/workspace" "$folder/home"
  cd "$folder/workspace"
  export HOME="$folder/home" RUNYARD_RUN_FOLDERS=own
elif [ -z "$(/agent/bin/busybox ls -A .)" ]; then
  HOME=$(make_folder)
  export HOME RUNYARD_RUN_FOLDERS=own
fi

PATH=/agent/commands:${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin} LANG=${LANG:-C.UTF-8} TERM=dumb \
  /agent/node --disable-sigusr1 --openssl-config=/dev/null /agent/program/main.cjs "$@" </dev/null &
agent=$!
exec 4<&-

# This shell is the first process of its container. So the shell must reap orphaned processes and forward SIGTERM to the agent.
signalled=
trap 'signalled=1; kill -TERM "$agent" 2>/dev/null || :' TERM INT HUP
status=0
wait "$agent" || status=$?
while [ "$signalled" ]; do
  signalled=
  again=0
  wait "$agent" || again=$?
  [ "$again" = 127 ] || status=$again
done
exit "$status"
