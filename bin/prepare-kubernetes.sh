# Prepares the programs of a cluster with one node. bin/test-kubernetes and bin/test-public-worker source this file after bin/prepare.sh.

# Sets $kubernetes to a folder with etcd, the network plugins (cni) and Kubernetes (API server, controllers, scheduler, kubelet). Gets
# etcd and the plugins from the Debian archive. Compiles Kubernetes once from the Go module proxy into a cache, which needs Go 1.24 or
# newer, 6 GB of disk and many minutes of processor time. RUNYARD_KUBERNETES_CACHE names the folder of this cache; default:
# runyard/kubernetes in the user's cache folder.
ensure_kubernetes() {
  [ "$(id -u)" = 0 ] || die "only root can start a node"
  for needed in containerd runc busybox; do
    command -v "$needed" >/dev/null || die "$needed is needed: apt install containerd runc busybox-static"
  done
  version=1.34.2
  kubernetes=${RUNYARD_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/runyard/kubernetes}/$version
  mkdir -p "$kubernetes/source"

  if [ ! -x "$kubernetes/etcd" ]; then
    say "getting etcd"
    (cd "$kubernetes/source" && apt-get download etcd-server && dpkg -x etcd-server_*.deb etcd)
    cp "$kubernetes/source/etcd/usr/bin/etcd" "$kubernetes/etcd"
  fi

  if [ ! -d "$kubernetes/cni" ]; then
    say "getting network plugins"
    (cd "$kubernetes/source" && apt-get download containernetworking-plugins && dpkg -x containernetworking-plugins_*.deb plugins)
    cp -R "$kubernetes/source/plugins/usr/lib/cni" "$kubernetes/cni"
  fi

  cluster=$root/packages/worker/test/kubernetes/cluster.go
  if [ ! -x "$kubernetes/cluster" ] || ! cmp -s "$cluster" "$kubernetes/source/main.go"; then (compile_kubernetes); fi
}

compile_kubernetes() {
  command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
  command -v go >/dev/null || die "Go is needed to compile Kubernetes: install Go 1.24 or newer"
  say "compiling Kubernetes $version"
  cp "$cluster" "$kubernetes/source/main.go"
  cd "$kubernetes/source"
  # The go.mod of Kubernetes takes some modules from folders that exist only in the repository of Kubernetes, so replace these entries.
  parts=$(GOFLAGS=-mod=mod GO111MODULE=on go mod download -json "k8s.io/kubernetes@v$version" |
    sed -n 's/.*"GoMod": "\(.*\)",*/\1/p' | xargs sed -n 's#^\t\(k8s.io/[a-z-]*\) => ./staging.*#\1#p')
  {
    printf 'module runyard.test/cluster\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n\n' "$version"
    for part in $parts; do printf 'replace %s => %s v0.%s\n' "$part" "$part" "${version#1.}"; done
  } >go.mod
  export GOFLAGS=-mod=mod
  go mod tidy -e
  stamp=k8s.io/component-base/version
  minor=${version#1.}
  nice -n 10 go build -p 2 -trimpath -ldflags "-s -w -X $stamp.gitVersion=v$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}" \
    -o "$kubernetes/cluster" .
}

# Sets $kube_router to kube-router, a network plugin that enforces NetworkPolicies. Compiles it once from the Go module proxy into the
# cache. Fails if a program that it needs is missing.
ensure_kube_router() {
  kube_router=${RUNYARD_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/runyard/kubernetes}/kube-router-2.1.0/kube-router
  for needed in ipset iptables curl; do command -v "$needed" >/dev/null || return 1; done
  [ ! -x "$kube_router" ] || return 0
  command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
  say "compiling kube-router"
  GOBIN=$(dirname "$kube_router") GOFLAGS=-trimpath CGO_ENABLED=0 nice -n 10 \
    go install -ldflags='-s -w' github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0
}
