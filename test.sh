#!/usr/bin/env bash
# Runs every check of the project: format, vet, lint, unit tests, fuzz targets, and end-to-end tests on real engines. Needs Go, a
# JDK of 21 or later and Maven; fetches what else it needs, or says how to. Prints what failed, and how many tests ran.
#
#   ./test.sh                 everything, as CI does
#   ./test.sh lint unit       only these stages: format vet lint unit fuzz e2e
#   E2E_LONG=1 ./test.sh      also what takes long
#   FUZZTIME=1m ./test.sh fuzz
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

readonly FUZZTIME=${FUZZTIME:-2s} root=$PWD
# The stage vet finds more. go test would do a part of it again, over all dependencies, for each of the four ways in which tests are built.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-vet=off"
# A program with the race detector waits for a second when it ends. Its tests have ended by then, and left nothing that races.
export GORACE="atexit_sleep_ms=0 ${GORACE-}"
readonly modules=(tools e2e/bench e2e/opensearch .) # the folders with a go.mod, the smallest first
venv=${XDG_CACHE_HOME:-$HOME/.cache}/optimist-python/$(cksum <e2e/python/requirements.txt | tr ' ' -)
tmp=$(mktemp -d) || exit 1
child=
failed=()

# Everything runs in the background, in a process group of its own: a signal is acted on at once, and ends all of it.
run() {
  set -m
  "$@" &
  child=$!
  set +m
  wait "$child"
  local status=$?
  child=
  return $status
}

