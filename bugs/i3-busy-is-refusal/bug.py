"""The bug of apache/airflow#58033 and apache/airflow#68998: only 403, 409, 500 and 504 count as
temporary. The API server sends 429 when it is overloaded, and 503 when it shuts down. Both
responses tell the client to retry after a second, but here the Task fails permanently.
client-go would retry such a request itself; this client does not."""


def passes(code):
    return code in (403, 409, 500, 504)
