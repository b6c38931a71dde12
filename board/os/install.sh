# shellcheck shell=bash disable=SC2154 # flash.sh reads this file, and has set root, again and more
# ./flash.sh install and uninstall, read by flash.sh: the program, the units and the user of a board.
# Owns what lies outside of the home; refuses to touch a home, but for the mark that systemd runs it.
# Invariant: all that changes goes through `act`, so that --dry-run tells everything and does nothing,
# and a root given by --root gets all files and no process.

os=$root/board/os
at_boot=(exo-gadget.service exod.service exo-models.service exo-device.service exo-console.service exo-wifi.service exo-wifi.path exo-reset.path)
units=("${at_boot[@]}" exo-reset.service) # by its path alone
program=/opt/exo
target='' # another root, for a card or a trial
dry=0
changed=0

act() { # act WHAT COMMAND...
  changed=$((changed + 1))
  say "$1"
  shift
  if ((dry)); then return; fi
  "$@"
}
live() { # act, where this is the machine that is installed
  if [[ -n $target ]]; then return; fi
  act "$@"
}

install_options() {
  umask 022
  while (($#)); do
    case $1 in
      --dry-run) dry=1 ;;
      --root)
        target=${2:-}
        [[ -d $target ]] || fail "$again: --root wants a folder that is there"
        target=$(cd "$target" && pwd -P)
        if [[ $target == / ]]; then target=''; fi
        shift
        ;;
      *)
        usage >&2
        printf '%s: there is no option %s\n' "$again" "$1" >&2
        exit 2
        ;;
    esac
    shift
  done
  if ((!dry)) && [[ $(id -u) != 0 ]]; then fail "$again: only root may; run \`sudo $again\`"; fi
  if [[ -z $target ]] && ((!dry)); then
    [[ -d /run/systemd/system ]] || fail "$again: systemd does not run here; use ./flash.sh run"
    [[ $(getconf LONG_BIT) == 64 ]] || fail "$again: this system has 32 bits; write a card with a 64-bit one"
    debian || fail "$again: this is neither Raspberry Pi OS nor Debian"
  fi
  find_paths
}

# The home and the models lie where an earlier installation put them, else under /data, else (that cannot
# be made) under /var/lib/exo.
find_paths() {
  local unit=$target/etc/systemd/system/exod.service base
  home=''
  if [[ -f $unit ]]; then home=$(sed -n 's/^Environment=.*EXO_HOME=\([^ ]*\).*/\1/p' "$unit" | head -1); fi
  if [[ -n $home ]]; then
    base=$(dirname "$home")
  elif [[ -d $target/data && -w $target/data || (! -e $target/data && -w ${target:-/}) ]]; then
    base=/data
  else
    base=/var/lib/exo
  fi
  home=$base/exo
  store=$base/models
}

render() { sed -e "s|@HOME@|$home|g" -e "s|@MODELS@|$store|g" -e "s|@PROGRAM@|$program|g" "$os/$1"; }

put() { # put TEMPLATE PATH [MODE]: write a file that is not so already
  local path=$target$2
  if [[ -f $path ]] && render "$1" | cmp -s - "$path"; then return; fi
  act "write $2" put_now "$1" "$path" "${3:-644}"
}
put_now() {
  mkdir -p "$(dirname "$2")"
  render "$1" >"$2.new"
  chmod "$3" "$2.new"
  mv "$2.new" "$2"
}
drop() { # drop PATH
  if [[ -e $target$1 ]]; then act "remove $1" rm -rf "$target$1"; fi
}

# Print the folders and files that the program consists of.
parts() {
  local part
  for part in board core device models tools LICENSE README.md flash.sh pyproject.toml tests/constraints.txt dist/wheels; do
    if [[ -e $root/$part ]]; then echo "$part"; fi
  done
}
code_key() {
  parts | (cd "$root" && while read -r part; do find "$part" -type f ! -path '*/__pycache__/*' ! -path '*.egg-info/*'; done) |
    LC_ALL=C sort | (cd "$root" && tr '\n' '\0' | xargs -0 sha256sum) | digest
}
copy_program() { # copy_program KEY: whole or not at all, part by part
  local to=$target$program part
  rm -rf "$to/.new"
  mkdir -p "$to/.new"
  parts | (cd "$root" && tar -c --exclude=__pycache__ --exclude='*.egg-info' --owner=0 --group=0 -T -) | tar -x -C "$to/.new"
  chmod -R u=rwX,go=rX "$to/.new" # whatever the checkout has
  rm -f "$to/.installed"
  while read -r part; do
    rm -rf "${to:?}/$part"
    mkdir -p "$(dirname "$to/$part")"
    mv "$to/.new/$part" "$to/$part"
  done < <(parts)
  rm -rf "$to/.new"
  echo "$1" >"$to/.installed"
}

