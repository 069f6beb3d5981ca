"""An error is final only if the server has judged the request itself, as with 400 and 422.
A 403 may be due to a quota, which has room again later, or to a role that is being changed. A
409 is caused by another writer; a 429 and all errors from 500 on are caused by the server.
These are temporary. The loop waits for as long as Retry-After states."""


def passes(code):
    return code in (403, 409, 429) or code >= 500
