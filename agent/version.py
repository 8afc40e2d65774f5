"""The version of this agent; the same as the package's."""

VERSION = "0.1.0"
