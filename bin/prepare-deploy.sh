# Compiles the programs that check deploy/: helm, kubeconform and the checker of compose-go. bin/test-long sources this
# file after bin/prepare.sh.

# Sets $deploy_tools to a folder with these programs and the schemas of Kubernetes. The first call compiles the programs from modules of
# the Go module proxy, which needs Go and some minutes of processor time. The call fails if Go is missing. RUNYARD_DEPLOY_CACHE names the
# folder in which the compiled programs stay; default: runyard/deploy in the user's cache folder.
ensure_deploy_tools() {
  deploy_tools=${RUNYARD_DEPLOY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/runyard/deploy}/1
  [ ! -e "$deploy_tools/schemas" ] || return 0
  PATH=$PATH:/usr/local/go/bin
  command -v go >/dev/null || return 1
  mkdir -p "$deploy_tools"
  say "compiling helm, kubeconform and compose-go"
  (
    export GOBIN="$deploy_tools" GOFLAGS=-trimpath GO111MODULE=on
    cd "$deploy_tools" &&
      go install -ldflags='-s -w' github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 &&
      go install -ldflags='-s -w' github.com/compose-spec/compose-go/v2/cmd@v2.16.2 && mv cmd compose-go &&
      nice -n 10 go install -ldflags='-s -w' helm.sh/helm/v4/cmd/helm@v4.3.1 &&
      source=$(GOFLAGS=-mod=mod go mod download -json k8s.io/kubernetes@v1.34.2 | sed -n 's/.*"Dir": "\(.*\)",*/\1/p') &&
      "$node" "$root/test/deploy/write-schemas.ts" "$source/api/openapi-spec/swagger.json" "$deploy_tools/schemas"
  )
}
