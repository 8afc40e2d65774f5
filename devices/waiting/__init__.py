"""The waiting entrance: idle devices hold a request open and are told at once that something changed for them.

Plain ASGI in a process of its own (``fleet.asgi``), because a held request must cost neither a thread nor a database
connection: :mod:`entrance` speaks HTTP, :mod:`room` is who waits for what, :mod:`clerk` asks the database for all of
them in one question at a time (:mod:`reads`), and :mod:`bell` is how those who change something spare it the asking.
Nothing relies on it: a device that isn't told polls.
"""
