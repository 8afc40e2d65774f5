"""The REST API of the shelf."""
