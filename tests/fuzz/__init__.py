"""Fuzzing: readers of bytes from servers, users or a damaged disk raise nothing but what they document."""
