#!/bin/sh
# A misspelt command is a usage error that offers the right one.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
run 2 hlep
err_has 'did you mean "help"?'
err_has 'next: epready help --help'
