"""An error is final only if the server has judged the request itself, as with 400, 403 and
422. 409 is about another writer, 429 and everything from 500 on about the server: these
pass. The loop waits for as long as Retry-After asks."""


def passes(code):
    return code in (409, 429) or code >= 500
