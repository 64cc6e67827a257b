"""Many tasks, several at a time, each in a process of its own."""
