"""The bug of apache/airflow#58033 and apache/airflow#68998: only the errors that had been
met by then count as temporary. The API server answers 429 when it is overloaded, and 503
when it shuts down. Both ask the client to come back in a second, but the Task fails for
good. client-go would repeat such a request by itself; a client in Python does not."""


def passes(code):
    return code in (409, 500, 504)
