#!/bin/sh
# The exo command with the home of the handheld, whoever calls it.
set -- env HOME=@HOME@ EXO_HOME=@HOME@ EXO_MODELS=@MODELS@ @PROGRAM@/.venv/bin/exo "$@"
cd @HOME@ 2>/dev/null || cd /
if [ "$(id -un)" = exo ]; then exec "$@"; fi
if [ "$(id -u)" = 0 ]; then exec runuser -u exo -- "$@"; fi
exec sudo -u exo -- "$@"
