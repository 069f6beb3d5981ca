#!/bin/sh
# Prints the content of the store, one line per item.
exec env ROOT_ACCESS_KEY=check-key ROOT_SECRET_KEY=check-secret \
	../bin/s3client --endpoint "$STORE" "${@:-ledger}"
