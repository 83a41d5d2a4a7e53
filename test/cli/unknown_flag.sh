#!/bin/sh
# A misspelt flag is a usage error that offers the right one and the help.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 2 help --mann
err_has 'did you mean --man?'
err_has 'next: epready help --help'
