# Compiles the programs that check deploy/: helm, kubeconform and docker-compose. bin/test-long sources this
# file after bin/prepare.sh.

# Sets $deploy_tools to a folder with these programs and the schemas of Kubernetes. The first call compiles the programs from modules of
# the Go module proxy, which needs Go and some minutes of processor time. The call fails if Go is missing. RUNYARD_DEPLOY_CACHE names the
# folder in which the compiled programs stay; default: runyard/deploy in the user's cache folder.
ensure_deploy_tools() {
  deploy_tools=${RUNYARD_DEPLOY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/runyard/deploy}/2
  [ ! -e "$deploy_tools/schemas" ] || return 0
  PATH=$PATH:/usr/local/go/bin
  command -v go >/dev/null || return 1
  mkdir -p "$deploy_tools"
  say "compiling helm, kubeconform and docker-compose"
  (
    export GOBIN="$deploy_tools" GOFLAGS=-trimpath GO111MODULE=on
    # Prints the folder of the sources of MODULE@VERSION.
    sources() { GOFLAGS=-mod=mod go mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p'; }
    cd "$deploy_tools" &&
      go install -ldflags='-s -w' github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 &&
      compose=$(sources github.com/docker/compose/v2@v2.40.3) &&
      (cd "$compose" && nice -n 10 go build -ldflags='-s -w' -o "$deploy_tools/docker-compose" ./cmd) &&
      nice -n 10 go install -ldflags='-s -w' helm.sh/helm/v4/cmd/helm@v4.3.1 &&
      kubernetes=$(sources k8s.io/kubernetes@v1.34.2) &&
      "$node" "$root/test/deploy/write-schemas.ts" "$kubernetes/api/openapi-spec/swagger.json" "$deploy_tools/schemas"
  )
}
