#!/bin/sh
# Runs a command without root's right to read and write every file; of other users it changes nothing.
[ "$(id -u)" = 0 ] && exec setpriv --bounding-set=-dac_override,-dac_read_search "$@"
exec "$@"