# Its mark is made once all is here: an interrupted one is taken up again.
set_up_program() {
  EXO_MODELS=$store XDG_CACHE_HOME=/var/cache "$program/flash.sh" setup
  chown -R exo:exo "$store"
  if [[ -f $program/.installed ]]; then cp "$program/.installed" "$program/.venv/.exo/board"; fi
}

# systemd 254 and newer can wait longer after each crash.
knows_steps() {
  local version
  version=$(systemctl --version 2>/dev/null | awk 'NR == 1 {print int($2)}')
  ((${version:-0} >= 254))
}

install_exo() {
  local key unit at
  install_options "$@"
  at=$target$program/.installed
  say "program $program, home $home, models $store${target:+, in $target}"
  key=$(code_key)
  if [[ $root != "$target$program" ]] && ! { [[ -f $at && $(<"$at") == "$key" ]]; }; then
    if [[ -f $target/etc/systemd/system/exod.service ]]; then
      live "stop exo-device exo-console exo-models exod" systemctl stop exo-device exo-console exo-models exod
    fi
    act "copy the program to $program" copy_program "$key"
  fi
  put sysusers.conf /etc/sysusers.d/exo.conf
  if ! grep -qs '^exo:' "$target/etc/passwd"; then
    act "make the user exo" systemd-sysusers --root="${target:-/}" exo.conf
  fi
  put tmpfiles.conf /etc/tmpfiles.d/exo.conf
  if [[ ! -e $target$home/state/systemd || ! -d $target$store ]]; then
    act "make $home and $store" systemd-tmpfiles --root="${target:-/}" --create exo.conf
  fi
  if ! cmp -s "$at" "$target$program/.venv/.exo/board"; then
    live "set up $program (packages, llama.cpp, models)" set_up_program
  fi
  put journald.conf /etc/systemd/journald.conf.d/exo.conf
  put udev.rules /etc/udev/rules.d/60-exo.rules
  put polkit.rules /etc/polkit-1/rules.d/60-exo.rules
  put exo.sh /usr/local/bin/exo 755
  for unit in "${units[@]}"; do
    put "$unit" "/etc/systemd/system/$unit"
    case $unit in
      exod.service | exo-models.service | exo-device.service | exo-console.service)
        if knows_steps; then put restart.conf "/etc/systemd/system/$unit.d/restart.conf"; fi
        ;;
    esac
  done
  if ((changed)); then
    act "start at boot: ${at_boot[*]}" systemctl --root="${target:-/}" --quiet enable "${at_boot[@]}"
    live "read the units" systemctl daemon-reload
    live "read the rules of udev" udevadm control --reload
    live "apply them" udevadm trigger --subsystem-match=gpio --subsystem-match=spidev --subsystem-match=i2c-dev
    live "limit the journal" systemctl restart systemd-journald
    live "start" systemctl restart exo-gadget exod exo-models exo-device exo-wifi.path exo-reset.path
  fi
  if ((!changed)); then
    say "all is as it should be"
  elif ((dry)); then
    say "nothing was changed"
  else
    say "installed; \`systemctl status exod exo-models exo-device\` tells how it does, \`exo doctor\` what is missing"
  fi
}

uninstall_exo() {
  local unit
  install_options "$@"
  if [[ -f $target/etc/systemd/system/exod.service ]]; then
    live "stop" systemctl stop exo-device exo-console exo-models exod exo-wifi.path exo-reset.path
    act "start no more at boot" systemctl --root="${target:-/}" --quiet disable "${at_boot[@]}"
  fi
  for unit in "${units[@]}"; do
    drop "/etc/systemd/system/$unit"
    drop "/etc/systemd/system/$unit.d/restart.conf"
    rmdir "$target/etc/systemd/system/$unit.d" 2>/dev/null || true
  done
  drop /etc/systemd/journald.conf.d/exo.conf
  drop /etc/udev/rules.d/60-exo.rules
  drop /etc/polkit-1/rules.d/60-exo.rules
  drop /etc/sysusers.d/exo.conf
  drop /etc/tmpfiles.d/exo.conf
  drop /usr/local/bin/exo
  drop "$home/state/systemd"
  if ((changed)); then
    live "read the units" systemctl daemon-reload
    live "the journal's own limits" systemctl restart systemd-journald
  fi
  if [[ -f $target$program/.installed ]]; then drop "$program"; fi
  say "$home, $store and the user exo, whose they are, were left as they are"
}