cleanup() {
  if [[ -n $child ]]; then
    kill -TERM -- "-$child" 2>/dev/null
    wait "$child" 2>/dev/null
  fi
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say() { printf '%s\n' "$*" >&2; }

# report NAME STATUS SECONDS [DETAIL]
report() {
  local word=ok
  if (($2 != 0)); then
    word=FAIL
    failed+=("$1")
  fi
  printf '%-4s  %-6s %4d s  %s\n' "$word" "$1" "$3" "${4:-}"
}

# check NAME COMMAND...: what the command prints matters only if it fails. What it wants to be known all the same it puts into $tmp/note.
check() {
  local name=$1 began=$SECONDS status
  shift
  run "$@" >"$tmp/output" 2>&1
  status=$?
  ((status == 0)) || cat "$tmp/output"
  report "$name" "$status" $((SECONDS - began)) "$([[ ! -e $tmp/note ]] || cat "$tmp/note")"
  rm -f "$tmp/note"
  return $status
}

# tests NAME COMMAND...: the command prints what go test -json prints.
tests() {
  local name=$1 began=$SECONDS status sum
  shift
  run "$@" >"$tmp/$name.json" 2>"$tmp/$name.err"
  status=$?
  run "$tmp/bin/testsum" "$tmp/$name.json" >"$tmp/output"
  sum=$?
  sed '$d' "$tmp/output"
  if ((status != 0)); then
    grep -v '^go: downloading' "$tmp/$name.err"
    # The command failed, but no test: then it has said why among the events.
    ((sum != 0)) || grep -v '^{' "$tmp/$name.json"
  fi
  report "$name" $((status | sum)) $((SECONDS - began)) "$(tail -n 1 "$tmp/output")"
}

# --- what the tests need -------------------------------------------------------------------------------------------------------

# debian PACKAGE...: installs the packages where that is possible, else says how.
debian() {
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" && return
  fi
  say "missing: $*; install with, on Debian or Ubuntu:  apt-get install -y $*"
  return 1
}

need_go() {
  local want have
  want=$(awk '$1 == "go" {print $2}' go.mod)
  if ! have=$(go env GOVERSION 2>/dev/null); then
    say "Go is missing: install Go $want or later with your system's package manager or from the Go project's site"
    return 1
  fi
  [[ $(printf '%s\n' "$want" "${have#go}" | sort -V | head -n 1) == "$want" ]] && return
  say "Go is ${have#go} and has to be $want or later:  go install golang.org/dl/go$want@latest && go$want download"
  return 1
}

# A virtual environment with the official Elasticsearch client, made once.
need_python_client() {
  [[ -e $venv/complete ]] && return
  python3 -c 'import ensurepip, venv' 2>/dev/null || debian python3 python3-venv || return
  rm -rf "$venv"
  python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q -r e2e/python/requirements.txt && touch "$venv/complete"
}

tools() {
  need_go || return
  command -v gcc >/dev/null || debian gcc libc6-dev || return # the race detector needs a C compiler
  go build -o "$tmp/bin/" ./e2e/cmd/engines ./e2e/cmd/testsum || return
  need_python_client || return
  command -v memcached >/dev/null || debian memcached || return
  command -v npm >/dev/null || debian nodejs npm || say "the tests of the JavaScript client are skipped"
  "$tmp/bin/engines" -prepare # a JDK, Maven and the jars
}

# --- the stages ----------------------------------------------------------------------------------------------------------------

format() {
  local files
  files=$(gofmt -l .) || return
  [[ -z $files ]] && return
  say "gofmt -w would change:"
  say "$files"
  return 1
}

vet() {
  local status=0 module
  for module in "${modules[@]}"; do
    go vet -C "$module" ./... || status=1
  done
  return $status
}

# tool MODULE NAME ARGUMENT...: runs one of the tools of tools/go.mod in a module's folder.
tool() {
  local module=$1
  shift
  (cd "$module" && exec go tool -modfile="$root/tools/go.mod" "$@")
}

# Known vulnerabilities in what a module is made of. Where their database can't be reached, nothing is known.
vulnerabilities() {
  local status
  tool "$1" govulncheck -test ./... >"$tmp/vulnerabilities" 2>&1
  status=$?
  if ((status == 1)) && grep -q '^govulncheck: fetching vulnerabilities' "$tmp/vulnerabilities"; then
    echo "vulnerabilities were not looked for: their database can't be reached" >"$tmp/note"
    return 0
  fi
  ((status == 0)) || cat "$tmp/vulnerabilities"
  return $status
}

lint() {
  local status=0 asleep module
  for module in "${modules[@]}"; do
    tool "$module" golangci-lint run --allow-serial-runners ./... || status=1
    go -C "$module" mod tidy -diff || status=1
    [[ -e $tmp/note ]] || vulnerabilities "$module" || status=1
  done
  # Sleeping is for tests in a bubble, where it takes no time.
  asleep=$(grep -rl --include='*_test.go' 'time\.Sleep(' . | xargs -r grep -L '"testing/synctest"')
  if [[ -n $asleep ]]; then
    say "tests that sleep instead of waiting for what they wait for:"
    say "$asleep"
    status=1
  fi
  return $status
}

# Benchmarks check what they measure: each runs once, so that none rots. They run by themselves, because go test runs one package after the
# other where it runs benchmarks.
# The limit is for a package that hangs: the slowest took eleven minutes on a machine with much else to do.
# The race detector allocates: tests that count the allocations of a whole request are built, and run, without it alone.
unit() {
  local limit=20m status=0
  [[ ${E2E_LONG-} == 1 ]] && limit=40m
  go list ./... | grep -v '^optimist/e2e' | xargs go test -json -race -shuffle=on -timeout="$limit" || status=1
  grep -rl --include='*_test.go' '^func TestAllocations' . | xargs -n 1 dirname | sort -u |
    xargs go test -json -run='^TestAllocations' || status=1
  grep -rl --include='*_test.go' --exclude-dir=e2e '^func Benchmark' . | xargs -n 1 dirname | sort -u |
    xargs go test -json -race -run='^$' -bench=. -benchtime=1x || status=1
  go test -C tools -json ./... || status=1
  go test -C e2e/bench -json ./... || status=1
  return $status
}

# fuzz_one FILE:TARGET. The fuzzer now and then fails at its own deadline, with "context deadline exceeded" and no failing input: then
# it has another try.
fuzz_one() {
  local status try said
  said=$(mktemp "$tmp/fuzzed.XXXXXX") || return
  for try in 1 2; do
    go test -json -run='^$' -fuzz="^${1##*:}\$" -fuzztime="$FUZZTIME" -parallel=1 -timeout=10m "./$(dirname "${1%%:*}")" >"$said"
    status=$?
    if ((status == 0 || try == 2)) || ! grep -q 'context deadline exceeded' "$said" || grep -q 'Failing input' "$said"; then
      break
    fi
  done
  return $status
}

# Every fuzz target for a moment. go test takes one at a time, and builds and starts it longer than that: so each has one processor. What
# they say comes at the end, because the lines of two that say it at once would mix.
fuzz() {
  local status=0
  export -f fuzz_one
  export FUZZTIME tmp
  grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/:func /:/' |
    xargs -n 1 -P "$(nproc)" bash -c 'fuzz_one "$1"' fuzz || status=1
  cat "$tmp"/fuzzed.*
  return $status
}

# The engines are started once and shared by all packages, which start them themselves otherwise. The attacks and e2e/app have no race
# detector: their own process would take most of the time with it. The program before them has none either, but where a test asks for it.
# The limit is for a package that hangs: e2e/app takes more than twenty minutes on a slow machine.
e2e() {
  local limit=1h
  [[ ${E2E_LONG-} == 1 ]] && limit=4h
  OPTIMIST_E2E_PYTHON=$venv/bin/python exec "$tmp/bin/engines" -- bash -c '
    status=0
    go test "$@" ./e2e/app & # takes as long as all others together
    app=$!
    go test -race "$@" -parallel=4 ./e2e/locks & # mostly waits for leases to end
    locks=$!
    go list ./e2e/... | grep -v -e "/app$" -e "/locks$" -e "/hostile$" | xargs go test -race "$@" || status=1
    go test "$@" ./e2e/hostile || status=1
    go test -C e2e/opensearch -race "$@" ./... || status=1
    wait $app || status=1
    wait $locks || status=1
    exit $status' e2e -json -p=1 -shuffle=on -timeout="$limit"
}

main() {
  local all=(format vet lint unit fuzz e2e) stages=("$@") stage began=$SECONDS
  if [[ ${1-} == -h || ${1-} == --help ]]; then
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
    return
  fi
  for stage in "${stages[@]}"; do
    case " ${all[*]} " in
      *" $stage "*) ;;
      *) say "no stage is called $stage; the stages are: ${all[*]}" && return 2 ;;
    esac
  done
  ((${#stages[@]})) || stages=("${all[@]}")
  check tools tools || return
  for stage in "${stages[@]}"; do
    case $stage in
      format | vet | lint) check "$stage" "$stage" ;;
      unit | fuzz | e2e) tests "$stage" "$stage" ;;
    esac
  done
  printf '\n'
  ((${#failed[@]} == 0)) || printf 'failed: %s\n' "${failed[*]}"
  printf 'all of it in %d s\n' $((SECONDS - began))
  local events=("$tmp"/*.json)
  [[ ! -e ${events[0]} ]] || "$tmp/bin/testsum" -totals "${events[@]}"
  ((${#failed[@]} == 0))
}

main "$@"
