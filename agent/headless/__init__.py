"""One task without a person: what comes in, what goes out, what limits it, and how it ends."""
