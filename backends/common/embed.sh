#!/bin/sh
# embed.sh NAME FILE - print a C header that holds FILE's text as the string NAME, for the build
set -eu
printf '/* Made from %s. */\n#pragma once\nstatic const char %s[] =\n' "$(basename "$2")" "$1"
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/        "/' -e 's/$/\\n"/' "$2"
printf ';\n'
