"""Devices, groups and enrolment tokens over REST (API-1)."""
