"""The command line: a table of its commands, and the function behind each."""
