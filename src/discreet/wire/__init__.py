"""The protocol of PostgreSQL, for psql, drivers and tools that draw pictures: whoever logs in asks what an account may
ask over HTTP, at the same prices and from the same ledger.

    line        bytes, with limits of size and time; TLS
    messages    the messages of the protocol, to and from bytes
    login       SCRAM-SHA-256 with the verifiers of tokens
    statements  where statements, words and parameters of a text are
    values      types and values, as text and in binary
    results     columns and rows, from answers
    refusals    errors, with the codes of PostgreSQL
    session     what one who has logged in says, and hears
    server      where it listens; who is let in
    catalog     what clients ask of PostgreSQL's catalogue; browsing says it in the protocol's words
"""
