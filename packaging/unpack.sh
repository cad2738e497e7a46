#!/bin/sh
# cogwork-server: this script, and after its last line a compressed tar file with the server and
# the Python it runs on. Unpacks itself once, under the name of its contents, and becomes the server.
set -u

fail() {
  echo "cogwork-server: $1; set COGWORK_HOME to a directory of yours with 100 MB to spare" >&2
  exit 1
}

# A subshell, because its PATH and its umask are not for the server.
unpack() (
  PATH=${PATH:-}:/usr/bin:/bin
  umask 077
  mkdir -p "$home/unpacked" && fresh=$(mktemp -d "$home/unpacked/.fresh.XXXXXX") || exit
  trap 'rm -rf "$fresh"' EXIT
  trap 'exit 1' HUP INT TERM
  # On the disk before it gets its name: after a power cut the name would stand for empty files.
  tail -n +@LINES@ "$0" | tar -xzf - -C "$fresh" && sync || exit
  # Another process may have been faster.
  mv -T "$fresh" "$here" 2>/dev/null || [ -d "$here" ] || exit
  remove_others
)

# Earlier versions, except those that somebody still runs.
remove_others() {
  [ -e /proc/self/exe ] || return 0
  running=$(ls -l /proc/[0-9]*/exe 2>/dev/null)
  for other in "$home"/unpacked/server-*; do
    case $running in
      *"/${other##*/}/"*) ;;
      *) [ "$other" = "$here" ] || rm -rf "$other" ;;
    esac
  done
}

home=${COGWORK_HOME:-${HOME:+$HOME/.cogwork}}
if [ -z "$home" ]; then
  eval "home=~$(command -p id -un 2>/dev/null)/.cogwork"
  case $home in /*) ;; *) fail "this user has no home directory" ;; esac
fi
here=$home/unpacked/server-@CONTENTS@
if ! [ -d "$here" ]; then
  problem=$(unpack 2>&1) || fail "cannot unpack into $home/unpacked (${problem%%
*})"
fi
[ -O "$here" ] || fail "$here belongs to another user"
[ -x "$here/cogwork-server" ] || fail "programs in $here may not be run"
exec "$here/cogwork-server" "$@"
