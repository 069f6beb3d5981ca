#!/bin/sh
# Prints what there is in the store, a line for each thing.
exec env ROOT_ACCESS_KEY=check-key ROOT_SECRET_KEY=check-secret \
	../bin/s3client --endpoint "$STORE" "${@:-ledger}"
