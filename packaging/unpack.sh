#!/bin/sh
# cogwork-server: this script, followed by a compressed tar archive with the server and its Python.
# Unpacks itself once, into a directory named after its contents, and executes the server.
set -u

fail() {
  echo "cogwork-server: $1; set COGWORK_HOME to a directory that you own, with @MEGABYTES@ MB of free space" >&2
  exit 1
}

# In a subshell, because its PATH and umask must not affect the server.
unpack() (
  PATH=${PATH:-}:/usr/bin:/bin
  umask 077
  mkdir -p "$home/unpacked" && fresh=$(mktemp -d "$home/unpacked/.fresh.XXXXXX") || exit
  trap 'rm -rf "$fresh"' EXIT
  trap 'exit 1' HUP INT TERM
  # Sync before the rename, so that a power failure cannot leave empty files under the final name.
  tail -n +@LINES@ "$0" | tar -xzf - -C "$fresh" && sync || exit
  # Another process may have been faster.
  mv -T "$fresh" "$here" 2>/dev/null || [ -d "$here" ] || exit
  remove_others
)

# Remove earlier versions, except those that are still running.
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
# The service that root installs runs from there, so one copy is enough.
case ${1:-} in
  -aix-install | --aix-install | -aix-uninstall | --aix-uninstall)
    [ "$(command -p id -u)" != 0 ] || home=${COGWORK_HOME:-/var/lib/cogwork}
    ;;
esac
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
[ -x "$here/cogwork-server" ] || fail "programs in $here cannot be executed"
export COGWORK_PACKED_FILE="$0"
exec "$here/cogwork-server" "$@"
