#!/agent/bin/busybox sh
# Starts the agent in a container of oz-agent-worker, which mounts the content of the sidecar image at /agent and starts this script with
# the agent's arguments. The script uses no file of the container's own image. docs/other-workers.md describes it.
set -eu

# The first environment of a process stays readable in /proc/PID/environ. So the script moves the run token into a pipe and starts
# again without the variable.
if [ -n "${RUNYARD_RUN_TOKEN:-}" ]; then
  exec 4<<END
$RUNYARD_RUN_TOKEN
END
  unset RUNYARD_RUN_TOKEN
  export RUNYARD_RUN_TOKEN_FD=4
  exec /agent/entrypoint.sh "$@"
fi

# Variables of the image that would change the agent's program.
unset LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GLIBC_TUNABLES NODE_OPTIONS NODE_COMPILE_CACHE NODE_PATH NODE_V8_COVERAGE

if [ "${1:-}" = harness-support ]; then
  exec /agent/node --disable-sigusr1 --openssl-config=/dev/null /agent/program/main.cjs "$@" </dev/null
fi

# Images that are made from nothing have no folder for temporary files.
temporary=${TMPDIR:-/tmp}
[ -d "$temporary" ] || /agent/bin/busybox mkdir -p -m 1777 "$temporary"

# The agent keeps working folder and home for a continuation only if both belong to the run alone. If the image or a setup command has put
# files into the working folder, the agent makes a separate home, and nothing is kept.
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

# This shell is the first process of its container. So it must reap orphaned processes, and forward SIGTERM to the agent.
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
